/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flame graphs: which callers inferences, device time, waiting and CPU time belong to. A sink of stacks adds their weights to a tree of
 * frames; under the innermost frame of each stack stand the program and, where it is known, the operator. At the end it is written in
 * one of the formats for such trees. See SCHEMA.md.
 */
#ifndef XPT_REPORT_FLAME_FLAME_H
#define XPT_REPORT_FLAME_FLAME_H

#include <xputrace/recording.h>

#include "base/core/hashmap.h"
#include "base/core/pool.h"
#include "base/core/text.h"
#include "model/core/model.h"

#define FLAME_NODES_MAX (1u << 20) /* what lies below further ones is added to the last that there is */
#define FLAME_DEPTH_MAX (XPT_STACK_FRAMES_MAX + 4)

/* ---- collecting ---- */

struct flame;

struct flame_options {
	const struct log *log;
	enum xpt_flame what;
	const char *operator_name; /* only samples in operators with this label, name or type; NULL: all */
	/* Whether a call that a stack was taken at is one that counts; NULL: those do that lie in no other inference. */
	bool (*wants)(const void *context, const struct event_stack *stack);
	const void *context;
	enum xpt_output format; /* one that flame_format_name() knows */
	const char *path;	/* "-": standard output; NULL: there is no file */
};

/* Before the model's first record: adds a sink, and opens the file. What options point to is copied, but log. -ENOMEM, -ENOSPC, errors of open(). */
int flame_open(const struct flame_options *options, struct model *model, struct flame **result);
/* As tailed_file_detach(). */
int flame_detach(struct flame *flame, const uint64_t *stopped);
/*
 * Writes the graph and closes the file. base: the same of another model, whose graph is what this one is compared with; NULL: none.
 * -ENOMSG, reported: there are no stacks to make it of. Errors of write(); -ENOMEM.
 */
int flame_close(struct flame *flame, const struct flame *base);
void flame_free(struct flame *flame);
__u64 flame_bytes(const struct flame *flame); /* in the file */

/* ---- the tree ---- */

/* After the kinds of frames. */
enum {
	FLAME_PARTIAL = FRAME_KINDS, /* under it is what does not reach the thread's start */
	FLAME_PROGRAM,
	FLAME_OPERATOR,
	FLAME_KINDS,
};

struct flame_label {
	struct map_node node;
	unsigned int number;		 /* of the tree, from 0 */
	unsigned int kind;		 /* enum frame_kind, or one of those above */
	char *name;			 /* any bytes; "decode (model.py:12)" */
	const struct model_frame *frame; /* the first one with this name; NULL: it is no frame */
};

/* Index 0: of the base, 1: of the graph itself. */
struct flame_node {
	struct map_node node;	   /* by the number of the parent, and the label */
	unsigned int number;	   /* of the tree, from 0: the root. Parents come before their children */
	struct flame_label *label; /* NULL: of the root */
	struct flame_node *parent, *first, *next; /* children and siblings in the order of their names */
	__u64 self[2], count[2];		  /* ns, and calls or samples, that end here */
	__u64 total[2];				  /* ns, with all below */
};

struct flame_tree {
	struct map labels, children;
	struct pool pool;
	struct flame_node **nodes;
	size_t count;
	struct flame_label **all_labels;
	size_t label_count;
	bool full; /* nodes were left out */
};

/*
 * exact: each frame is a node of its own; else those with the same name and kind under one node are one. base NULL: none. -ENOMEM.
 */
int flame_tree_create(const struct flame *flame, const struct flame *base, bool exact, struct flame_tree **result);
void flame_tree_free(struct flame_tree *tree);

/* What the numbers are, for people and machines: "time of inferences"; "inferences", "time". */
struct flame_words {
	const char *title, *count, *value;
};
const struct flame_words *flame_words(enum xpt_flame what);

/* ---- formats ---- */

const char *flame_kind_name(unsigned int kind); /* "native", "program" */

/* Appends what the frame is called: "decode (model.py:12)"; any bytes. */
void flame_frame_name(struct text *text, const struct model_frame *frame);

/* The name without what breaks a line of text or an XML document: control characters and invalid UTF-8 become '?'. */
void flame_add_name(struct text *text, const char *name);

/* Each appends the whole document. diff: of two; base_total of the graph that it is compared with. Failures are text->error. */
void flame_add_folded(struct text *text, const struct flame_tree *tree, bool diff);
void flame_add_speedscope(struct text *text, const struct flame_tree *tree, const struct flame_words *words);
void flame_add_svg(struct text *text, const struct flame_tree *tree, bool diff, const struct flame_words *words);
/* Of an exact tree. */
void flame_add_pprof(struct text *text, const struct flame_tree *tree, const struct flame_words *words);

#endif
