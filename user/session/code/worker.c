/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/worker.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/core/process.h"
#include "base/core/vec.h"
#include "session/reader/readers.h"

#define FILE_MAX (1ull << 30) /* bytes of a file that are read */
#define HEAD_MAX (64u << 10)  /* of one that is larger */
#define OPENED_MAX 256	      /* files that may be opened before it is their turn */

/* Bytes kept of one process. */
struct process_bytes {
	pid_t tgid;
	__u64 bytes;
};

struct code_worker {
	struct code_worker_options options;
	struct code_spare spare;
	struct file_readers *readers; /* of the thread */
	pthread_t thread;
	pthread_mutex_t lock; /* for all that follows up to the blank line */
	pthread_cond_t changed;
	struct code_load *first, **last; /* to be done */
	struct code_load *done, **done_last;
	__u64 queued;  /* bytes of those to be done, with the current one */
	size_t opened; /* of these, those with a reader */
	bool busy, ending;
	void *objects; /* tree, by hash */
	int error;

	struct process_bytes *processes; /* of the thread */
	size_t process_count;
	__u64 total;
};

static int compare(const void *a, const void *b)
{
	const struct code_object *one = a, *other = b;

	return strcmp(one->sha256, other->sha256);
}

static void object_free(struct code_object *object)
{
	code_contents_free(&object->contents);
	code_copy_free(&object->copy);
	free(object);
}

/* ---- the bytes ---- */

/* Up to length bytes at the file's offset. */
static void read_file(struct code_load *load, __u64 length)
{
	struct code_copy *copy = &load->copy;
	size_t done;
	int error;

	if (code_copy_make(length, copy)) {
		code_load_set_error(load, "no memory for its bytes");
		load->missing = length;
		return;
	}
	error = file_reader_code_bytes(load->reader, load->offset, copy->bytes, length, &done);
	load->missing = load->zeros = length - done;
	if (error)
		code_load_set_error(load, "cannot be read: %s",
				    error == -ETIMEDOUT ? "its file system does not answer" : strerror(-error));
	else if (done < length)
		code_load_set_error(load, "the file has become shorter");
}

static void take_bytes(struct code_load *load, const struct stat *status)
{
	__u64 length, whole;

	if ((__u64)status->st_size < load->offset) {
		code_load_set_error(load, "lies behind the end of the file");
		load->incomplete = true;
		return;
	}
	whole = status->st_size - load->offset;
	if (load->size && load->size > whole)
		code_load_set_error(load, "does not end before the file");
	length = load->size && load->size < whole ? load->size : whole;
	read_file(load, length <= FILE_MAX ? length : HEAD_MAX);
	if (length > FILE_MAX) {
		load->missing += length - HEAD_MAX;
		load->over_limit = true;
		code_load_set_error(load, "too large to be looked at");
	}
	if (load->size > length)
		load->missing += load->size - length;
	load->incomplete = load->missing;
}

static void take_file(struct code_worker *worker, struct code_load *load)
{
	const struct code_file_wanted wanted = {
		.tgid = load->tgid,
		.rights = load->rights,
		.path = load->place < 0 ? load->path : NULL,
		.descriptor = -1,
		.place = load->place,
	};
	struct stat status;
	char *path = NULL;
	int error = load->reader ? 0 : file_reader_code_start(worker->readers, &wanted, &load->reader);

	if (!error)
		error = file_reader_code_opened(worker->readers, load->reader, &status, &path);
	if (path && load->place < 0) {
		free(load->path);
		load->path = path;
	} else {
		free(path);
	}
	if (error)
		code_load_set_file_error(load, error);
	else
		take_bytes(load, &status);
	file_reader_close(load->reader);
	load->reader = NULL;
	/* The load itself may stay until the end. */
	if (load->place >= 0)
		close(load->place);
	load->place = -1;
}

/* ---- what is kept ---- */

static __u64 *process_bytes(struct code_worker *worker, pid_t tgid)
{
	for (size_t i = 0; i < worker->process_count; i++) {
		if (worker->processes[i].tgid == tgid)
			return &worker->processes[i].bytes;
	}
	if (vec_push(worker->processes, worker->process_count, (struct process_bytes){ .tgid = tgid }))
		return NULL;
	return &worker->processes[worker->process_count - 1].bytes;
}

static bool is_wanted(const struct code_worker *worker, const struct code_load *load)
{
	return worker->options.mode == XPT_CODEOBJ_COPY_ALL ||
	       (worker->options.mode == XPT_CODEOBJ_COPY_MEMORY && !load->path);
}

/* Which limit is in the way; NULL: none. */
static const char *over(const struct code_worker *worker, __u64 of_process, __u64 size)
{
	if (size > worker->options.object_limit)
		return "not kept: larger than one object may be";
	if (size > worker->options.process_limit - of_process)
		return "not kept: its process has too many bytes";
	if (size > worker->options.total_limit - worker->total)
		return "not kept: there are too many bytes";
	return NULL;
}

static void write_object(struct code_worker *worker, struct code_load *load, struct code_object *object)
{
	char name[CODE_STORE_NAME_SIZE];
	int error = code_store_put(worker->options.store, object->contents.kind, object->sha256, load->copy.bytes,
				   object->size, name);

	object->stored = !error;
	if (!error)
		return;
	code_load_set_error(load, "cannot be written: %s", strerror(-error));
	pthread_mutex_lock(&worker->lock);
	worker->error = worker->error ?: error;
	pthread_mutex_unlock(&worker->lock);
}

/* What is incomplete has no name in the folder. */
static void keep(struct code_worker *worker, struct code_load *load, struct code_object *object)
{
	__u64 *of_process;
	const char *limit;

	if (object->stored || object->copy.bytes || !object->size || !is_wanted(worker, load))
		return;
	if (worker->options.store && !*object->sha256)
		return;
	of_process = process_bytes(worker, load->tgid);
	limit = of_process ? over(worker, *of_process, object->size) : "not kept: no memory";
	if (limit) {
		load->over_limit = true;
		code_load_set_error(load, "%s", limit);
		return;
	}
	if (worker->options.store) {
		write_object(worker, load, object);
		if (!object->stored)
			return;
	} else {
		pthread_mutex_lock(&worker->lock);
		object->copy = load->copy;
		pthread_mutex_unlock(&worker->lock);
		load->copy = (struct code_copy){};
	}
	*of_process += object->size;
	worker->total += object->size;
}

/* ---- one load ---- */

/* The object with the hash, which is the load's from here on; NULL: there is none yet. */
static struct code_object *find(struct code_worker *worker, const char *sha256)
{
	struct code_object key, **found;

	memcpy(key.sha256, sha256, sizeof(key.sha256));
	pthread_mutex_lock(&worker->lock);
	found = *sha256 ? tfind(&key, &worker->objects, compare) : NULL;
	if (found)
		(*found)->loads++;
	pthread_mutex_unlock(&worker->lock);
	return found ? *found : NULL;
}

/* By a process without rights. Its failure is the object's error. */
static int read_contents(struct code_worker *worker, const struct code_load *load, struct code_contents *contents)
{
	const struct code_copy *copy = &load->copy;
	int bytes = memfd_create("xputrace-code", MFD_CLOEXEC);
	int error = bytes < 0 ? -errno : file_write(bytes, copy->bytes, copy->size);

	if (!error)
		error = file_reader_code(worker->readers, bytes, copy->size, load->hint, contents);
	if (bytes >= 0)
		close(bytes);
	if (!error || error == -ENOMEM)
		return error;
	*contents = (struct code_contents){ .kind = load->hint };
	if (asprintf(&contents->error, "cannot be read: %s",
		     error == -EPROTO ? "the process that read it has ended" : strerror(-error)) < 0)
		contents->error = NULL;
	return 0;
}

static struct code_object *make(struct code_worker *worker, const struct code_load *load, const char *sha256)
{
	struct code_object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	memcpy(object->sha256, sha256, sizeof(object->sha256));
	object->size = load->copy.size;
	object->loads = 1;
	if (read_contents(worker, load, &object->contents)) {
		object_free(object);
		return NULL;
	}
	if (!*sha256)
		return object;
	pthread_mutex_lock(&worker->lock);
	if (!tsearch(object, &worker->objects, compare)) {
		object_free(object);
		object = NULL;
	}
	pthread_mutex_unlock(&worker->lock);
	return object;
}

static void work(struct code_worker *worker, struct code_load *load)
{
	char sha256[CODE_HASH_SIZE] = "";
	struct code_object *object;

	if (load->in_file)
		take_file(worker, load);
	if (!load->incomplete && code_hash_bytes(load->copy.bytes, load->copy.size, sha256))
		code_load_set_error(load, "cannot be hashed");
	object = find(worker, sha256) ?: make(worker, load, sha256);
	if (object)
		keep(worker, load, object);
	else
		log_warn(worker->options.log, "PID %d: nothing is known of an object of %zu bytes: %s", load->tgid,
			 load->copy.size, strerror(ENOMEM));
	load->object = object;
	code_copy_free(&load->copy);
}

/* With the lock. While there is none, memory is made ready for what comes. NULL: there will be no more. */
static struct code_load *next_load(struct code_worker *worker)
{
	bool populating = true;

	while (!worker->first && !worker->ending) {
		if (!populating) {
			pthread_cond_wait(&worker->changed, &worker->lock);
			continue;
		}
		pthread_mutex_unlock(&worker->lock);
		populating = code_spare_populate(&worker->spare);
		pthread_mutex_lock(&worker->lock);
	}
	return worker->first;
}

static void *run(void *context)
{
	struct code_worker *worker = context;
	struct code_load *load;
	__u64 bytes;
	bool opened;

	pthread_mutex_lock(&worker->lock);
	while ((load = next_load(worker))) {
		worker->first = load->next;
		if (!load->next)
			worker->last = &worker->first;
		worker->busy = true;
		bytes = load->copy.size;
		opened = load->reader;
		pthread_mutex_unlock(&worker->lock);
		work(worker, load);
		pthread_mutex_lock(&worker->lock);
		worker->busy = false;
		worker->queued -= bytes;
		worker->opened -= opened;
		load->next = NULL;
		*worker->done_last = load;
		worker->done_last = &load->next;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

/* ---- the other side ---- */

int code_worker_start(const struct code_worker_options *options, struct code_worker **result)
{
	struct code_worker *worker = calloc(1, sizeof(*worker));
	int error;

	if (!worker)
		return -ENOMEM;
	worker->options = *options;
	worker->last = &worker->first;
	worker->done_last = &worker->done;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	code_spare_open(&worker->spare, options->ready);
	error = file_readers_start(options->log, &(const struct file_search){ 0 }, &worker->readers);
	if (!error)
		error = thread_start(&worker->thread, run, worker, "xpt-codeobj");
	if (error) {
		file_readers_stop(worker->readers);
		code_spare_close(&worker->spare);
		pthread_cond_destroy(&worker->changed);
		pthread_mutex_destroy(&worker->lock);
		free(worker);
		return error;
	}
	*result = worker;
	return 0;
}

__u64 code_worker_room(struct code_worker *worker)
{
	__u64 room;

	pthread_mutex_lock(&worker->lock);
	room = CODE_QUEUE_BYTES > worker->queued ? CODE_QUEUE_BYTES - worker->queued : 0;
	pthread_mutex_unlock(&worker->lock);
	return room;
}

bool code_worker_may_open(struct code_worker *worker)
{
	bool may;

	pthread_mutex_lock(&worker->lock);
	may = worker->opened < OPENED_MAX;
	pthread_mutex_unlock(&worker->lock);
	return may;
}

struct code_spare *code_worker_spare(struct code_worker *worker)
{
	return &worker->spare;
}

void code_worker_add(struct code_worker *worker, struct code_load *load)
{
	pthread_mutex_lock(&worker->lock);
	load->next = NULL;
	*worker->last = load;
	worker->last = &load->next;
	worker->queued += load->copy.size;
	worker->opened += load->reader != NULL;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

struct code_load *code_worker_take(struct code_worker *worker)
{
	struct code_load *load;

	pthread_mutex_lock(&worker->lock);
	load = worker->done;
	if (load) {
		worker->done = load->next;
		if (!load->next)
			worker->done_last = &worker->done;
	}
	pthread_mutex_unlock(&worker->lock);
	return load;
}

void code_worker_wait(struct code_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (worker->first || worker->busy)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

void code_worker_release(struct code_worker *worker, struct code_load *load)
{
	struct code_object *object = load->object;

	load->object = NULL;
	if (!object)
		return;
	pthread_mutex_lock(&worker->lock);
	if (--object->loads) {
		object = NULL;
	} else if (*object->sha256) {
		tdelete(object, &worker->objects, compare);
	}
	pthread_mutex_unlock(&worker->lock);
	if (object)
		object_free(object);
}

int code_worker_error(struct code_worker *worker)
{
	int error;

	pthread_mutex_lock(&worker->lock);
	error = worker->error;
	pthread_mutex_unlock(&worker->lock);
	return error;
}

void code_worker_free(struct code_worker *worker)
{
	struct code_load *load;

	if (!worker)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->ending = true;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	while ((load = code_worker_take(worker))) {
		code_worker_release(worker, load);
		code_load_free(load);
	}
	file_readers_stop(worker->readers);
	code_spare_close(&worker->spare);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker->processes);
	free(worker);
}
