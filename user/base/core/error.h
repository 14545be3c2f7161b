/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XPT_BASE_CORE_ERROR_H
#define XPT_BASE_CORE_ERROR_H

#include <errno.h>
#include <stdbool.h>

/* The machine lacks something, or fails, whatever the input is. Such an error is never passed over in silence. */
static inline bool error_is_shortage(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO;
}

#endif
