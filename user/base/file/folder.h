/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A directory for output that root writes into on behalf of a user. It is opened once, and all that follows uses that
 * descriptor: later changes of the path have no effect. Files appear atomically; what is killed or fails leaves nothing
 * under a final name.
 *
 * A folder, its sub-folders and its files are used by one thread at a time. Functions return 0 or -errno; -ENOSPC,
 * -EDQUOT, -EFBIG, -EROFS and so on are the file system's own. Errors are logged with what to do. The
 * program must ignore SIGXFSZ.
 */
#ifndef XPT_BASE_FILE_FOLDER_H
#define XPT_BASE_FILE_FOLDER_H

#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"

#define FOLDER_NAME_MAX 200	/* bytes of a name, without extension */
#define FOLDER_EXTENSION_MAX 32 /* bytes */
#define FOLDER_RESULT_SIZE 256	/* room for every name that folder_file_commit() gives */

struct folder;
struct folder_file;

/*
 * Opens the directory at path, relative to the working directory of now. When it is missing it is made, mode 0700 (only
 * the last component), and given to the owner, as all files are: uid, gid, each (uid_t)-1 for nobody in particular.
 * Hidden files that killed processes have left in it are removed.
 *
 * Symbolic links on the way are followed when they belong to root, to the effective user or to uid: others could change
 * them at will. Refused, with nothing left behind:
 * -EINVAL   path is empty
 * -ENOTDIR  it, or something above it, is no directory
 * -ENOENT   a directory above it is missing
 * -ELOOP    a link of another user, or too many links
 * -EPERM    others than the directory's owner may write into it, and it is not sticky; or it is another user's, in a directory
 *           into which others may write
 * -EROFS, -EACCES, -ENOSPC ...  no file can be made in it: that is tried
 */
int folder_open(const struct log *log, const char *path, uid_t uid, gid_t gid, struct folder **result);
/*
 * The directory called folder_clean_name(name) within folder, with the same owner and the same refusals, but no link is
 * followed at all, and it may not belong to a stranger (-EPERM). folder stays open as long as the result is.
 */
int folder_sub(struct folder *folder, const char *name, struct folder **result);
/*
 * Opens the same path again with the same checks, after the directory was removed. Functions below do so by themselves,
 * once a call. After an error the folder is as before.
 */
int folder_reopen(struct folder *folder);
void folder_close(struct folder *folder);	      /* NULL is allowed */
const char *folder_path(const struct folder *folder); /* as it was given, with names of sub-folders behind */

/*
 * Begins a file, mode 0600, that has no name yet. On file systems that have no such files it has a hidden one, which
 * the next folder_open() removes if this process is killed.
 */
int folder_file_begin(struct folder *folder, struct folder_file **result);
/* To write to, and read from; it stays the file's: give dup() of it to what closes it, such as a recording_writer. */
int folder_file_descriptor(const struct folder_file *file);
/*
 * Syncs the file, gives it to the owner and puts it under "NAME.EXTENSION", or the first of "NAME-2.EXTENSION" and so
 * on that is free: nothing is ever replaced. NAME is folder_clean_name(name); extension has no dot in front, at most
 * FOLDER_EXTENSION_MAX bytes, and is clean, or "" (then there is no dot either), else -EINVAL. result, of size bytes,
 * gets the name within the folder; it may be NULL. Ends and frees the file in any case: after an error it is removed.
 */
int folder_file_commit(struct folder_file *file, const char *name, const char *extension, char *result, size_t size);
/*
 * The same under this name only: -EEXIST, not logged, when something has it already. -EINVAL when the name is not
 * clean.
 */
int folder_file_commit_only(struct folder_file *file, const char *name);
void folder_file_abandon(struct folder_file *file); /* NULL is allowed */
/*
 * Checks whether a whole file is there under a name: 1 when it is a regular file of size bytes that belongs to root,
 * the effective user, the owner, or the directory's owner; 0 when there is nothing, -EINVAL when the name is not clean,
 * -EEXIST when it is something else. No link is followed.
 */
int folder_has_file(const struct folder *folder, const char *name, __u64 size);

/*
 * A small file that is replaced as a whole: readers see the old bytes or the new ones. -EINVAL when the name is not
 * clean, -EISDIR, -EEXIST when a file of that name belongs to another user than root, the effective user, the owner, or
 * the directory's owner.
 */
int folder_replace(struct folder *folder, const char *name, const void *bytes, size_t length);

/*
 * Makes of any bytes a name that is harmless: '_' in place of '/', of hidden characters (text_hidden()), of bytes that
 * are not UTF-8, of a '.' or '-' in front and of nothing at all; cut to FOLDER_NAME_MAX bytes, or size - 1, without
 * cutting a character. size is at least 2. Returns the length. A clean name stays as it is.
 */
size_t folder_clean_name(const char *name, char *result, size_t size);

#endif
