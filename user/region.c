/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of <xputrace/region.h> for those who call them instead of compiling them: other languages, and programs
 * that define XPT_REGION_EXTERN. The header has the code; here it gets names that the library exports.
 */
#define XPT_REGION_API __attribute__((visibility("default")))
#include <xputrace/region.h>
