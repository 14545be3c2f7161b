/* SPDX-License-Identifier: BSD-2-Clause */
/* What descriptions of runtimes and of drivers have in common: the built-in ones, and those of files, which replace them. */
#ifndef XPT_DESCRIBE_READER_COLLECTION_H
#define XPT_DESCRIBE_READER_COLLECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/core/link.h"
#include "base/core/log.h"

struct cJSON;
struct member;
struct reader;

/* A description that is shipped, embedded by embed.sh when the program is built. */
struct builtin_file {
	const char *name; /* "nrt.json" */
	const char *text; /* not terminated */
	size_t length;	  /* bytes */
};

extern const struct builtin_file builtin_files[]; /* of runtimes */
extern const size_t builtin_file_count;
extern const struct builtin_file builtin_drivers[];
extern const size_t builtin_driver_count;

#define DESCRIBED_MEMBERS                                          \
	char *name;	/* short and unique: "onnxruntime" */      \
	char *title;	/* "ONNX Runtime" */                       \
	char *file;	/* where it was read from, for messages */ \
	bool from_user; /* it came from a file, not from the built-in ones */

struct described {
	DESCRIBED_MEMBERS
};

/* Every description begins with it: as a whole, and its members. */
#define DESCRIBED                           \
	union {                             \
		struct described described; \
		struct {                    \
			DESCRIBED_MEMBERS   \
		};                          \
	}

struct description_kind {
	const char *what; /* "runtime": the member with its name, and in messages */
	size_t most;	  /* in a collection */
	size_t size;	  /* of the struct, which begins with DESCRIBED */
	const struct builtin_file *builtins;
	const size_t *builtin_count;
	void (*read)(struct reader *reader, const struct cJSON *document, struct described *result);
	void (*release)(struct described *described);
};

/*
 * Parses one description from text (length bytes; need not be terminated). file names it in messages.
 * A bad description is reported as "FILE:LINE: FIELD: REASON" and gives -EINVAL; -ENOMEM otherwise.
 */
int described_parse(const struct description_kind *kind, const struct log *log, const char *file, const char *text,
		    size_t length, struct described **result);
/* The first members of every description: schema, name, title, note. */
enum { DESCRIBED_SCHEMA, DESCRIBED_NAME, DESCRIBED_TITLE, DESCRIBED_NOTE };
void described_read(struct reader *reader, const struct member *members, struct described *described);
void described_clear(struct described *described);

struct collection {
	const struct description_kind *kind;
	const struct log *log;
	struct described **items; /* the built-in ones first, in the order of their names */
	size_t count;
};

/* Reads the built-in ones and those of files. -EINVAL: a bad file; -E2BIG; -ENOMEM; -errno of a file; all reported. */
int collection_read(struct collection *collection, const char *const *files, size_t file_count);
/* Takes the description over, also when it fails. */
int collection_add(struct collection *collection, struct described *described);
struct described *collection_find(const struct collection *collection, const char *name); /* NULL: unknown */
void collection_free(struct collection *collection);

#endif
