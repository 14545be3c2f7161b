/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector's side of the processes that read files. */
#include "session/reader/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/process.h"
#include "base/core/text.h"
#include "session/reader/readers_private.h"

#define ANSWER_MAX (256u << 20) /* bytes; libtorch with all operators gives some MB */
/*
 * ms that a process may wait for a file before it is given up. Each one that is given up halves it, so that many such files take
 * little more than one; in time it doubles again.
 */
#define PATIENCE_MAX 1000
#define PATIENCE_MIN 20
/* ns until a process with memory that timed out is read again; and for which waiting counts */
#define SILENT_FOR 60000000000ull
#define PATIENCE_RECOVERS 10000000000ull /* ns */
/* Factor of the time that a process may wait in all for a file that others answer for, however much it gets on. */
#define REMOTE_PATIENCE 10
#define MEMORY_QUICK 50000000ull    /* ns: shorter answers about memory are not looked into */
#define MEMORY_WAITED 3000000000ull /* ns waited for the memory of a process in that time; 1 s on a busy machine */
#define DEADLINE_SLICE 20	    /* ms */
#define DEADLINE_GRACE 100000000ull /* ns: until then the process says itself that it is over */

static void kill_process(const struct file_reader *reader)
{
	if (reader->process >= 0)
		syscall(SYS_pidfd_send_signal, reader->process, SIGKILL, NULL, 0);
}

void reader_end(struct file_reader *reader)
{
	if (!reader)
		return;
	kill_process(reader);
	close(reader->socket);
	if (reader->process >= 0)
		close(reader->process);
	if (reader->local >= 0)
		close(reader->local);
	free(reader);
}

void file_reader_close(struct file_reader *reader)
{
	if (reader && reader != reader->readers->shared)
		reader_end(reader);
}

pid_t file_reader_pid(const struct file_reader *reader)
{
	return reader->pid;
}

static int start_server(struct file_readers *readers)
{
	struct file_reader_process process = { .search = &readers->search };
	int sockets[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	process.socket = sockets[1];
	error = detached_start("xputrace-reader", &sockets[1], 1, file_reader_process, &process);
	close(sockets[1]);
	if (error)
		close(sockets[0]);
	else
		readers->socket = sockets[0];
	return error;
}

int file_readers_start(const struct log *log, const struct file_search *search, struct file_readers **result)
{
	struct file_readers *readers = calloc(1, sizeof(*readers));
	int error;

	if (!readers)
		return -ENOMEM;
	*readers = (struct file_readers){ .log = log, .search = *search, .patience = PATIENCE_MAX };
	error = start_server(readers);
	if (error)
		free(readers);
	else
		*result = readers;
	return error;
}

void file_readers_stop(struct file_readers *readers)
{
	if (!readers)
		return;
	reader_end(readers->shared);
	reader_end(readers->memory);
	for (size_t i = 0; i < readers->dying_count && i < DYING_MAX; i++)
		close(readers->dying[i]);
	close(readers->socket);
	free(readers);
}

/* ---- waiting ---- */

/* ms until it is looked at again. */
static int slice_of(const struct file_reader *reader)
{
	__u64 now = reader->deadline ? clock_monotonic() : 0, left;

	if (!reader->deadline)
		return reader->readers->patience / 2;
	left = reader->deadline > now ? (reader->deadline - now) / 1000000 + 1 : DEADLINE_SLICE;
	return left < (__u64)reader->slice ? (int)left : reader->slice;
}

/* What changes as long as the process gets on: its CPU time and the bytes that it has read. Running, it gets on. */
static bool gets_on(struct file_reader *reader, __u64 *progress)
{
	struct process_progress now;
	bool more;

	if (process_progress_read(reader->pid, &now))
		return false;
	more = now.runs || now.sum != *progress;
	*progress = now.sum;
	if (now.runs)
		return true;
	if (reader->deadline && clock_monotonic() >= reader->deadline)
		return false;
	reader->waited += reader->is_remote ? reader->readers->patience / 2 : 0;
	return more && reader->waited < REMOTE_PATIENCE * reader->readers->patience;
}

void reader_give_up(struct file_reader *reader)
{
	struct file_readers *readers = reader->readers;

	kill_process(reader);
	readers->patience = readers->patience > 2 * PATIENCE_MIN ? readers->patience / 2 : PATIENCE_MIN;
	readers->given_up = clock_monotonic();
}

int reader_wait(struct file_reader *reader)
{
	struct file_readers *readers = reader->readers;
	struct pollfd polled = { .fd = reader->socket, .events = POLLIN };
	__u64 progress = ~(__u64)0, now = clock_monotonic();
	int ready;

	if (readers->patience < PATIENCE_MAX && now - readers->given_up > PATIENCE_RECOVERS) {
		readers->patience = 2 * readers->patience < PATIENCE_MAX ? 2 * readers->patience : PATIENCE_MAX;
		readers->given_up = now;
	}
	/* The first look is what the second one is compared with. */
	do
		ready = poll(&polled, 1, slice_of(reader));
	while ((ready < 0 && errno == EINTR) || (!ready && gets_on(reader, &progress)));
	/* It may have replied while it was looked at. */
	if (!ready)
		ready = poll(&polled, 1, 0);
	if (ready < 0)
		return -errno;
	if (ready)
		return 0;
	reader_give_up(reader);
	return -ETIMEDOUT;
}

int reader_receive(struct file_reader *reader, void *bytes, size_t length)
{
	char *to = bytes;

	while (length) {
		int error = reader_wait(reader);
		ssize_t got = error ? error : read(reader->socket, to, length);

		if (error)
			return error;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got && errno != ECONNRESET ? -errno : -EPROTO;
		to += got;
		length -= got;
	}
	return 0;
}

/* ---- one file ---- */

int reader_start(struct file_readers *readers, char what, int place, struct file_reader *reader)
{
	struct file_reader_started started;
	int sockets[2], given[2], server, error;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	given[0] = sockets[1];
	given[1] = place;
	error = socket_send(readers->socket, &what, 1, given, place < 0 ? 1 : 2);
	/* It was killed. */
	server = readers->socket;
	if (error == -EPIPE && !start_server(readers)) {
		close(server);
		error = socket_send(readers->socket, &what, 1, given, place < 0 ? 1 : 2);
	}
	close(sockets[1]);
	if (!error)
		error = socket_receive(readers->socket, &started, sizeof(started), &reader->process, 1);
	if (error || started.error) {
		close(sockets[0]);
		return error ?: started.error;
	}
	reader->socket = sockets[0];
	reader->pid = started.pid;
	return 0;
}

int file_reader_open(struct file_readers *readers, int place, struct opened_file *opened, struct file_reader **result)
{
	struct file_reader *reader = calloc(1, sizeof(*reader));
	struct file_reader_opened answer;
	int error;

	if (!reader)
		return -ENOMEM;
	*reader = (struct file_reader){ .readers = readers, .socket = -1, .process = -1, .local = -1, .file = -1 };
	error = reader_start(readers, READ_FILES, place, reader);
	if (error) {
		free(reader);
		return error;
	}
	error = reader_wait(reader);
	if (!error)
		error = socket_receive(reader->socket, &answer, sizeof(answer), &opened->descriptor, 1) ?: answer.error;
	if (error) {
		file_reader_close(reader);
		return error;
	}
	if (!answer.local)
		opened->descriptor = fcntl(place, F_DUPFD_CLOEXEC, 3);
	if (opened->descriptor < 0) {
		error = answer.local ? -EPROTO : -EMFILE;
		file_reader_close(reader);
		return error;
	}
	reader->is_remote = !answer.local;
	opened->status = answer.status;
	opened->is_local = answer.local;
	opened->is_fuse = answer.fuse;
	opened->mapped = answer.mapped;
	*result = reader;
	return 0;
}

int file_reader_share(struct file_readers *readers, int descriptor, struct file_reader **result)
{
	struct file_reader *reader = readers->shared ?: calloc(1, sizeof(*reader));
	int error = 0;

	if (!reader)
		return -ENOMEM;
	if (!readers->shared) {
		*reader = (struct file_reader){ .readers = readers, .socket = -1, .process = -1, .local = -1 };
		error = reader_start(readers, READ_FILES, -1, reader);
	}
	if (error) {
		free(reader);
		return error;
	}
	readers->shared = reader;
	reader->file = descriptor;
	*result = reader;
	return 0;
}

/* Each is a digit for its level and a text. */
static void write_messages(const struct log *log, const char *bytes, size_t length)
{
	const char *end = bytes + length, *zero;

	for (; bytes < end; bytes = zero + 1) {
		zero = memchr(bytes, '\0', end - bytes);
		if (!zero || *bytes < '0' + XPT_LOG_DEBUG || *bytes > '0' + XPT_LOG_ERROR)
			return;
		log_write(log, *bytes - '0', "%s", bytes + 1);
	}
}

static int send_request(struct file_reader *reader, struct file_reader_request *request, const char *name,
			const struct table_words *words)
{
	int error;

	request->name = strnlen(name, FILE_NAME_MAX - 1);
	error = socket_send(reader->socket, request, sizeof(*request), &reader->file, reader->file >= 0);
	if (!error && request->name)
		error = socket_send(reader->socket, name, request->name, NULL, 0);
	if (!error && words && words->count)
		error = socket_send(reader->socket, words->words, words->count * sizeof(*words->words), NULL, 0);
	return error == -EPIPE || error == -ECONNRESET ? -EPROTO : error;
}

/* *result: contents of the reply behind the messages, owned by the caller. */
static int receive_answer(struct file_reader *reader, char **result, size_t *length)
{
	struct file_reader_answer answer;
	char *bytes;
	int error = reader_receive(reader, &answer, sizeof(answer));

	if (!error && (answer.length > ANSWER_MAX || answer.log_length > answer.length))
		error = -EPROTO;
	bytes = error ? NULL : malloc(answer.length ?: 1);
	if (!bytes)
		return error ?: -ENOMEM;
	error = reader_receive(reader, bytes, answer.length);
	if (error) {
		free(bytes);
		return error;
	}
	write_messages(reader->readers->log, bytes, answer.log_length);
	*length = answer.length - answer.log_length;
	memmove(bytes, bytes + answer.log_length, *length);
	*result = bytes;
	return 0;
}

int reader_ask(struct file_reader *reader, struct file_reader_request *request, const char *name,
	       const struct table_words *words, char **result, size_t *length)
{
	int error = send_request(reader, request, name, words) ?: receive_answer(reader, result, length);

	/* Whatever has gone wrong, the next file finds another process, as this one may still reply. */
	if (error && reader == reader->readers->shared)
		reader->readers->shared = NULL;
	return error;
}

int file_reader_search(struct file_reader *reader, const char *name, struct file_contents *contents)
{
	struct file_reader_request request = { .kind = FILE_SEARCH };
	size_t length;
	char *bytes;
	int error = reader_ask(reader, &request, name, NULL, &bytes, &length);

	*contents = (struct file_contents){ 0 };
	if (error)
		return error;
	error = file_contents_read(bytes, length, reader->readers->search.registry, contents);
	free(bytes);
	return error;
}

int file_reader_site(struct file_readers *readers, int place, const struct file_site *wanted, struct site *site)
{
	struct file_reader_request request = { .kind = FILE_SITE, .site = *wanted };
	struct file_site_answer answer;
	struct opened_file opened;
	struct file_reader *reader;
	size_t length;
	char *bytes;
	int error = file_reader_open(readers, place, &opened, &reader);

	if (error)
		return error;
	close(opened.descriptor);
	error = reader_ask(reader, &request, "", NULL, &bytes, &length);
	file_reader_close(reader);
	if (error)
		return error;
	if (length == sizeof(answer))
		memcpy(&answer, bytes, length);
	free(bytes);
	if (length != sizeof(answer) ||
	    (!answer.error && (answer.site.class < SITE_OPTIMISED || answer.site.class > SITE_STEPPED)))
		return -EPROTO;
	*site = answer.site;
	site->semaphore = 0;
	return answer.error > 0 ? -EPROTO : answer.error;
}

int file_reader_symbol(struct file_reader *reader, __u64 at, char name[FILE_SYMBOL_MAX + 1], __u64 *offset)
{
	struct file_reader_request request = { .kind = FILE_SYMBOL, .symbol = at };
	const struct file_symbol_answer *answer;
	size_t length;
	char *bytes;
	int error = reader_ask(reader, &request, "", NULL, &bytes, &length);

	if (error)
		return error;
	answer = (const void *)bytes; /* from malloc(): aligned */
	if (length != sizeof(*answer) || strnlen(answer->name, FILE_SYMBOL_MAX + 1) > FILE_SYMBOL_MAX ||
	    answer->error > 0) {
		error = -EPROTO;
	} else {
		error = answer->error;
		*offset = answer->offset;
		memcpy(name, answer->name, strlen(answer->name) + 1);
	}
	free(bytes);
	return error;
}

int file_reader_table(struct file_readers *readers, const struct mapped_file *mapped, const struct description *runtime,
		      const struct table_words *words, struct found_functions *found)
{
	struct file_reader_request request = {
		.kind = FILE_TABLE,
		.table = { runtime->index, mapped->start, mapped->offset, words->address, words->count },
	};
	struct file_contents contents;
	struct opened_file opened;
	struct file_reader *reader;
	size_t length;
	char *bytes;
	int error = file_reader_open(readers, mapped->descriptor, &opened, &reader);

	*found = (struct found_functions){ 0 };
	if (error)
		return error;
	close(opened.descriptor);
	error = reader_ask(reader, &request, mapped->path, words, &bytes, &length);
	file_reader_close(reader);
	if (error)
		return error;
	error = file_contents_read(bytes, length, readers->search.registry, &contents);
	free(bytes);
	if (error)
		return error;
	*found = contents.found;
	contents.found = (struct found_functions){ 0 };
	file_contents_free(&contents);
	return 0;
}

/* ---- memory ---- */

bool reader_is_silent(const struct file_readers *readers, pid_t pid)
{
	__u64 now = clock_monotonic();

	for (size_t i = 0; i < SILENT_MAX; i++)
		if (readers->silent[i].tgid == pid && readers->silent[i].until > now)
			return true;
	return false;
}

static struct silent_process *silent_process(struct file_readers *readers, pid_t pid)
{
	struct silent_process *process;

	for (size_t i = 0; i < SILENT_MAX; i++)
		if (readers->silent[i].tgid == pid)
			return &readers->silent[i];
	process = &readers->silent[readers->silent_count++ % SILENT_MAX];
	*process = (struct silent_process){ .tgid = pid };
	return process;
}

void reader_note_silent(struct file_readers *readers, pid_t pid, const char *what)
{
	*silent_process(readers, pid) = (struct silent_process){ .tgid = pid, .until = clock_monotonic() + SILENT_FOR };
	log_warn(readers->log, "process %d: %s", pid, what);
}

#define MEMORY_SILENT "names, operators, functions and code objects in its memory are left out: it does not answer"

/* ns that a process has run, or would have if there had been a CPU for it; 0: unknown. of: its directory in /proc. */
static __u64 time_run(const char *of)
{
	unsigned long long ran = 0, delayed = 0;
	char path[48];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/schedstat", of);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu %llu", &ran, &delayed) != 2)
		ran = delayed = 0;
	if (file)
		fclose(file);
	return ran + delayed;
}

/* Of the process of memory and of this thread, of which at most one has something to do while the other one is waited for; 0: unknown. */
static __u64 time_worked(const struct file_reader *reader)
{
	char process[16];
	__u64 theirs, ours = time_run("thread-self");

	snprintf(process, sizeof(process), "%d", reader->pid);
	theirs = time_run(process);
	return theirs && ours ? theirs + ours : 0;
}

/*
 * Whoever hands out its pages one by one holds up everybody as well: all the time counts that is neither work nor waiting for a CPU. It
 * is forgotten after a while, since on a busy machine some always comes together.
 */
static void note_waited(struct file_readers *readers, const struct file_reader *reader, pid_t pid, __u64 began,
			__u64 worked)
{
	__u64 now = clock_monotonic(), took = now - began, more = took > MEMORY_QUICK ? time_worked(reader) : 0;
	struct silent_process *process;

	if (!more || !worked || more - worked >= took)
		return;
	process = silent_process(readers, pid);
	if (now - process->since > SILENT_FOR) {
		process->since = now;
		process->waited = 0;
	}
	process->waited += took - (more - worked);
	if (process->waited > MEMORY_WAITED)
		reader_note_silent(readers, pid, MEMORY_SILENT);
}

static bool has_ended(int process)
{
	struct pollfd polled = { .fd = process, .events = POLLIN };

	return poll(&polled, 1, 0) > 0;
}

struct code_spare *reader_lent(struct file_readers *readers)
{
	size_t kept = 0;

	if (readers->dying_count > DYING_MAX)
		return NULL;
	for (size_t i = 0; i < readers->dying_count; i++) {
		if (has_ended(readers->dying[i]))
			close(readers->dying[i]);
		else
			readers->dying[kept++] = readers->dying[i];
	}
	readers->dying_count = kept;
	return kept ? NULL : readers->lent;
}

/* A killed process copies the pages that it has got before it ends. */
static void note_dying(struct file_readers *readers, struct file_reader *reader)
{
	reader_lent(readers); /* drops those that have ended */
	if (reader->process < 0 || readers->dying_count > DYING_MAX)
		return;
	if (readers->dying_count < DYING_MAX) {
		readers->dying[readers->dying_count] = reader->process;
		kill_process(reader);
		reader->process = -1;
	}
	readers->dying_count++;
}

int reader_start_memory(struct file_readers *readers)
{
	struct file_reader *reader = calloc(1, sizeof(*reader));
	int error;

	if (!reader)
		return -ENOMEM;
	*reader = (struct file_reader){ .readers = readers, .socket = -1, .process = -1, .local = -1, .file = -1 };
	error = reader_start(readers, READ_MEMORY, readers->lent ? readers->lent->memory : -1, reader);
	if (error)
		free(reader);
	else
		readers->memory = reader;
	return error;
}

int reader_ask_memory(struct file_readers *readers, struct file_reader_request *request, pid_t pid, const char *name,
		      int file, char **result, size_t *length)
{
	struct file_reader *reader;
	struct memory_answer head;
	__u64 began, worked;
	int error;

	if (pid && reader_is_silent(readers, pid))
		return -ETIMEDOUT;
	error = readers->memory ? 0 : reader_start_memory(readers);
	if (error)
		return error;
	reader = readers->memory;
	reader->file = file;
	reader->deadline = request->kind >= FILE_SOURCE_SIZE && pid ? request->source.source.deadline + DEADLINE_GRACE :
								      0;
	began = clock_monotonic();
	/* Threads of other processes wait for their turn: two looks at one that gets nowhere are a quarter of the time. */
	reader->slice = reader->deadline > began ? (reader->deadline - began) / 8000000 : 0;
	if (reader->slice < DEADLINE_SLICE)
		reader->slice = DEADLINE_SLICE;
	if (reader->slice > readers->patience / 2)
		reader->slice = readers->patience / 2;
	worked = pid ? time_worked(reader) : 0;
	error = reader_ask(reader, request, name, NULL, result, length);
	if (error) { /* the next one finds another process */
		readers->memory = NULL;
		if (request->kind == FILE_SOURCE_COPY && file < 0)
			note_dying(readers, reader);
		reader_end(reader);
		if (error == -ETIMEDOUT)
			reader_note_silent(readers, pid, MEMORY_SILENT);
		return error;
	}
	note_waited(readers, reader, pid, began, worked);
	if (*length >= sizeof(head)) {
		memcpy(&head, *result, sizeof(head));
		*length -= sizeof(head);
		memmove(*result, *result + sizeof(head), *length);
		error = head.error > 0 ? -EPROTO : head.error;
	} else {
		error = -EPROTO;
	}
	if (error)
		free(*result);
	return error;
}

/* name: for FILE_PLACE. */
static int ask_memory(struct file_readers *readers, __u32 kind, const struct memory_request *wanted, const char *name,
		      char **result, size_t *length)
{
	struct file_reader_request request = { .kind = kind, .memory = *wanted };

	return reader_ask_memory(readers, &request, wanted->pid, name, -1, result, length);
}

/* Text of a reply: it ends, and is as long as announced. */
static bool is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	return length < size && text_is_plain(text, length);
}

int file_reader_node(struct file_readers *readers, const struct description *runtime, pid_t pid, __u64 object,
		     __u64 class, struct operator_node *node)
{
	const struct memory_request wanted = { .runtime = runtime->index, .object = object, .class = class, .pid = pid };
	size_t length;
	char *answer;
	int error = ask_memory(readers, FILE_NODE, &wanted, "", &answer, &length);

	if (error)
		return error;
	if (length == sizeof(*node))
		memcpy(node, answer, sizeof(*node));
	free(answer);
	return length == sizeof(*node) && node->index >= 0 && node->index <= INT32_MAX &&
			       is_text(node->name, sizeof(node->name)) && is_text(node->type, sizeof(node->type)) &&
			       is_text(node->provider, sizeof(node->provider)) ?
		       0 :
		       -EPROTO;
}

static int name_by(struct file_readers *readers, const struct memory_request *wanted, char name[OBJECT_NAME_MAX + 1])
{
	size_t length;
	char *answer;
	int error = ask_memory(readers, FILE_NAME, wanted, "", &answer, &length);

	if (error)
		return error;
	if (length == OBJECT_NAME_MAX + 1)
		memcpy(name, answer, length);
	free(answer);
	return length == OBJECT_NAME_MAX + 1 && is_text(name, length) ? 0 : -EPROTO;
}

int file_reader_name(struct file_readers *readers, const struct description *runtime, size_t way, pid_t pid,
		     __u64 object, char name[OBJECT_NAME_MAX + 1])
{
	return name_by(readers,
		       &(struct memory_request){ .runtime = runtime->index, .way = way, .object = object, .pid = pid },
		       name);
}

int file_reader_name_at(struct file_readers *readers, const struct description *runtime, __u64 at, pid_t pid,
			__u64 object, char name[OBJECT_NAME_MAX + 1])
{
	return name_by(readers,
		       &(struct memory_request){ .runtime = runtime->index,
						 .way = runtime->name_count,
						 .at = at,
						 .object = object,
						 .pid = pid },
		       name);
}

int file_reader_place(struct file_readers *readers, const struct description *runtime, pid_t pid, __u64 object,
		      const char *name, struct name_place *place)
{
	const struct memory_request wanted = { .runtime = runtime->index, .object = object, .pid = pid };
	size_t length;
	char *answer;
	int error = ask_memory(readers, FILE_PLACE, &wanted, name, &answer, &length);

	if (error)
		return error;
	if (length == sizeof(*place))
		memcpy(place, answer, sizeof(*place));
	free(answer);
	return length == sizeof(*place) && place->at < OBJECT_PLACE_MAX ? 0 : -EPROTO;
}

int file_reader_words(struct file_readers *readers, const struct pending_table *table, pid_t pid, __u64 returned,
		      __u64 bias, struct table_words *words)
{
	const struct memory_request wanted = { .runtime = table->runtime->index,
					       .object = returned,
					       .class = table->table_address,
					       .bias = bias,
					       .pid = pid };
	size_t length;
	char *answer;
	int error = ask_memory(readers, FILE_WORDS, &wanted, "", &answer, &length);

	*words = (struct table_words){ .address = table->table_address ? table->table_address + bias : returned };
	if (error)
		return error;
	words->words = (__u64 *)answer; /* from malloc(): aligned */
	words->count = length / sizeof(__u64);
	return 0;
}
