/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of JSON objects of an index, each of the type that it must be. The text has been checked; it may come from anybody. What is
 * missing (a part of no length) leaves the result as it is. Functions return 0, -ENOMEM, or -EBADMSG, of which the log knows why.
 */
#ifndef XPT_CODE_STORE_MEMBERS_H
#define XPT_CODE_STORE_MEMBERS_H

#include "base/core/json.h"
#include "base/core/log.h"
#include "code/store/list.h"

struct code_members {
	const struct log *log;
	const char *path;	/* in front of messages */
	struct code_list *list; /* owner of the strings */
};

/* Finds the first member of each name, in one walk; values[] gets count parts. */
void members_find(struct json_part object, const char *const *names, struct json_part *values, size_t count);
/* Reports that something is not as expected; -EBADMSG. */
int members_refuse(const struct code_members *members, const char *what, const char *wanted);

int members_get_string(const struct code_members *members, const char *name, struct json_part value,
		       const char **result);
/* Numbers are exact: fractions and exponents are refused. */
int members_get_number(const struct code_members *members, const char *name, struct json_part value, __u64 most,
		       uint64_t *result);
int members_get_signed(const struct code_members *members, const char *name, struct json_part value, int64_t *result);
/* "0x7f00" */
int members_get_address(const struct code_members *members, const char *name, struct json_part value, uint64_t *result);
/* *pid becomes 0 when it is missing. */
int members_get_process(const struct code_members *members, const char *name, struct json_part value, pid_t *pid);
/* Always fills kind: "unknown" when it is missing, or not known here. */
int members_get_kind(const struct code_members *members, struct json_part value, const char **kind);
/* Counts the elements of an array, which becomes an empty one when it is missing. most: how many it may have. */
int members_array(const struct code_members *members, const char *name, struct json_part *array, size_t most,
		  size_t *count);

#endif
