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

int options_give(void *to, void *from, size_t from_size)
{
	size_t size;

	memcpy(&size, to, sizeof(size));
	if (size < sizeof(size))
		return -EINVAL;
	if (size > from_size)
		size = from_size;
	memcpy(from, &size, sizeof(size));
	memcpy(to, from, size);
	return 0;
}
