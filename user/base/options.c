/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/options.h"

#include <errno.h>
#include <string.h>

int options_copy(void *to, size_t to_size, const void *options)
{
	const unsigned char *bytes = options;
	size_t size;

	if (!options)
		return -EINVAL;
	memcpy(&size, options, sizeof(size));
	if (size < sizeof(size))
		return -EINVAL;
	for (size_t i = to_size; i < size; i++) {
		if (bytes[i])
			return -E2BIG;
	}
	memcpy(to, options, size < to_size ? size : to_size);
	return 0;
}
