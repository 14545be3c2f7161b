/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the reader of type names share. Included by type_name*.c and nothing else. */
#ifndef XPT_TARGET_ELF_TYPE_NAME_INTERNAL_H
#define XPT_TARGET_ELF_TYPE_NAME_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#define ARENA_MAX (64u << 10)
#define SUBSTITUTION_MAX 256
#define ARGUMENT_MAX 256
#define STEP_MAX 16384 /* types and names read, repeated readings included */
#define DEPTH_MAX 64   /* of types and names within each other */

#define SIZE_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Text in the arena. */
struct slice {
	unsigned int at, length;
};

enum kind { KIND_PLAIN, KIND_FUNCTION, KIND_ARRAY };

enum {
	QUALIFIER_CONST = 1,
	QUALIFIER_VOLATILE = 2,
	QUALIFIER_RESTRICT = 4,
	QUALIFIER_NOEXCEPT = 8,	  /* of a function type */
	QUALIFIER_REFERENCE = 16, /* of a member function: '&' */
	QUALIFIER_RVALUE = 32,	  /* '&&' */
};

/* A type: pointers, references and members to it are written between the two halves. */
struct type {
	struct slice left, right;
	struct slice base;	 /* the last name without scope and arguments: that of its constructors */
	enum kind kind;		 /* of the outermost type */
	unsigned int qualifiers; /* those that left ends with */
	unsigned int reference;	 /* '&' characters that left ends with */
	bool nothing;		 /* an empty pack: no comma either */
};

/* The name of a type or function. Its text is type.left alone. */
struct name {
	struct type type;
	size_t arguments, argument_count; /* the template arguments that it ends with, in reader.arguments */
	bool is_template;		  /* it ends with some */
	bool has_return;		  /* as a function template it has its return type in front of its parameters */
	bool is_known;			  /* it is a substitution and nothing else: not to be added once more */
	unsigned int qualifiers;	  /* of a member function */
};

/* Where a type begins, for its substitution. */
struct mark {
	const char *at; /* NULL: only a part of a name, which cannot be read once more */
	size_t count;	/* substitutions before it */
	unsigned int uses;
};

struct substitution {
	struct type type;
	struct mark mark;
	unsigned int context; /* in which the text is right */
	bool depends;	      /* on template parameters */
};

struct argument {
	struct type type;
	unsigned int index; /* all elements of a pack have the same */
	bool in_pack;	    /* an empty pack has one element, which is nothing */
};

/* What template parameters stand for at a place. */
struct context {
	unsigned int id;
	size_t first, end; /* template arguments of the function */
	bool in_lambda;	   /* they are its parameters of type auto */
	bool in_expansion; /* of packs; the next two are about that */
	size_t element;
	int length; /* of the packs met; -1: none so far */
};

struct reader {
	const char *at, *end; /* at: an empty string after a failure, so that parsing ends */
	bool failed;
	unsigned int steps, depth, contexts;
	unsigned int uses; /* of template parameters */
	struct context context;
	size_t substitution_count, argument_count;
	unsigned int used; /* bytes of the arena */
	struct substitution substitutions[SUBSTITUTION_MAX];
	struct argument arguments[ARGUMENT_MAX];
	char arena[ARENA_MAX];
};

/*
 * type_name_reader.c. A failure is kept in the reader: every loop ends then, nothing is appended any more, and what is
 * returned has no meaning.
 */
void type_name_fail(struct reader *reader);
void type_name_append_bytes(struct reader *reader, struct slice *slice, const char *bytes, size_t length);
void type_name_append(struct reader *reader, struct slice *slice, const char *text);
void type_name_append_slice(struct reader *reader, struct slice *slice, struct slice other);
void type_name_append_number(struct reader *reader, struct slice *slice, const char *format, unsigned int number);
void type_name_append_type(struct reader *reader, struct slice *slice, const struct type *type);
/* One more of a list; nothing stands for an empty pack. */
void type_name_append_item(struct reader *reader, struct slice *list, const struct type *type);
char type_name_last_character(const struct reader *reader, struct slice slice);
struct type type_name_plain_type(struct reader *reader, const char *text);
/* Skips the word if it is next. */
bool type_name_take(struct reader *reader, const char *word);
void type_name_expect(struct reader *reader, const char *word);
bool type_name_is_digit(char character);
unsigned int type_name_read_number(struct reader *reader);
/* "_" is the first, "0_" the second: the number of lambdas, unnamed types and template parameters, from 0 on. */
unsigned int type_name_read_ordinal(struct reader *reader);
/* The identifier after its length; NULL after a failure. */
const char *type_name_read_identifier(struct reader *reader, size_t *length);
/* One level deeper; the caller leaves with depth--. False when there has been enough: the caller returns then. */
bool type_name_enter(struct reader *reader);
struct mark type_name_mark_here(const struct reader *reader);
void type_name_add_substitution(struct reader *reader, const struct type *type, struct mark mark);
struct type type_name_read_substitution(struct reader *reader);

/* type_name_arguments.c */
struct type type_name_read_parameter(struct reader *reader);
/*
 * After the 'I'. The arguments stay in reader.arguments until the next are read: the function that has the name can
 * take them.
 */
void type_name_read_arguments(struct reader *reader, struct name *name);
/* What is read from here on has another meaning; the caller puts the old context back. */
void type_name_open_context(struct reader *reader, struct context context);

/* type_name_names.c */
/* Sets all of name. */
void type_name_read_name(struct reader *reader, struct name *name);

/* type_name.c */
/* Qualifiers are sets of QUALIFIER_*. */
void type_name_append_qualifiers(struct reader *reader, struct slice *slice, unsigned int qualifiers);
unsigned int type_name_read_qualifiers(struct reader *reader);
/* Up to the 'E', or the reference qualifier before it. */
struct slice type_name_read_parameters(struct reader *reader);
unsigned int type_name_read_reference_qualifier(struct reader *reader);
struct type type_name_read_type(struct reader *reader);

#endif
