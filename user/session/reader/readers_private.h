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
	__u64 mapped; /* as in struct opened_file */
};

/* A table that was read in a process that has mapped the file. */
struct file_table {
	__u64 runtime;	     /* its index */
	__u64 start, offset; /* of the mapping */
	__u64 address;	     /* of the table, in the process */
	__u64 words;
};

/* A code object: the file holds its bytes. */
struct code_bytes_request {
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

/* What a call gives to its runtime, FILE_SOURCE_SIZE and FILE_SOURCE_COPY. */
struct source_request {
	struct code_source source;
	__u64 size; /* of the copy, or of the bytes that are shared (CODE_SOURCE_SHARED) */
	/* Of the copy in what was shared from the begin on, or in the file in memory that comes with the request. */
	__u64 offset;
};

struct source_answer {
	__u64 size, missing, first_missing;
};

/* To a process that opens a file for a call; the path comes behind it. */
struct code_file_request {
	struct code_rights rights;
	__s32 tgid;
	__s32 descriptor; /* -1: by its path */
	__u32 path;	  /* bytes */
	__u32 is_place;	  /* the file is the one that came with the command */
};

/* Its reply: bytes of the path as the process sees it, the path, and struct file_reader_opened. */
struct code_file_path {
	__u32 length;
	__u32 pad;
};

#define CODE_PATH_MAX (1u << 20)

/* Bytes that are asked for of one that is not local, answered by blocks. */
struct code_file_range {
	__u64 offset, length;
};

/* Before up to CODE_FILE_BLOCK bytes. */
struct code_file_block {
	__s32 error;
	__u32 length; /* 0: the end, or an error */
};

#define CODE_FILE_BLOCK (1u << 20)

/* Before the name of the file, for messages, or that of FILE_PLACE, and the words of a table. */
struct file_reader_request {
	__u32 name; /* bytes */
	__u32 kind; /* enum file_request */
	union {
		struct file_site site;
		struct file_table table;
		struct code_bytes_request code;
		__u64 symbol; /* its place in the file */
		struct memory_request memory;
		struct source_request source;
	};
};

enum file_request {
	FILE_SEARCH,
	FILE_SITE,
	FILE_TABLE,
	FILE_CODE,
	FILE_SYMBOL,
	FILE_NODE,
	FILE_NAME,
	FILE_PLACE,
	FILE_WORDS,
	FILE_SOURCE_SIZE,
	FILE_SOURCE_COPY
};

/* The byte to xputrace-reader: what the process reads. */
#define READ_FILES 'f'
#define READ_MEMORY 'm' /* with a file in memory for copies in place of the file */
#define READ_CODE 'c'	/* a file that a call names, or that is mapped */

/* For FILE_SYMBOL. */
struct file_symbol_answer {
	__s32 error;
	__u32 pad;
	__u64 offset; /* from its begin */
	char name[FILE_NAME_MAX + 8];
};

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

#define DYING_MAX 16  /* further ones are taken to never end */
#define SILENT_MAX 64 /* of those before the last ones it is forgotten */

/* A process with memory, or files, that timed out, or keeps its reader waiting. */
struct silent_process {
	pid_t tgid;
	__u64 waited; /* ns for it since a time */
	__u64 since;  /* that time, ns of CLOCK_MONOTONIC */
	__u64 until;  /* ns; 0: it is not silent */
};

struct file_readers {
	const struct log *log;
	struct file_search search;
	int socket;
	int patience;
	__u64 given_up;		    /* when, the last time */
	struct file_reader *shared; /* for files that only root may change; NULL: it does not run */
	struct file_reader *memory; /* the same for the memory of processes */
	struct code_spare *lent;    /* for copies; NULL: none */
	/* pidfds of processes that were killed while they copied into what is lent: until they have ended, it may change */
	int dying[DYING_MAX];
	size_t dying_count; /* more than DYING_MAX: what is lent is not used any more */
	struct silent_process silent[SILENT_MAX];
	size_t silent_count; /* in all */
};

struct file_reader {
	struct file_readers *readers;
	int socket, process; /* process: pidfd; -1: it had ended before it could be had */
	pid_t pid;
	int file;	/* of the shared one, and that of memory: what the next request is about; -1: none */
	pid_t tgid;	/* process of the call that a file is opened for */
	int local;	/* its file, to be closed, when it is local; -1: ask the process */
	bool is_remote; /* others than root can delay it */
	int waited;	/* ms that it has not run while it was waited for, if it is */
	__u64 deadline; /* ns: when it is given up unless it runs; 0: none */
	int slice;	/* ms between two looks at one with a deadline */
};

/* The process's side has ended, or is ended. */
void reader_end(struct file_reader *reader); /* NULL is allowed */
void reader_give_up(struct file_reader *reader);
/* place: -1: for many files, or memory. */
int reader_start(struct file_readers *readers, char what, int place, struct file_reader *reader);
int reader_wait(struct file_reader *reader); /* until there is something to read; -ETIMEDOUT */
int reader_receive(struct file_reader *reader, void *bytes, size_t length);
/* *result: contents of the reply behind the messages, owned by the caller. */
int reader_ask(struct file_reader *reader, struct file_reader_request *request, const char *name,
	       const struct table_words *words, char **result, size_t *length);
int reader_start_memory(struct file_readers *readers); /* it has none yet */
/* What is lent for copies, unless a process may still write to it. */
struct code_spare *reader_lent(struct file_readers *readers);
/* Of the memory of the process pid. file: that comes with the request; -1: none. *result: what follows the head of the reply. */
int reader_ask_memory(struct file_readers *readers, struct file_reader_request *request, pid_t pid, const char *name,
		      int file, char **result, size_t *length);
bool reader_is_silent(const struct file_readers *readers, pid_t pid);
void reader_note_silent(struct file_readers *readers, pid_t pid, const char *what);

/* Whether only root can delay it, by f_type. What is stacked on other file systems may be stacked on such a one. */
bool file_system_is_local(long type);

/* Takes commands from the socket until it is closed. context: struct file_reader_process. */
void file_reader_process(void *context);

/* One message with descriptors, at most two; -1 in place of those that are missing. 0, -EPROTO: it has ended; or -errno. */
int socket_send(int socket, const void *bytes, size_t length, const int *descriptors, size_t count);
int socket_receive(int socket, void *bytes, size_t length, int *descriptors, size_t count);

#endif
