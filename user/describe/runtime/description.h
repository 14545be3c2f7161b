/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runtime descriptions: what the functions of a runtime mean, as data (user/runtimes/ NAME.json; the format is
 * documented in user/runtimes/FORMAT.md).
 */
#ifndef XPT_DESCRIBE_RUNTIME_DESCRIPTION_H
#define XPT_DESCRIBE_RUNTIME_DESCRIPTION_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"
#include "bpf/wire.h"
#include "code/format/object.h"
#include "describe/reader/collection.h"

/* How a function is found in a mapped file. */
enum locate_kind {
	LOCATE_SYMBOL,	  /* exported or in the symbol table; aliases and twins are further names of the same spec */
	LOCATE_SLOT,	  /* slot of the runtime's API table */
	LOCATE_PROBE,	  /* static probe, a note of the file */
	LOCATE_REFERENCE, /* the one function of the file that refers to a string */
	LOCATE_CALLBACK,  /* its address is handed over by another call */
	LOCATE_VIRTUAL,	  /* slot of a class's virtual table */
	LOCATE_METHOD,	  /* of the classes of operators */
	LOCATE_OPERATORS, /* each function that has such a symbol is an operator */
};

/* What a status value that is not success means. */
enum status_class {
	STATUS_OK = 0,	    /* success after all (HSA's INFO_BREAK) */
	STATUS_PENDING = 1, /* not yet: asked again later; neither success nor failure */
	STATUS_ERROR = 2,
};

struct status_value {
	__s64 value;
	enum status_class class;
	char *name; /* as in the runtime's header */
};

struct call_spec {
	enum locate_kind locate;
	char **symbols; /* LOCATE_SYMBOL, LOCATE_OPERATORS: names without version suffix, or glob patterns; at least one */
	size_t symbol_count;
	unsigned int slot; /* LOCATE_SLOT, LOCATE_VIRTUAL: index in the table */
	char *probe;	   /* LOCATE_PROBE: "PROVIDER:NAME" */
	char *refers_to;   /* LOCATE_REFERENCE: the string */
	char *callback_of; /* LOCATE_CALLBACK: the function of the call that hands it over */
	char *method_of;   /* LOCATE_VIRTUAL: the class, "ns::Class" */
	/* LOCATE_SYMBOL, LOCATE_REFERENCE, LOCATE_VIRTUAL: only in files with a name, or if it has a '/' a path, of this glob pattern; else NULL */
	char *file;
	char *runs;	      /* what its program is, in place of model or kernel: "graph"; NULL: that */
	char *function;	      /* how the function is called in every output: first symbol, probe, or the slot's name */
	struct xpt_spec wire; /* role, fetches; index and over are set when a registry numbers its specs */
	bool has_status;      /* the return value is a status (XPT_SUCCESS_ZERO32 or _ZERO64) */
	struct xpt_code_spec code; /* the code object that the call gives; its index is set with that of wire */
	enum code_kind code_kind;  /* of it where its bytes do not identify it; CODE_UNKNOWN: not known */
};

static inline bool call_spec_has_code(const struct call_spec *call)
{
	return call->code.source != XPT_CODE_NONE;
}

/* An API table: a struct of function pointers that an exported accessor returns. */
struct table_spec {
	char *accessor; /* exported function that returns the table, or an object on the way to it; NULL: no table */
	unsigned int through[2]; /* slots of accessors on the way: returned object's slot i is the next accessor */
	size_t through_count;
	size_t slots_offset; /* bytes before slot 0 in the table */
	ssize_t size_offset; /* where the table holds its own size as a 64-bit number of bytes; -1: nowhere */
};

#define DESCRIPTION_METHODS_MAX 8 /* of one runtime's operators */

/* A method of a virtual table, or of classes that have no objects. */
struct method_spec {
	unsigned int slot;     /* counted from 0, destructors included; without objects: in struct operators_spec */
	struct call_spec call; /* what to do when it is called; the function's name, "Compute", is that of the method */
};

#define DESCRIPTION_NODES_MAX 16     /* layouts of one runtime */
#define DESCRIPTION_THROUGH_MAX 4    /* pointers from an object to its node */
#define DESCRIPTION_OFFSET_MAX 65528 /* greatest offset of anything in an object or a node */

/*
 * How an object that executes an operator leads to the node of the model that it stands for, in some versions of the library.
 * Offsets are bytes, and multiples of 8. Strings are those of libstdc++ since its version 5.
 */
struct node_layout {
	unsigned int through[DESCRIPTION_THROUGH_MAX]; /* of a pointer in the object, of one in what it points to, ... */
	size_t through_count;			       /* at least 1; the last pointer is that to the node */
	unsigned int index;			       /* in the node: a number of 64 bits */
	unsigned int name, type, provider;	       /* in the node: strings */
	char *providers; /* glob pattern: what all providers are called; what is called otherwise is no node */
};

/* What an inference is made of, in runtimes that have a class or a function for each kind of it. */
struct operators_spec {
	char *base; /* class that all of them are derived from: "onnxruntime::OpKernel"; NULL: LOCATE_OPERATORS */
	struct method_spec *methods; /* that execute one */
	size_t method_count;	     /* at most DESCRIPTION_METHODS_MAX; 0: operators are not described */
	struct node_layout *nodes;   /* of different versions; the first that leads to a node counts */
	size_t node_count;	     /* at most DESCRIPTION_NODES_MAX; 0: what objects stand for is not known */
};

#define DESCRIPTION_NAMES_MAX 8	     /* ways to the name of an object */
#define DESCRIPTION_WITHIN_MAX 16384 /* bytes of an object that are searched */
#define DESCRIPTION_ROW_MAX 16	     /* strings in a row */
#define DESCRIPTION_ROWS_MAX 4	     /* rows of different versions */

enum name_kind {
	NAME_FITS,    /* a string in the object that fits a pattern */
	NAME_ROW,     /* one of a number of strings that lie side by side in the object */
	NAME_STRING,  /* the string at an offset */
	NAME_POINTER, /* the text that the pointer at an offset points to */
	NAME_MAPPED,  /* the only mapped file of the process that fits a pattern: not of the object itself */
};

/*
 * A way from the object that a program's handle points to, to the name of the program, for programs that were there before they
 * could be seen loading. Strings are std::string of libstdc++, of either form.
 */
struct name_way {
	enum name_kind kind;
	unsigned int within; /* NAME_FITS, NAME_ROW: bytes of the object that are searched */
	unsigned int at;     /* NAME_STRING, NAME_POINTER: offset, a multiple of 8 */
	char **patterns;     /* NAME_FITS, NAME_MAPPED: glob patterns */
	size_t pattern_count;
	/* NAME_ROW: how many strings they are, and which of them, counted from 0; of several rows the one that comes first in the object. */
	struct {
		unsigned int count, number;
	} rows[DESCRIPTION_ROWS_MAX];
	size_t row_count;
	char *library; /* glob pattern: only where the process has mapped a file of such a name; NULL: anywhere */
};

struct description {
	DESCRIBED;
	char **libraries; /* glob patterns of file names where it usually lives; a hint, never a condition */
	size_t library_count;
	char **identify; /* a file that defines one of these symbols holds this runtime, whatever its name */
	size_t identify_count;
	char **over; /* names of runtimes that this one is built on; may hold its own, for calls that nest */
	size_t over_count;
	unsigned int over_line; /* their line in the file, for messages */
	bool in_order; /* what is enqueued to a stream runs in that order, unless a call defines another order */
	char *streams_of; /* name of the runtime that its streams, events and keys are of, its own or another; NULL: nobody shares them */
	struct table_spec table;
	struct operators_spec operators;
	struct name_way *names;	       /* the first that leads to a name counts */
	size_t name_count;	       /* at most DESCRIPTION_NAMES_MAX */
	struct status_value *statuses; /* sorted by value */
	size_t status_count;
	struct call_spec *calls;
	size_t call_count;
	unsigned int index; /* of this runtime in its registry */
};

/*
 * Parses one description from text (length bytes; need not be terminated). file names it in messages.
 * A bad description is reported as "FILE:LINE: FIELD: REASON" and gives -EINVAL; -ENOMEM otherwise.
 */
int description_parse(const struct log *log, const char *file, const char *text, size_t length,
		      struct description **result);
void description_free(struct description *description);
extern const struct description_kind runtime_descriptions;

/*
 * Class and name of a status. 0 is STATUS_OK, described or not; other values that are not described are STATUS_ERROR
 * with name NULL.
 */
enum status_class description_status(const struct description *description, __s64 value, const char **name);

const char *role_name(enum xpt_role role);		   /* "program.load"; never NULL */
const char *meaning_name(enum xpt_meaning meaning);	   /* "program"; never NULL */
const char *code_source_name(enum xpt_code_source source); /* "bytes"; never NULL */
int role_from_name(const char *name);			   /* -ENOENT */
int meaning_from_name(const char *name);		   /* -ENOENT */

#endif
