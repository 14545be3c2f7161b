/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a folder of code objects, index.json: each object once, with its contents, and each load with its
 * object. What is not known is left out; numbers are exact up to 64 bits. One that is read may come from anybody.
 */
#ifndef XPT_CODE_STORE_INDEX_H
#define XPT_CODE_STORE_INDEX_H

#include "base/core/log.h"
#include "base/core/text.h"
#include "code/store/store.h"

#define CODE_INDEX_SCHEMA 1
#define CODE_INDEX_MAX (512u << 20) /* bytes of one that is read */

/*
 * Appends the index of a list. mode: "symbols", "memory" or "all"; NULL: left out. Loads with the same hash are of one object, which
 * is described as the first of them is. text keeps an error.
 */
void code_index_write(struct text *text, const struct xpt_codeobj_list *list, const char *mode);

/* Why the file of an object, under a sane name, is not as expected. NULL: it is. */
typedef const char *(*code_index_check_fn)(void *context, const char *file, __u64 size);

/*
 * Reads one. An object that names a file which is not its own, that no load is of, or that is there twice, is in the list with an
 * error and without a file, and so is a load of an object that is not there. check may be NULL. 0, -ENOMEM, or -EBADMSG: it is no
 * index, of which the log knows why, with path in front.
 */
int code_index_read(const struct log *log, const char *path, const char *text, size_t length, code_index_check_fn check,
		    void *context, struct code_list **result);

#endif
