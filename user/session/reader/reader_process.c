/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that read files: xputrace-reader, and one that it forks for each file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/process.h"
#include "base/file/file.h"
#include "session/reader/code_copy.h"
#include "session/reader/readers_private.h"
#include "target/process/loaded_code.h"

/* ---- descriptors over sockets ---- */

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

int socket_send(int socket, const void *bytes, size_t length, const int *descriptors, size_t count)
{
	struct iovec part = { (void *)bytes, length };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
	}
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : (size_t)sent == length ? 0 : -EPROTO;
}

int socket_receive(int socket, void *bytes, size_t length, int *descriptors, size_t count)
{
	struct iovec part = { bytes, length };
	union control control;
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *header;
	ssize_t got;

	for (size_t i = 0; i < count; i++)
		descriptors[i] = -1;
	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		size_t number = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < number; i++) {
			int descriptor;

			memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
			if (i < count)
				descriptors[i] = descriptor;
			else
				close(descriptor);
		}
	}
	return (size_t)got == length ? 0 : -EPROTO;
}

/* ---- one file ---- */

/* Messages of the search, for the collector to write. */
struct messages {
	char *text;
	size_t length;
	FILE *out;
};

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	struct messages *messages = context;

	putc('0' + level, messages->out);
	fputs(text, messages->out);
	putc('\0', messages->out);
}

bool file_system_is_local(long type)
{
	switch ((unsigned int)type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
	case SQUASHFS_MAGIC:
	case EROFS_SUPER_MAGIC_V1:
	case 0x2fc12fc1: /* ZFS */
		return true;
	default:
		return false;
	}
}

static void describe_file(int descriptor, struct file_reader_opened *opened)
{
	struct statfs system;

	opened->error = fstat(descriptor, &opened->status) ? -errno : 0;
	if (!opened->error && !S_ISREG(opened->status.st_mode))
		opened->error = -ENOENT;
	if (!fstatfs(descriptor, &system)) {
		opened->local = file_system_is_local(system.f_type);
		opened->fuse = (unsigned int)system.f_type == FUSE_SUPER_MAGIC;
	}
}

static int open_file(int place, struct file_reader_opened *opened)
{
	char path[32];
	int descriptor;
	void *mapped;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (descriptor < 0)
		return -errno;
	describe_file(descriptor, opened);
	if (!opened->error && !opened->local) {
		mapped = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, descriptor, 0);
		opened->mapped = mapped == MAP_FAILED ? 0 : (uintptr_t)mapped;
	}
	return descriptor;
}

/* The reply is written whole, or the process ends without one, which the collector sees. */
static void answer(int socket, const struct messages *messages, const void *bytes, size_t length)
{
	const struct file_reader_answer head = { messages->length + length, messages->length };

	if (!file_write(socket, &head, sizeof(head)) && !file_write(socket, messages->text, messages->length))
		file_write(socket, bytes, length);
}

static bool receive_all(int socket, void *bytes, size_t length)
{
	size_t done;

	return !file_read(socket, bytes, length, &done) && done == length;
}

static void search(const struct file_search *search, const struct mapped_file *mapped, int socket)
{
	struct messages messages = { 0 };
	const struct log log = { on_message, &messages, XPT_LOG_DEBUG };
	struct file_contents contents;
	char *bytes = NULL;
	size_t length = 0;
	FILE *out;

	messages.out = open_memstream(&messages.text, &messages.length);
	out = open_memstream(&bytes, &length);
	if (!messages.out || !out)
		_exit(1);
	file_contents_search(&log, search, mapped, &contents);
	file_contents_write(out, &contents);
	file_contents_free(&contents);
	if (!fclose(messages.out) && !fclose(out))
		answer(socket, &messages, bytes, length);
	free(messages.text);
	free(bytes);
}

static void read_table(const struct file_search *search, const struct file_table *table, struct mapped_file *mapped,
		       int socket)
{
	struct table_words words = { .address = table->address, .count = table->words };
	struct messages messages = { 0 };
	const struct log log = { on_message, &messages, XPT_LOG_DEBUG };
	struct file_contents contents = { 0 };
	char *bytes = NULL;
	size_t length = 0;
	FILE *out;

	words.words = table->words > TABLE_WORDS_MAX ? NULL : calloc(table->words ?: 1, sizeof(*words.words));
	messages.out = open_memstream(&messages.text, &messages.length);
	out = open_memstream(&bytes, &length);
	if (!words.words || !messages.out || !out || table->runtime >= search->registry->runtime_count ||
	    !receive_all(socket, words.words, words.count * sizeof(*words.words)))
		_exit(1);
	mapped->start = table->start;
	mapped->offset = table->offset;
	if (functions_add_table(&log, search->registry, mapped, search->registry->runtimes[table->runtime], &words,
				&contents.found))
		memset(&contents.found, 0, sizeof(contents.found));
	file_contents_write(out, &contents);
	file_contents_free(&contents);
	free(words.words);
	if (!fclose(messages.out) && !fclose(out))
		answer(socket, &messages, bytes, length);
	free(messages.text);
	free(bytes);
}

static void find_site(const struct file_site *wanted, const struct mapped_file *mapped, int socket)
{
	struct file_site_answer found = { 0 };
	struct elf_file *elf = NULL;
	__u64 address;

	found.error = mapped_file_elf(NULL, mapped, &elf);
	if (!found.error)
		found.error = elf_file_address(elf, wanted->offset, &address);
	if (!found.error)
		found.error = wanted->after ? site_choose_after(elf, address, &found.site) :
					      site_choose(elf, address, wanted->arguments, &found.site);
	elf_file_close(elf);
	answer(socket, &(const struct messages){ 0 }, &found, sizeof(found));
}

static void read_code(const struct code_bytes_request *code, int descriptor, int socket)
{
	void *bytes = code->size ? mmap(NULL, code->size, PROT_READ, MAP_PRIVATE, descriptor, 0) : "";
	struct code_contents contents;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out || bytes == MAP_FAILED || code_read(bytes, code->size, code->hint, &contents))
		_exit(1);
	code_contents_write(out, &contents);
	if (!fclose(out))
		answer(socket, &(const struct messages){ 0 }, text, length);
	_exit(0);
}

/* Of a process that has one file: its symbols are kept. */
static void find_symbol(__u64 at, int descriptor, int socket)
{
	static struct symbol_table *table;
	struct file_symbol_answer found = { 0 };

	if (!table)
		found.error = symbol_table_read(NULL, descriptor, "", &table);
	if (!found.error)
		found.error = symbol_table_find(table, at, found.name, FILE_SYMBOL_MAX + 1, &found.offset);
	if (!found.error && !found.offset)
		kernel_name_of_stub(found.name);
	else if (table && (!found.error || found.error == -ENOENT) &&
		 !symbol_table_registered(table, at, found.name, FILE_SYMBOL_MAX + 1))
		found.error = 0, found.offset = 0;
	answer(socket, &(const struct messages){ 0 }, &found, sizeof(found));
}

/* Nothing is read with rights: the collector gets a message in place of a reply. */
static void refuse(int socket, int error)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "%dfiles cannot be read: no rights can be given up: %s",
			      XPT_LOG_ERROR, strerror(-error));

	answer(socket, &(const struct messages){ .text = text, .length = length + 1 }, "", 0);
}

/* What follows a request, which has come: its name, and what it asks for. */
static bool serve(const struct file_search *given, struct file_reader_request *request, int descriptor, int socket)
{
	char name[FILE_NAME_MAX];
	struct mapped_file mapped = { .path = name, .descriptor = descriptor };

	if (request->name >= sizeof(name) || !receive_all(socket, name, request->name))
		return false;
	name[request->name] = '\0';
	if (request->kind == FILE_SITE)
		find_site(&request->site, &mapped, socket);
	else if (request->kind == FILE_SYMBOL)
		find_symbol(request->symbol, descriptor, socket);
	else if (request->kind == FILE_CODE)
		read_code(&request->code, descriptor, socket);
	else if (request->kind == FILE_TABLE)
		read_table(given, &request->table, &mapped, socket);
	else
		search(given, &mapped, socket);
	return true;
}

static void read_one(const struct file_reader_process *process, int place, int socket)
{
	struct file_reader_opened opened = { 0 };
	struct file_reader_request request;
	int descriptor = open_file(place, &opened), error;

	if (descriptor < 0)
		opened.error = descriptor;
	if (socket_send(socket, &opened, sizeof(opened), &descriptor, !opened.error && opened.local) || opened.error)
		return;
	error = confine(0);
	if (error)
		refuse(socket, error);
	while (!error && receive_all(socket, &request, sizeof(request)) &&
	       serve(process->search, &request, descriptor, socket) && request.kind == FILE_SYMBOL)
		;
}

/* Files that only root may change, one after the other: each comes with its request. */
static void read_many(const struct file_reader_process *process, int socket)
{
	struct file_reader_request request;
	int error = confine(FILE_DESCRIPTORS_MAX), descriptor;
	bool more = !error;

	if (error)
		refuse(socket, error);
	while (more && !socket_receive(socket, &request, sizeof(request), &descriptor, 1) && descriptor >= 0) {
		more = serve(process->search, &request, descriptor, socket);
		close(descriptor);
	}
}

/* ---- memory ---- */

static void read_in_memory(const struct registry *registry, const struct file_reader_request *request, int socket)
{
	const struct memory_request *wanted = &request->memory;
	const struct description *runtime = registry && wanted->runtime < registry->runtime_count ?
						    registry->runtimes[wanted->runtime] :
						    NULL;
	struct {
		struct memory_answer head;
		union {
			struct operator_node node;
			char name[OBJECT_NAME_MAX + 1];
			struct name_place place;
			__u64 words[TABLE_WORDS_MAX];
		};
	} *reply = calloc(1, sizeof(*reply));
	struct table_words words = { 0 };
	char name[OBJECT_NAME_MAX + 1];
	size_t length = 0;

	if (!runtime || !reply || request->name >= sizeof(name) || !receive_all(socket, name, request->name))
		_exit(1);
	name[request->name] = '\0';
	if (request->kind == FILE_NODE) {
		length = sizeof(reply->node);
		reply->head.error = object_node_read(&runtime->operators, wanted->pid, wanted->object, wanted->class,
						     &reply->node);
	} else if (request->kind == FILE_NAME) {
		const struct name_way at = { .kind = NAME_STRING, .at = (unsigned int)wanted->at };

		length = sizeof(reply->name);
		reply->head.error = object_name_read(wanted->way < runtime->name_count ? &runtime->names[wanted->way] :
											 &at,
						     wanted->pid, wanted->object, reply->name);
	} else if (request->kind == FILE_PLACE) {
		length = sizeof(reply->place);
		reply->head.error = object_name_find(wanted->pid, wanted->object, name, &reply->place);
	} else {
		reply->head.error = functions_read_table(&(struct pending_table){ .runtime = runtime,
										  .table_address = wanted->class },
							 wanted->pid, wanted->object, wanted->bias, &words);
		if (!reply->head.error) {
			length = (words.count < TABLE_WORDS_MAX ? words.count : TABLE_WORDS_MAX) * sizeof(__u64);
			memcpy(reply->words, words.words, length);
		}
		table_words_free(&words);
	}
	answer(socket, &(const struct messages){ 0 }, reply, sizeof(reply->head) + length);
	free(reply);
}

/* Memory that is shared with the collector, for copies. NULL: there is none. */
static unsigned char *map_shared(int memory, size_t size)
{
	void *bytes = memory < 0 || !size ? MAP_FAILED :
					    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

struct shared_bytes {
	const unsigned char *bytes;
	__u64 size;
};

static int read_shared(void *context, __u64 offset, void *to, size_t length)
{
	const struct shared_bytes *shared = context;

	if (offset > shared->size || length > shared->size - offset)
		return -EFAULT;
	memcpy(to, shared->bytes + offset, length);
	return 0;
}

static int size_source(const struct source_request *wanted, const unsigned char *shared, __u64 *size)
{
	const struct code_source *source = &wanted->source;
	const struct code_memory memory = { source->tgid, source->deadline, source->limit };
	struct shared_bytes bytes = { shared, wanted->size < CODE_READY_SIZE ? wanted->size : CODE_READY_SIZE };

	switch (source->kind) {
	case CODE_SOURCE_SHARED:
		return shared ? code_own_size(read_shared, &bytes, source->limit, size) : -ENODATA;
	case CODE_SOURCE_HEADER:
		return code_memory_size(&memory, source->address, size);
	case CODE_SOURCE_TEXT:
		return code_memory_text(&memory, source->address, size);
	case CODE_SOURCE_PARTS:
		return code_memory_parts_size(&memory, source->address, source->sizes, source->count, size);
	default:
		return -EINVAL;
	}
}

/* own: a file in memory of the copy alone; -1: it is in what is shared. */
static int copy_source(const struct source_request *wanted, unsigned char *shared, int own, struct source_answer *reply)
{
	const struct code_source *source = &wanted->source;
	const struct code_memory memory = { source->tgid, source->deadline, source->limit };
	struct code_copy copy = { .size = wanted->size, .borrowed = own < 0 };
	int error = 0;

	if (own >= 0)
		copy.bytes = map_shared(own, wanted->size);
	else if (shared && wanted->offset <= CODE_READY_SIZE + CODE_SPARE_SIZE &&
		 wanted->size <= CODE_READY_SIZE + CODE_SPARE_SIZE - wanted->offset)
		copy.bytes = shared + wanted->offset;
	if (!copy.bytes)
		return -ENOMEM;
	if (source->kind == CODE_SOURCE_PARTS)
		error = code_memory_parts(&memory, source->address, source->sizes, source->count, &copy);
	else
		code_memory_copy(&memory, source->address, &copy);
	*reply = (struct source_answer){ copy.size, copy.missing, copy.first_missing };
	if (own >= 0)
		munmap(copy.bytes, wanted->size);
	return error;
}

static void read_source(const struct file_reader_request *request, unsigned char *shared, int own, int socket)
{
	struct {
		struct memory_answer head;
		struct source_answer source;
	} reply = { 0 };

	if (request->kind == FILE_SOURCE_SIZE)
		reply.head.error = size_source(&request->source, shared, &reply.source.size);
	else
		reply.head.error = copy_source(&request->source, shared, own, &reply.source);
	answer(socket, &(const struct messages){ 0 }, &reply, sizeof(reply));
}

static void read_memory(const struct file_reader_process *process, int memory, int socket)
{
	unsigned char *shared = map_shared(memory, CODE_READY_SIZE + CODE_SPARE_SIZE);
	struct file_reader_request request;
	int error = confine_to_memory(FILE_DESCRIPTORS_MAX), descriptor;

	if (error)
		refuse(socket, error);
	while (!error && !socket_receive(socket, &request, sizeof(request), &descriptor, 1)) {
		if (request.kind >= FILE_SOURCE_SIZE)
			read_source(&request, shared, descriptor, socket);
		else
			read_in_memory(process->search->registry, &request, socket);
		if (descriptor >= 0)
			close(descriptor);
	}
}

/* ---- files of calls ---- */

static int open_code(const struct code_file_request *request, const char *path, int place, int socket, char **absolute)
{
	int descriptor;

	if (request->is_place)
		return place < 0 ? -EBADF : code_file_open_place(place);
	if (request->descriptor < 0)
		return code_file_open(request->tgid, &request->rights, path, absolute);
	descriptor = code_file_take(request->tgid, request->descriptor, absolute);
	/* The call may go on. */
	if (file_write(socket, "", 1))
		_exit(1);
	return descriptor < 0 ? descriptor : code_file_check(descriptor);
}

/* Length bytes at an offset, or up to the end. */
static void send_range(int descriptor, const struct code_file_range *range, unsigned char *bytes, int socket)
{
	__u64 done = 0;

	while (done < range->length) {
		size_t wanted = range->length - done < CODE_FILE_BLOCK ? range->length - done : CODE_FILE_BLOCK;
		ssize_t got = pread(descriptor, bytes, wanted, (off_t)(range->offset + done));
		const struct code_file_block block = { got < 0 ? -errno : 0, got < 0 ? 0 : got };

		if (file_write(socket, &block, sizeof(block)))
			_exit(1);
		if (got <= 0)
			return;
		if (file_write(socket, bytes, got))
			_exit(1);
		done += got;
	}
}

/* Opens what is asked for, and replies. *descriptor: of a file that is not local, to be read here; else -1. */
static bool reply_opened(const struct code_file_request *request, const char *path, int place, int socket,
			 int *descriptor)
{
	struct file_reader_opened opened = { 0 };
	struct code_file_path head = { 0 };
	char *absolute = NULL;
	bool good;

	*descriptor = open_code(request, path, place, socket, &absolute);
	if (*descriptor < 0)
		opened.error = *descriptor;
	else
		describe_file(*descriptor, &opened);
	if (absolute && strlen(absolute) <= CODE_PATH_MAX)
		head.length = strlen(absolute);
	good = !file_write(socket, &head, sizeof(head)) && !file_write(socket, absolute ?: "", head.length) &&
	       !socket_send(socket, &opened, sizeof(opened), descriptor, !opened.error && opened.local);
	free(absolute);
	return good && !opened.error && !opened.local;
}

static void read_code_file(int place, int socket)
{
	struct code_file_request request;
	struct code_file_range range;
	unsigned char *bytes = malloc(CODE_FILE_BLOCK);
	char *path = NULL;
	int descriptor;

	if (receive_all(socket, &request, sizeof(request)) && request.path <= CODE_PATH_MAX)
		path = calloc(1, request.path + 1);
	if (bytes && path && receive_all(socket, path, request.path) &&
	    reply_opened(&request, path, place, socket, &descriptor) && !confine(0)) {
		while (receive_all(socket, &range, sizeof(range)))
			send_range(descriptor, &range, bytes, socket);
	}
	free(path);
	free(bytes);
}

/* ---- all of them ---- */

static _Noreturn void be_reader(const struct file_reader_process *process, char what, const int descriptors[2])
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, what == READ_MEMORY ? "xputrace-memory" :
			   what == READ_CODE   ? "xputrace-code" :
			   descriptors[1] >= 0 ? "xputrace-file" :
						 "xputrace-files");
	close(process->socket);
	if (what == READ_MEMORY)
		read_memory(process, descriptors[1], descriptors[0]);
	else if (what == READ_CODE)
		read_code_file(descriptors[1], descriptors[0]);
	else if (descriptors[1] >= 0)
		read_one(process, descriptors[1], descriptors[0]);
	else
		read_many(process, descriptors[0]);
	_exit(0);
}

void file_reader_process(void *context)
{
	const struct file_reader_process *process = context;
	struct file_reader_started started;
	int descriptors[2], handle, error = 0;
	char byte;

	signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
	while (!error && !socket_receive(process->socket, &byte, 1, descriptors, 2)) {
		pid_t pid = fork();

		if (!pid)
			be_reader(process, byte, descriptors);
		started = (struct file_reader_started){ pid < 0 ? -errno : 0, pid };
		/* It may have ended already. */
		handle = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
		error = socket_send(process->socket, &started, sizeof(started), &handle, handle >= 0);
		/* The collector waits for an answer, or for the end of this process. */
		if (error) {
			started = (struct file_reader_started){ .error = error };
			error = socket_send(process->socket, &started, sizeof(started), NULL, 0);
		}
		for (int i = 0; i < 2; i++)
			if (descriptors[i] >= 0)
				close(descriptors[i]);
		if (handle >= 0)
			close(handle);
	}
}
