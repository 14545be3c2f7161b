/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bytes of an object came from, as ROCm writes it: "file://PATH#offset=4096&size=8192", or
 * "memory://PID#offset=0x7f00&size=8192". In a path all but letters, digits and /_.~- are %XX in upper case.
 */
#ifndef XPT_CODE_STORE_URI_H
#define XPT_CODE_STORE_URI_H

#include <linux/types.h>
#include <stdbool.h>

#include "base/core/text.h"

/* Append one; text keeps an error. size 0: the file up to its end; with offset 0 as well, it is the whole file. */
void code_uri_file(struct text *text, const char *path, __u64 offset, __u64 size);
void code_uri_memory(struct text *text, __u32 pid, __u64 address, __u64 size);

struct code_uri {
	char *path; /* decoded, owned; NULL: in memory */
	__u32 pid;
	__u64 offset; /* in the file, or address; 0: unknown */
	__u64 size;   /* 0: unknown */
};

/* 0, -ENOMEM, or -EINVAL: it is none, or its path has a 0 byte. Numbers are decimal or hexadecimal. */
int code_uri_parse(const char *text, struct code_uri *uri);
void code_uri_free(struct code_uri *uri); /* leaves it zeroed */

#endif
