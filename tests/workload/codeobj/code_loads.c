/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives code objects to stand-in runtimes, as it is asked on standard input, and destroys them as early as a
 * program may.
 *
 * code_loads [--handle-cont] LIBRARY...	names of stand-ins in lib/ beside the program
 *
 * Prints {"ready":true,"pid":N} when they are loaded. Then a line is a command, and an empty one is none:
 *
 *	FUNCTION FILE[,FILE...] [threads=N] [times=N] [pause=MS] [memory=plain|end|file] [spoil=no|after|inside]
 *		[fail=yes] [unload=yes]
 *	fork
 *	quit
 *
 * Files hold the objects: thread I takes file I modulo their number; bytes may be written as %2C. Each of N threads (1)
 * loads its object N times (1), with a pause after each, from memory that is
 *	plain	anonymous, begins at an odd address, and has a 0 byte behind its end
 *	end	anonymous, and nothing is mapped behind its last byte
 *	file	a mapping of the file that has no page in memory, where the kernel can be made to drop it
 * which is overwritten and unmapped after the call (the default), or inside of it, by the runtime; or not. Functions
 * that take a path or a descriptor get that and no memory. fail: the runtime refuses it.
 * --handle-cont: SIGCONT is handled. fork: a child, which prints {"child":PID}, reads the commands until it quits, which the
 * parent answers with {"left":PID}.
 *
 * A load is a line {"function":NAME,"file":INDEX,"pid","tid","begin_ns","end_ns","address":"0x..","handle":"0x..",
 * "status","resident":PAGES}, with "unload_begin_ns" and "unload_end_ns" where it was unloaded; times are of
 * CLOCK_MONOTONIC, resident are pages of the file before the call. The last line of a command is
 * {"done":NUMBER OF LOADS,"continued":SIGCONTs that were handled}.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "load_functions.h"

#define THREADS_MAX 64
#define ODD 0x123 /* where bytes begin in plain memory: the object's pages are not the memory's */
#define PATTERN 0xa5

enum spoil { SPOIL_NO, SPOIL_AFTER, SPOIL_INSIDE };
enum memory { MEMORY_PLAIN, MEMORY_END, MEMORY_FILE };

struct command {
	const struct load_function *function;
	void *load, *unload;
	char *files[THREADS_MAX];
	unsigned int file_count, threads, times, pause;
	enum memory memory;
	enum spoil spoil;
	bool fail, undo;
	pthread_barrier_t begin;
};

/* The object that a thread is loading. */
struct object {
	char *bytes;
	size_t size;
	void *mapping;
	size_t mapped;
	bool spoil_inside, fail;
};

static __thread struct object *current;
static volatile sig_atomic_t continued;

__attribute__((noreturn, format(printf, 1, 2))) static void give_up(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("code_loads: ", stderr);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* ---- objects in memory ---- */

static void destroy(struct object *object, bool overwrite)
{
	if (!object->mapping)
		return;
	if (overwrite)
		memset(object->bytes, PATTERN, object->size);
	munmap(object->mapping, object->mapped);
	object->mapping = NULL;
}

/* Called by the runtimes, at the begin of every function that is given a code object. */
__attribute__((visibility("default"))) bool standin_code_given(const void *bytes);

bool standin_code_given(const void *bytes)
{
	if (!current || (bytes && bytes != current->bytes)) /* what one runtime gives to another */
		return true;
	if (bytes && current->spoil_inside)
		destroy(current, true);
	return !current->fail;
}

static void read_all(int file, char *to, size_t size)
{
	while (size) {
		ssize_t length = read(file, to, size);

		if (length <= 0)
			give_up("read");
		to += length;
		size -= length;
	}
}

static size_t up(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* bytes are at from of new anonymous memory of room bytes, behind which nothing is mapped. */
static void fill(struct object *object, int file, size_t room, size_t from)
{
	size_t page = sysconf(_SC_PAGESIZE);

	object->mapped = room + page;
	object->mapping = mmap(NULL, object->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (object->mapping == MAP_FAILED)
		give_up("mmap");
	munmap((char *)object->mapping + room, page);
	object->mapped = room;
	object->bytes = (char *)object->mapping + from;
	read_all(file, object->bytes, object->size);
}

/* Returns how many pages of the file are in memory nevertheless. */
static size_t map_file(struct object *object, int file)
{
	size_t pages = up(object->size) / sysconf(_SC_PAGESIZE), resident = 0;
	unsigned char *in_memory = malloc(pages);

	fdatasync(file);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	object->mapped = object->size;
	object->mapping = mmap(NULL, object->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	if (object->mapping == MAP_FAILED || !in_memory)
		give_up("mmap");
	madvise(object->mapping, object->size, MADV_DONTNEED);
	object->bytes = object->mapping;
	if (mincore(object->mapping, object->size, in_memory))
		give_up("mincore");
	for (size_t i = 0; i < pages; i++)
		resident += in_memory[i] & 1;
	free(in_memory);
	return resident;
}

static size_t prepare(struct object *object, enum memory memory, int file)
{
	struct stat about;

	if (fstat(file, &about))
		give_up("fstat");
	object->size = about.st_size;
	switch (memory) {
	case MEMORY_END:
		fill(object, file, up(object->size), up(object->size) - object->size);
		return 0;
	case MEMORY_FILE:
		return map_file(object, file);
	default:
		fill(object, file, up(ODD + object->size + 1), ODD);
		return 0;
	}
}

/* ---- loading ---- */

static void load_once(struct command *command, unsigned int index)
{
	const char *path = command->files[index];
	struct object object = { .spoil_inside = command->spoil == SPOIL_INSIDE, .fail = command->fail };
	struct load_given given = { .path = path, .descriptor = -1 };
	uint64_t begin, end, handle = 0, unload_begin = 0;
	char unloaded[96] = "";
	size_t resident = 0;
	int status;

	if (command->function->source != FROM_PATH)
		given.descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (command->function->source != FROM_PATH && given.descriptor < 0)
		give_up("%s", path);
	if (command->function->source == FROM_BYTES)
		resident = prepare(&object, command->memory, given.descriptor);
	given.bytes = object.bytes;
	given.size = object.size;
	current = &object;
	begin = now();
	status = command->function->load(command->load, &given, &handle);
	end = now();
	current = NULL;
	if (command->spoil != SPOIL_NO)
		destroy(&object, true);
	if (command->undo && status == 0) {
		unload_begin = now();
		load_undo(command->function->unload, command->unload, handle);
		snprintf(unloaded, sizeof(unloaded), ",\"unload_begin_ns\":%" PRIu64 ",\"unload_end_ns\":%" PRIu64,
			 unload_begin, now());
	}
	printf("{\"function\":\"%s\",\"file\":%u,\"pid\":%d,\"tid\":%ld,\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
	       ",\"address\":\"%p\",\"handle\":\"0x%" PRIx64 "\",\"status\":%d,\"resident\":%zu%s}\n",
	       command->function->name, index, getpid(), syscall(SYS_gettid), begin, end, given.bytes, handle, status,
	       resident, unloaded);
	if (given.descriptor >= 0)
		close(given.descriptor);
	destroy(&object, false);
	if (command->pause)
		usleep(command->pause * 1000);
}

struct worker {
	pthread_t thread;
	struct command *command;
	unsigned int index;
};

static void *work(void *argument)
{
	const struct worker *worker = argument;

	pthread_barrier_wait(&worker->command->begin);
	for (unsigned int i = 0; i < worker->command->times; i++)
		load_once(worker->command, worker->index % worker->command->file_count);
	return NULL;
}

static void run_threads(struct command *command)
{
	struct worker workers[THREADS_MAX];

	pthread_barrier_init(&command->begin, NULL, command->threads);
	for (unsigned int i = 0; i < command->threads; i++) {
		workers[i] = (struct worker){ .command = command, .index = i };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			give_up("pthread_create");
	}
	for (unsigned int i = 0; i < command->threads; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_barrier_destroy(&command->begin);
}

static void run(struct command *command)
{
	if (command->threads == 1) {
		for (unsigned int i = 0; i < command->times; i++)
			load_once(command, 0);
	} else {
		run_threads(command);
	}
	printf("{\"done\":%u,\"continued\":%d}\n", command->threads * command->times, (int)continued);
	fflush(stdout);
}

/* ---- commands ---- */

static void decode(char *text)
{
	char *to = text;
	unsigned int byte;

	for (; *text; to++) {
		if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1) {
			*to = byte;
			text += 3;
		} else {
			*to = *text++;
		}
	}
	*to = 0;
}

static void option(struct command *command, const char *word)
{
	if (sscanf(word, "threads=%u", &command->threads) == 1 || sscanf(word, "times=%u", &command->times) == 1 ||
	    sscanf(word, "pause=%u", &command->pause) == 1)
		return;
	if (strcmp(word, "memory=end") == 0)
		command->memory = MEMORY_END;
	else if (strcmp(word, "memory=file") == 0)
		command->memory = MEMORY_FILE;
	else if (strcmp(word, "spoil=no") == 0)
		command->spoil = SPOIL_NO;
	else if (strcmp(word, "spoil=inside") == 0)
		command->spoil = SPOIL_INSIDE;
	else if (strcmp(word, "fail=yes") == 0)
		command->fail = true;
	else if (strcmp(word, "unload=yes") == 0)
		command->undo = true;
	else if (strcmp(word, "memory=plain") != 0 && strcmp(word, "spoil=after") != 0)
		give_up("option %s", word);
}

static void fork_child(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		printf("{\"child\":%d}\n", getpid());
		fflush(stdout);
		return;
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || status)
		give_up("child ended with %#x", status);
	printf("{\"left\":%d}\n", child);
	fflush(stdout);
}

static void obey(char *line)
{
	struct command command = { .threads = 1, .times = 1, .spoil = SPOIL_AFTER };
	char *rest, *name = strtok_r(line, " \n", &rest), *files, *word;

	if (!name)
		return;
	if (strcmp(name, "quit") == 0)
		exit(0);
	if (strcmp(name, "fork") == 0) {
		fork_child();
		return;
	}
	command.function = load_function_find(name);
	command.load = load_symbol(name);
	files = strtok_r(NULL, " \n", &rest);
	if (!command.function || !command.load || !files)
		give_up("command %s", name);
	if (command.function->unload)
		command.unload = load_symbol(command.function->unload);
	while ((word = strtok_r(NULL, " \n", &rest)))
		option(&command, word);
	if (command.threads < 1 || command.threads > THREADS_MAX || (command.undo && !command.unload))
		give_up("command %s", name);
	for (word = strtok_r(files, ",", &rest); word && command.file_count < THREADS_MAX;
	     word = strtok_r(NULL, ",", &rest)) {
		decode(word);
		command.files[command.file_count++] = word;
	}
	if (!command.file_count)
		give_up("command %s", name);
	run(&command);
}

static void on_continue(int number)
{
	(void)number;
	continued++;
}

static void load_libraries(char **names)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *base;

	if (length < 0)
		give_up("/proc/self/exe");
	path[length] = 0;
	base = strrchr(path, '/') + 1;
	for (; *names; names++) {
		snprintf(base, path + sizeof(path) - base, "lib/%s", *names);
		if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL))
			give_up("%s", dlerror());
	}
	load_symbol("PJRT_Client_Compile"); /* the table is filled before anyone traces */
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_continue, .sa_flags = SA_RESTART };
	static char line[1 << 16];

	(void)argc;
	argv++;
	if (*argv && strcmp(*argv, "--handle-cont") == 0) {
		sigaction(SIGCONT, &action, NULL);
		argv++;
	}
	load_libraries(argv);
	printf("{\"ready\":true,\"pid\":%d}\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
