/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists what is in a tar archive that comes in pieces. Nothing is unpacked, and names are text only. */
#ifndef XPT_CODE_TAR_H
#define XPT_CODE_TAR_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define TAR_BLOCK 512
#define TAR_NAME_MAX 4096 /* longer ones are cut off */

/* An entry with its name and its size, as the archive says them. What is not 0 ends the walk. */
typedef int (*tar_entry_fn)(void *context, const char *name, size_t length, __u64 size);

struct tar_walk {
	tar_entry_fn entry;
	void *context;
	/* The rest is zeroed by the caller, and the walk's own. */
	unsigned char block[TAR_BLOCK]; /* a header, as far as it has come */
	size_t filled;
	__u64 content, padding; /* bytes that are still to come */
	char extension;		/* type of the entry whose content names the next one; 0: it is a file's */
	char extended[TAR_NAME_MAX + TAR_BLOCK];
	size_t extended_length;
	size_t name_length; /* of the next entry, at the begin of extended; 0: its header has it */
	bool ended;	    /* the mark of the archive's end was found */
};

/* The next bytes. 0, what entry() answered, or -EBADMSG: it is no archive. */
int tar_feed(struct tar_walk *walk, const unsigned char *bytes, size_t length);
/* May the archive end here? */
static inline bool tar_complete(const struct tar_walk *walk)
{
	return walk->ended || (!walk->filled && !walk->content && !walk->padding);
}

#endif
