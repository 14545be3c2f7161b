/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the code object is that a call gives to the runtime. */
#ifndef XPT_DESCRIBE_RUNTIME_CALL_CODE_H
#define XPT_DESCRIBE_RUNTIME_CALL_CODE_H

#include "describe/runtime/description.h"
#include "describe/reader/reader.h"

/*
 * Fills call->code and code_kind from member, which is there. The call's role is set. Where the member has nothing for
 * this architecture, there is no code. -EINVAL, reported.
 */
int call_code_parse(const struct reader *reader, const struct member *member, struct call_spec *call);

#endif
