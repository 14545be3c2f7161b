/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/options.h"

#include <errno.h>
#include <string.h>

static int copy_known(void *to, size_t to_size, const unsigned char *from, size_t size)
{
	for (size_t i = to_size; i < size; i++) {
		if (from[i])
			return -E2BIG;
	}
	memcpy(to, from, size < to_size ? size : to_size);
	return 0;
}

int options_copy(void *to, size_t to_size, const void *options)
{
	size_t size;

	if (!options)
		return -EINVAL;
	memcpy(&size, options, sizeof(size));
	if (size < sizeof(size))
		return -EINVAL;
	return copy_known(to, to_size, options, size);
}

int options_copy_element(void *to, size_t to_size, const void *array, size_t stride, size_t index)
{
	stride = stride ?: to_size;
	memset(to, 0, to_size);
	return copy_known(to, to_size, (const unsigned char *)array + stride * index, stride);
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
