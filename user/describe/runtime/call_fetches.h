/* SPDX-License-Identifier: BSD-2-Clause */
/* What one call fetches, and whether that is what its role needs. */
#ifndef XPT_DESCRIBE_RUNTIME_CALL_FETCHES_H
#define XPT_DESCRIBE_RUNTIME_CALL_FETCHES_H

#include "describe/runtime/description.h"
#include "describe/reader/reader.h"

/*
 * Completes call->wire, with role, success and entry-only flag set, by the fetches of member and the flags that follow.
 * place: of the call. success_given: the call defines success.
 */
int call_fetches_parse(const struct reader *reader, const struct json_place *place, const struct member *member,
		       bool success_given, struct call_spec *call);

/*
 * The fetches of an operator's method: its object, the object's class, and the inference around it. object: where the
 * object is; if it has nothing for this architecture, there are none.
 */
int method_fetches_parse(const struct reader *reader, const struct member *object, struct call_spec *method);

/* Those of a function that is an operator without an object. */
void operator_fetches_set(struct call_spec *function);

#endif
