/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the collector and the processes that read files for it. Included by file_reader*.c and nothing else. */
#ifndef XPT_SESSION_READER_READERS_PRIVATE_H
#define XPT_SESSION_READER_READERS_PRIVATE_H

#include "session/reader/readers.h"

#define FILE_NAME_MAX 4096	/* bytes of a name, with its 0 */
#define FILE_DESCRIPTORS_MAX 16 /* of the process that reads many files */

/*
 * To xputrace-reader, over a socket that keeps messages apart: a byte (below) with the descriptor of a stream for the
 * new process, and that of its file (O_PATH), unless it reads many: then each request comes with a file. It replies
 * with this one, and the pidfd, unless the process has ended already.
 */
struct file_reader_started {
	__s32 error;
	__s32 pid;
};

/* From the process of a file: this, with the descriptor of one that is local; then, for a request, a reply. */
struct file_reader_opened {
	struct stat status;
	__s32 error;
	__u8 local, fuse;
};

/* A table that was read in a process that has mapped the file. */
struct file_table {
	__u64 runtime;	     /* its index */
	__u64 start, offset; /* of the mapping */
	__u64 address;	     /* of the table, in the process */
	__u64 words;
};

/* A code object: the file holds its bytes. */
struct file_code {
	__u64 size;
	__u32 hint; /* enum code_kind */
	__u32 pad;
};

/* What is read in the memory of a process. */
struct memory_request {
	__u64 runtime; /* its index */
	__u64 way;     /* FILE_NAME: index of the way to the name; the number of ways: the string at an offset */
	__u64 at;      /* that */
	__u64 object,
		class; /* addresses; FILE_WORDS: what the accessor has returned, and the table's place in the file */
	__u64 bias;    /* FILE_WORDS */
	__s32 pid;
	__u32 pad;
};

struct memory_answer {
	__s32 error;
	__u32 pad;
};

/* Before the name of the file, for messages, or that of FILE_PLACE, and the words of a table. */
struct file_reader_request {
	__u32 name; /* bytes */
	__u32 kind; /* enum file_request */
	union {
		struct file_site site;
		struct file_table table;
		struct file_code code;
		struct memory_request memory;
	};
};

enum file_request { FILE_SEARCH, FILE_SITE, FILE_TABLE, FILE_CODE, FILE_NODE, FILE_NAME, FILE_PLACE, FILE_WORDS };

#define READ_FILES 'f' /* the byte to xputrace-reader: the process reads files, or memory */
#define READ_MEMORY 'm'

/* For FILE_SITE. */
struct file_site_answer {
	__s32 error;
	__u32 pad;
	struct site site;
};

/* Before length bytes: messages (digit of the level, text, 0) of log_length bytes, and file_contents_write(), code_contents_write() or a site. */
struct file_reader_answer {
	__u64 length;
	__u64 log_length;
};

struct file_reader_process {
	int socket;
	const struct file_search *search;
};

/* Takes commands from the socket until it is closed. context: struct file_reader_process. */
void file_reader_process(void *context);

/* One message with descriptors, at most two; -1 in place of those that are missing. 0, -EPROTO: it has ended; or -errno. */
int socket_send(int socket, const void *bytes, size_t length, const int *descriptors, size_t count);
int socket_receive(int socket, void *bytes, size_t length, int *descriptors, size_t count);

#endif
