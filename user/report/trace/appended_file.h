/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of lines that is appended to. */
#ifndef XPT_REPORT_TRACE_APPENDED_FILE_H
#define XPT_REPORT_TRACE_APPENDED_FILE_H

/*
 * Opens or creates it; a line that was cut in the middle gets its end, so that what follows has lines of its own. A
 * descriptor at the file's end, owned by the caller. -EEXIST: what it has does not begin with head; it is left alone.
 * Otherwise errors of open() and write().
 */
int appended_file_open(const char *path, const char *head);

#endif
