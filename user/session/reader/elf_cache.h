/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the files that processes map: each is analysed once, however many processes map it. */
#ifndef XPT_SESSION_READER_ELF_CACHE_H
#define XPT_SESSION_READER_ELF_CACHE_H

#include "kern/kern.h"
#include "session/reader/readers.h"

/*
 * What was found in one file. Identity includes its size and the times of its latest changes, since inodes are reused, and
 * files changed in place; the time of change cannot be set by who owns the file.
 */
struct elf_entry {
	struct stat status; /* device, inode, size and times */
	bool changed;	    /* in place, since it was first analysed: no longer shared between processes */
	bool is_local;	    /* as in struct opened_file */
	bool is_roots;	    /* nobody else may change it */
	bool is_refused;    /* no probes go into it: see analyse() */
	int descriptor;	    /* of one that is not, if there is something in it; -1 */
	char *path;
	struct file_contents contents;
};

/* A file with a file system that timed out. */
struct silent_file;

/* Zero it, and set the first ones. */
struct elf_cache {
	const struct log *log;
	struct file_readers *readers;
	const struct kern *kern; /* NULL: no probes are placed */
	struct elf_entry **files;
	size_t count;
	struct silent_file *silent;
	size_t silent_count;
	dev_t *local; /* devices of local file systems */
	size_t local_count;
};

/* A file of a process, open, so that all that follows is about this one. */
struct pinned_file {
	struct mapped_file mapped; /* with its path, and the descriptor as the path to open */
	struct elf_entry *file;	   /* lives as long as the elf_cache */
};

/*
 * Opens the very file, without waiting for anybody, and analyses it if it was not seen before. -ENOENT: something else
 * is mapped there by now, or no regular file, or it timed out before, or (unless to_open) there is nothing in it;
 * -EWOULDBLOCK: it is leased; -ETIMEDOUT: its file system timed out, which has been reported; -ENOMEM.
 */
int elf_cache_pin(struct elf_cache *files, const struct mapped_file *mapped, bool to_open, struct pinned_file *pinned);
/* The same, whatever there is in it, and also if no probes may go into it. */
int elf_cache_open(struct elf_cache *files, const struct mapped_file *mapped, struct pinned_file *pinned);
/* The same, without opening a file that was analysed before, as it is. *file: NULL: no regular one. */
int elf_cache_find(struct elf_cache *files, const struct mapped_file *mapped, const struct elf_entry **file);
void pinned_close(struct pinned_file *pinned);

/* Whether there is anything in it. */
bool elf_entry_has_any(const struct elf_entry *file);
/* -ESTALE: the open file has changed since it was analysed; or another error. */
int elf_entry_check(const struct elf_entry *file, int descriptor);
void elf_cache_free(struct elf_cache *files);

/* What a file's virtual addresses are moved by in the process that has mapped it. -ENOENT. */
int elf_entry_bias(const struct elf_entry *file, const struct mapped_file *mapped, __u64 *bias);

#endif
