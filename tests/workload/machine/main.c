/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * machine SOCKET LEDGER SLOT [CONNECTION]: a process that executes commands from a connection to SOCKET, one packet a
 * command, one packet an answer. Its first packet is "hello SLOT PID". So does each child that it forks.
 *	open LIBRARY PATH NAME	loads a runtime, and into that a program of this name
 *	close LIBRARY		unloads both
 *	call LIBRARY COUNT	writes a tensor and executes the program, COUNT times
 *	spin LIBRARY, still LIBRARY	a thread calls until the command still
 *	fork SLOT		answers with the child's PID; the child says hello
 *	execute			executes this program anew, on the same connection; that says hello
 *	wait PID		answers with the status of waitpid()
 *	exit STATUS, abort	no answer
 * LEDGER is an array of struct track, which all processes have mapped: what a process has begun and ended, also if it is
 * killed. The size of the tensor says which call it is: process, library, thread and number.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARIES 8
#define NEFF_NAME 0xDC /* where the name of a model is in its bytes */
#define PAUSE_US 300

/* Calls of one thread through one library, from 1 on: a pair of nrt_tensor_write() and nrt_execute() each. */
struct track {
	_Atomic uint64_t begun, ended;
};

struct library {
	void *handle, *model;
	int (*write)(void *tensor, const void *buffer, size_t offset, size_t size);
	int (*execute)(void *model, const void *inputs, void *outputs);
	int (*load)(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, void **model);
	int (*unload)(void *model);
	pthread_t thread;
	_Atomic bool spins;
	char neff[1024];
};

static struct library libraries[LIBRARIES];
static struct track *tracks; /* [slot][library][2]: of the main thread, and of the one that spins */
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static unsigned long slot;
static int connection;

static _Noreturn void give_up(const char *what)
{
	perror(what);
	_exit(99);
}

static void answer(const char *format, long first, long second)
{
	char text[64];
	int length = snprintf(text, sizeof(text), format, first, second);

	if (send(connection, text, length, 0) != length)
		give_up("send");
}

static void connect_anew(void)
{
	connection = socket(AF_UNIX, SOCK_SEQPACKET, 0); /* stays open in a program that is executed */
	if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof(address)))
		give_up("connect");
}

static void make_call(struct library *library, unsigned int thread)
{
	uint64_t number = library - libraries;
	struct track *track = &tracks[(slot * LIBRARIES + number) * 2 + thread];
	uint64_t call = atomic_fetch_add(&track->begun, 1) + 1;

	if (!library->write(NULL, NULL, 0, slot << 40 | number << 36 | (uint64_t)thread << 35 | call) ||
	    library->execute(library->model, NULL, NULL))
		give_up("call");
	atomic_fetch_add(&track->ended, 1);
}

static void *spin(void *argument)
{
	struct library *library = argument;

	while (library->spins) {
		make_call(library, 1);
		usleep(PAUSE_US);
	}
	return NULL;
}

static void *function(struct library *library, const char *name)
{
	void *found = dlsym(library->handle, name);

	if (!found)
		give_up(name);
	return found;
}

static void open_library(struct library *library, const char *path, const char *name)
{
	library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library->handle)
		give_up(path);
	library->write = function(library, "nrt_tensor_write");
	library->execute = function(library, "nrt_execute");
	library->load = function(library, "nrt_load");
	library->unload = function(library, "nrt_unload");
	snprintf(library->neff + NEFF_NAME, 32, "%s", name);
	if (library->load(library->neff, sizeof(library->neff), 0, 1, &library->model))
		give_up("nrt_load");
}

static void close_library(struct library *library)
{
	if (library->unload(library->model) || dlclose(library->handle))
		give_up("dlclose");
}

/* Threads are not inherited. */
static void become_child(unsigned long new_slot)
{
	slot = new_slot;
	for (unsigned int i = 0; i < LIBRARIES; i++)
		libraries[i].spins = false;
	close(connection);
	connect_anew();
	answer("hello %ld %ld", slot, getpid());
}

static void fork_child(unsigned long new_slot)
{
	pid_t pid = fork();

	if (pid < 0)
		give_up("fork");
	if (pid)
		answer("ok %ld", pid, 0);
	else
		become_child(new_slot);
}

static void execute(char **words)
{
	char numbers[2][24];
	char *arguments[] = { words[0], words[1], words[2], numbers[0], numbers[1], NULL };

	snprintf(numbers[0], sizeof(numbers[0]), "%lu", slot);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", connection);
	execv("/proc/self/exe", arguments);
	give_up("execv");
}

/* What has an answer of its own returns true. */
static bool obey(char *command, char **words)
{
	char *word = strtok(command, " "), *first = strtok(NULL, " "), *second = strtok(NULL, " "),
	     *third = strtok(NULL, " ");
	unsigned long number = first ? strtoul(first, NULL, 10) : 0;
	struct library *library = &libraries[number % LIBRARIES];
	int status;

	if (!strcmp(word, "open")) {
		open_library(library, second, third);
	} else if (!strcmp(word, "close")) {
		close_library(library);
	} else if (!strcmp(word, "call")) {
		for (unsigned long i = strtoul(second, NULL, 10); i; i--)
			make_call(library, 0);
	} else if (!strcmp(word, "spin")) {
		library->spins = true;
		if (pthread_create(&library->thread, NULL, spin, library))
			give_up("pthread_create");
	} else if (!strcmp(word, "still")) {
		library->spins = false;
		pthread_join(library->thread, NULL);
	} else if (!strcmp(word, "fork")) {
		fork_child(number);
		return true;
	} else if (!strcmp(word, "execute")) {
		execute(words);
	} else if (!strcmp(word, "wait")) {
		if (waitpid(number, &status, 0) < 0)
			give_up("waitpid");
		answer("ok %ld", status, 0);
		return true;
	} else if (!strcmp(word, "exit")) {
		exit(number);
	} else if (!strcmp(word, "abort")) {
		abort();
	} else {
		give_up(word);
	}
	return false;
}

int main(int count, char **words)
{
	char command[512];
	struct stat ledger;
	ssize_t length;
	int file;

	if (count < 4)
		return 2;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", words[1]);
	slot = strtoul(words[3], NULL, 10);
	file = open(words[2], O_RDWR | O_CLOEXEC);
	if (file < 0 || fstat(file, &ledger))
		give_up(words[2]);
	tracks = mmap(NULL, ledger.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (tracks == MAP_FAILED)
		give_up("mmap");
	close(file);
	if (count > 4)
		connection = atoi(words[4]);
	else
		connect_anew();
	answer("hello %ld %ld", slot, getpid());
	while ((length = recv(connection, command, sizeof(command) - 1, 0)) > 0) {
		command[length] = '\0';
		if (!obey(command, words))
			answer("ok", 0, 0);
	}
	return 98; /* who gives the commands is gone */
}
