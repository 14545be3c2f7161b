/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that reads what strangers wrote, and can do nothing else. */
#ifndef XPT_BASE_FILE_CONFINE_H
#define XPT_BASE_FILE_CONFINE_H

/*
 * From here on the calling process, which has one thread, can read and write what is open, get memory and end: it has no
 * capabilities, no new privileges, as root a user of its own, and a seccomp filter; everything else fails with EPERM. descriptors: -1,
 * or for a process that writes no files: so many may be open, files take no byte, and it ends with its parent. 0 or -errno: then
 * some rights are left.
 */
int confine(int descriptors);
/* The same for one that also reads the memory of other processes (process_vm_readv()): it keeps CAP_SYS_PTRACE. */
int confine_to_memory(int descriptors);

#endif
