/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single files that the library creates at a path that it is given: recordings, traces, tables, merged traces. They have mode
 * 0600. A symbolic link on the way is followed when it belongs to root, the effective user or the owner below (else -ELOOP). A
 * file that is there already, with anything in it, becomes FILE.old, over what has that name; where its directory does not allow
 * that, it is written over. Neither is done where others may write into its directory and it (or FILE.old) belongs to somebody else or has
 * another name too (-EPERM).
 */
#ifndef XPUTRACE_OUTPUT_H
#define XPUTRACE_OUTPUT_H

#include <sys/types.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Who gets such files when they are created from now on, in the whole process, as the user who called sudo; (uid_t)-1 and
 * (gid_t)-1, which it begins with: nobody. To be called before other threads use the library.
 */
XPT_API void xpt_output_set_owner(uid_t user, gid_t group);

/*
 * Opens a file for the library. flags as of open(): O_RDONLY: an input; O_PATH: a place, to see what is there; O_CREAT: an output, as
 * described above (with O_TRUNC what is there becomes FILE.old); O_TMPFILE: a file without a name, path is "". Returns a descriptor, which
 * is the library's, or -errno.
 * O_CREAT | O_EXCL: a new file for an output that appears when it is complete. Then, with the same path: O_CREAT | O_EXCL | O_TRUNC: it is
 * complete, and takes its place; or O_EXCL: it is removed. Both return 0 in place of a descriptor, or -errno.
 */
typedef int (*xpt_open_fn)(void *context, const char *path, int flags);

/*
 * From now on this opens what xpt_report_create(), xpt_merge_traces(), xpt_codeobj_read() and xpt_target_*() with a file are given the
 * path of, in the whole process; NULL: the library does itself. For a program that gives up its rights before it reads what strangers wrote, and has another process open the
 * files that it was started for. To be called before other threads use the library.
 */
XPT_API void xpt_output_set_opener(xpt_open_fn open, void *context);

/*
 * Starts a process, without any rights, that writes the next large trace which xpt_report_create() makes, if that is a regular file and
 * not compressed. Without this call one is started when it is needed: for a program that cannot start processes by then, as it has
 * given up its rights. On one CPU it is of no use, and none
 * is started. The process ends with the trace, or with the program. 0 or -errno.
 */
XPT_API int xpt_output_start_writer(void);

#ifdef __cplusplus
}
#endif
#endif
