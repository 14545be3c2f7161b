/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of traced processes are read by processes of their own, one a file: its contents can at most cause a wrong
 * result for this file, and a file system that hangs delays nothing else.
 *
 * A process that was forked when the session was made (xputrace-reader) forks one for each file. That opens it, with
 * the rights of root, hands the descriptor over, and gives up all rights before it reads the first byte: a user of its
 * own, no capabilities, and a seccomp filter that leaves it reading of what is open and memory. Files that only root
 * may change share one process, which does not open them.
 */
#ifndef XPT_SESSION_READER_READERS_H
#define XPT_SESSION_READER_READERS_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "session/reader/code_copy.h"
#include "session/reader/contents.h"
#include "target/process/objects.h"

#define FILE_SYMBOL_MAX 4096 /* bytes of a name; longer ones are left out by target/elf/file.h */

struct file_readers;

/* What search points to stays unchanged while they run. -errno. */
int file_readers_start(const struct log *log, const struct file_search *search, struct file_readers **result);
void file_readers_stop(struct file_readers *readers);

/* One file, opened. */
struct file_reader;

struct opened_file {
	int descriptor; /* for the caller to close; of one that is not local a place only (O_PATH), as close() may wait, too */
	struct stat status;
	bool is_local; /* of a file system that cannot hang: it may be opened and read by anybody */
	bool is_fuse;  /* served by a process */
	/* Of one that is not local: where the process that reads it has mapped its begin, until it is searched; 0: it cannot be mapped. */
	__u64 mapped;
};

/*
 * Opens the file that place, a descriptor of it (O_PATH), stands for, without waiting for leases. -ETIMEDOUT: its file
 * system timed out; -EPROTO: the process has ended; or what open() gives.
 */
int file_reader_open(struct file_readers *readers, int place, struct opened_file *opened, struct file_reader **result);
/* The same for a regular file that is open, on a local file system, and may be changed by root only. */
int file_reader_share(struct file_readers *readers, int descriptor, struct file_reader **result);
/* Searches it for what can be traced, once. name: for messages. Errors as above, -ENOMEM. */
int file_reader_search(struct file_reader *reader, const char *name, struct file_contents *contents);
/* Where a probe would go. */
struct file_site {
	__u64 offset;	 /* in the file */
	__u32 arguments; /* as for site_choose() */
	__u32 after;	 /* not 0: behind the call that returns there, as site_choose_after() */
};

/* As site_choose() and site_choose_after(), or an error as above. */
int file_reader_site(struct file_readers *readers, int place, const struct file_site *wanted, struct site *site);
/*
 * The symbol at a place in the file, as symbol_table_find(); one that begins there with its name as that of a kernel (kernel_name_of_stub()).
 * Of a reader that was opened for this alone, and may be asked again.
 */
int file_reader_symbol(struct file_reader *reader, __u64 at, char name[FILE_SYMBOL_MAX + 1], __u64 *offset);
/*
 * The functions of a table that was read in a process: mapped is open, and has its address there. As
 * functions_add_table(), or an error as above.
 */
int file_reader_table(struct file_readers *readers, const struct mapped_file *mapped, const struct description *runtime,
		      const struct table_words *words, struct found_functions *found);
/*
 * What is in a code object, as code_read(), by a process that is there for this one alone. bytes: a file in memory (memfd) that holds
 * it. search is not needed. Errors as above.
 */
int file_reader_code(struct file_readers *readers, int bytes, __u64 size, enum code_kind hint,
		     struct code_contents *contents);
pid_t file_reader_pid(const struct file_reader *reader);
void file_reader_close(struct file_reader *reader); /* may be NULL */

/*
 * As object_node_read(), object_name_read() with a way of the runtime, or with the string at an offset,
 * object_name_find(), and functions_read_table(): by a process that can only read memory, as reading the pages of a
 * process may hang. -ETIMEDOUT: it does, which has been reported; it is not read again for a minute. Errors as above.
 */
int file_reader_node(struct file_readers *readers, const struct description *runtime, pid_t pid, __u64 object,
		     __u64 class, struct operator_node *node);
int file_reader_name(struct file_readers *readers, const struct description *runtime, size_t way, pid_t pid,
		     __u64 object, char name[OBJECT_NAME_MAX + 1]);
int file_reader_name_at(struct file_readers *readers, const struct description *runtime, __u64 at, pid_t pid,
			__u64 object, char name[OBJECT_NAME_MAX + 1]);
int file_reader_place(struct file_readers *readers, const struct description *runtime, pid_t pid, __u64 object,
		      const char *name, struct name_place *place);
int file_reader_words(struct file_readers *readers, const struct pending_table *table, pid_t pid, __u64 returned,
		      __u64 bias, struct table_words *words);

/* Where bytes are that a process gives to a runtime, while its call waits. */
struct code_source {
	enum {
		CODE_SOURCE_BYTES,
		CODE_SOURCE_HEADER, /* as many as their own header says */
		CODE_SOURCE_TEXT,   /* up to a 0 byte */
		CODE_SOURCE_PARTS,  /* from arrays: as code_memory_parts() */
		CODE_SOURCE_SHARED, /* of no process: file_reader_header_size() */
	} kind;
	pid_t tgid;
	__u64 deadline; /* ns of CLOCK_MONOTONIC */
	__u64 limit;	/* bytes */
	__u64 address, sizes, count;
};

/* Memory that copies are made in; it outlives the readers. Before the first of the following ones. */
void file_readers_lend(struct file_readers *readers, struct code_spare *spare);
/* How many they are: as code_memory_size(), code_memory_text(), code_memory_parts_size(), or an error as above. */
int file_reader_source_size(struct file_readers *readers, const struct code_source *source, __u64 *size);
/* Of an object, by its header: the first length bytes of it, as many as are there. -EBUSY: later. */
int file_reader_header_size(struct file_readers *readers, const void *bytes, size_t length, __u64 *size);
/* Copies size of them, as code_memory_copy() and code_memory_parts(). After an error there is no copy. */
int file_reader_source_copy(struct file_readers *readers, const struct code_source *source, size_t size,
			    struct code_copy *copy);

/*
 * Opens the files that a program gives to a runtime, without being led elsewhere or made to do harm. By a process of its own, as file
 * systems may hang (file_reader_code_start()).
 */

/* Rights to files that a thread had when it made the call. */
struct code_rights {
	uid_t uid;
	gid_t gid;
	bool reads_all; /* every file of the machine */
};

/*
 * Opens the regular file at path as the process sees it, with its rights, and its supplementary groups if it is still the same
 * user; links do not lead out of its root. absolute
 * gets the path from its root, to be freed. Gives a descriptor, or -ENOENT, -EACCES and so on; -ENOTSUP: it is no
 * regular file, or one that the kernel makes up; -ENOMEM. absolute is set after an error, too, but for -ENOMEM and
 * -ESRCH.
 */
int code_file_open(pid_t tgid, const struct code_rights *rights, const char *path, char **absolute);
/*
 * The same of an open file of the process: the very descriptor, which gives no more rights than it has. Waits for nobody. -EBADF: it
 * has none of that number.
 */
int code_file_take(pid_t tgid, int number, char **absolute);
/* The descriptor, if it is to be read from; else it is closed. -EBADF: it may not be; -ENOTSUP as above. */
int code_file_check(int descriptor);
/* What place, which is closed, stands for (O_PATH, so that nothing has happened to what is there). As code_file_open(). */
int code_file_open_place(int place);

/* A file with a code object. */
struct code_file_wanted {
	pid_t tgid;
	struct code_rights rights;
	const char *path; /* as code_file_open(); NULL: another one */
	int descriptor;	  /* of the process, as code_file_open_descriptor(); -1: another one */
	int place;	  /* of the file (O_PATH); -1: another one */
};

/*
 * Has a process open it, which waits for nobody else, and does not wait for that; of a descriptor, it is that process's
 * when this returns. -ETIMEDOUT: files of the process timed out, which has been reported; or other errors.
 */
int file_reader_code_start(struct file_readers *readers, const struct code_file_wanted *wanted,
			   struct file_reader **result);
/*
 * What became of it: status, or an error of these functions, and the path from its root, to be freed, or NULL. readers: of this thread.
 */
int file_reader_code_opened(struct file_readers *readers, struct file_reader *reader, struct stat *status, char **path);
/* Reads up to length bytes, fewer at its end: *done. 0, also then, or an error. */
int file_reader_code_bytes(struct file_reader *reader, __u64 offset, unsigned char *bytes, size_t length, size_t *done);

#endif
