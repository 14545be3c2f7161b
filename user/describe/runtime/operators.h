/* SPDX-License-Identifier: BSD-2-Clause */
/* The section of a description about the operators of inferences. */
#ifndef XPT_DESCRIBE_RUNTIME_OPERATORS_H
#define XPT_DESCRIBE_RUNTIME_OPERATORS_H

#include "describe/runtime/description.h"
#include "describe/reader/reader.h"

/* Nothing where member has no value. -EINVAL (logged), -ENOMEM; what was made until then is left to operators_spec_clear(). */
int operators_parse(const struct reader *reader, const struct member *member, struct operators_spec *operators);
void operators_spec_clear(struct operators_spec *operators);

#endif
