/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading and writing all or failing: descriptors that are interrupted, full for the moment, or that give or take less than they
 * were asked for. And file systems that are not mounted.
 */
#ifndef XPT_BASE_FILE_FILE_H
#define XPT_BASE_FILE_FILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Reads length bytes, at the descriptor's position or at offset; fewer at its end. 0 or -errno; *done is the number that has been
 * read, also after an error.
 */
int file_read(int descriptor, void *bytes, size_t length, size_t *done);
int file_read_at(int descriptor, void *bytes, size_t length, __u64 offset, size_t *done);

/*
 * Writes all bytes, at the descriptor's position or at offset. Waits where a non-blocking descriptor has no room.
 * 0 or -errno; after an error an unknown part has been written.
 */
int file_write(int descriptor, const void *bytes, size_t length);
int file_write_at(int descriptor, const void *bytes, size_t length, __u64 offset);

/* file_write(), but go_on is asked before each write and after a signal has interrupted one; -EINTR: it has returned false. */
int file_write_while(int descriptor, const void *bytes, size_t length, bool (*go_on)(void *context), void *context);

/* A descriptor of standard output that is closed on its own. -errno. */
int file_standard_output(void);

/*
 * Mounts a file system of the kernel's own (tracefs) read-only where no mount namespace shows it. A descriptor of its
 * root folder, for openat(); the last descriptor unmounts it. -EPERM: CAP_SYS_ADMIN is needed; -EACCES: a profile of AppArmor
 * refuses what is mounted nowhere; -ENODEV: the kernel has no such file system; -ENOSYS.
 */
int file_mount_detached(const char *type);

#endif
