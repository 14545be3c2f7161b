/* SPDX-License-Identifier: BSD-2-Clause */
/* Where probes are: one entry for each time that some were placed. */
#ifndef XPT_SESSION_ATTACH_ATTACHED_H
#define XPT_SESSION_ATTACH_ATTACHED_H

#include "kern/kern.h"
#include "session/reader/elf_cache.h"

/* What probes take, as the budget has found last. */
struct attached_load {
	__u32 counter; /* of hits; 0: none of their own */
	__u8 class;    /* enum site_class of the dearest */
	bool known;    /* of suspended ones: cost has been measured since */
	__u64 hits;    /* up to then */
	double cost;   /* ns a second */
	__u64 since;   /* ns of CLOCK_MONOTONIC: when the budget suspended them; 0: it has not */
	__u64 due;     /* ns: when they are placed for a moment, to see how often they are hit */
	__u64 begun;   /* ns: when that moment began */
	__u64 until;   /* ns: when it ends; 0: they are not placed */
};

/* Probes in one file for one process (or all). */
struct attached {
	pid_t tgid; /* 0: all processes */
	const struct elf_entry *file;
	bool complete; /* everything that the file's analysis found; else single functions with addresses that came later */
	struct attachment *attachment;
	struct attachment *codes; /* of those at which code objects are given; NULL: there are none */
	struct kern_site *sites;  /* what it holds, to not place a probe twice; owned */
	size_t site_count;
	/* Under a budget, where all sites are of one spec: */
	struct attached_load load;
	bool suspended; /* no probe is there at present */
};

/* Zero it, and set the kernel. */
struct attached_list {
	struct kern *kern;
	struct attached *all;
	size_t count;
	struct attachment **dead; /* of processes that have ended, to be taken off together */
	size_t dead_count;
	struct attached_sweeper *sweeper; /* takes some off; NULL: none are */
	__u32 last_counter;		  /* of hits: the highest that was ever in use */
	__u32 *free_counters;		  /* those of entries that are gone */
	size_t free_counter_count;
};

/* A counter of hits for a new entry; 0: there is none left. */
__u32 attached_counter(struct attached_list *list);

/* Takes it over, and gives it up when there is no memory: -ENOMEM. */
int attached_add(struct attached_list *list, const struct attached *attached);
/* Has the file all its probes for the process? */
bool attached_is_complete(const struct attached_list *list, pid_t tgid, const struct elf_entry *file);
/* Is there a probe at the offset? */
bool attached_has(const struct attached_list *list, pid_t tgid, const struct elf_entry *file, __u64 offset);
/* Takes the probes off by the next attached_sweep(), and keeps the entry. */
void attached_suspend(struct attached_list *list, struct attached *attached);
/* Those of the process, or all, are to be taken off by the next attached_sweep(). */
void attached_bury(struct attached_list *list, pid_t tgid);
void attached_bury_all(struct attached_list *list);
/* The same for probes of a file that has changed since it was analysed. */
void attached_bury_file(struct attached_list *list, const struct elf_entry *file);
/* The same for probes from analyses of earlier contents of the file. */
void attached_bury_changed(struct attached_list *list, const struct elf_entry *file);
/*
 * Takes them off, and waits for it, or leaves it to a thread: the kernel waits until no thread is in a probe, and one may be
 * waiting for the caller. Whether there was anything to do.
 */
bool attached_sweep(struct attached_list *list, bool wait);
/* Probes in the file for the process. */
size_t attached_sites(const struct attached_list *list, pid_t tgid, const struct elf_entry *file);
void attached_free(struct attached_list *list); /* of one that has been buried and swept */

#endif
