/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where to put a probe. The kernel runs some instructions under a probe by emulation (cheap) and others by
 * single-stepping a copy (on a virtual machine 30 times dearer). A probe may sit a few instructions inside the function
 * when everything that it reads is still as at the entry.
 */
#ifndef XPT_TARGET_PROBE_SITE_H
#define XPT_TARGET_PROBE_SITE_H

#include "describe/runtime/description.h"
#include "target/elf/file.h"

enum site_class {
	SITE_OPTIMISED = 1, /* 5-byte nop at the function's entry; the kernel may turn it into a call */
	SITE_EMULATED = 2,  /* the kernel emulates the instruction */
	SITE_STEPPED = 3,   /* the kernel single-steps the instruction */
};

struct site {
	__u64 offset;	/* file offset of the probe */
	__u64 function; /* file offset of the function's entry; offset - function is how far the probe was moved */
	enum site_class class;
	__u64 semaphore; /* file offset of 16 bits that count the tracers of a static probe; 0: there are none */
};

/*
 * Chooses the probe's place for the function at address (virtual). arguments: bit i set when argument i is read at the
 * entry (0..5 registers on x86-64, 0..7 on AArch64; higher bits: on the stack). The probe is moved forward
 * only while the stack pointer has not moved, no register in arguments has been written, nothing jumps out, and no branch in
 * the function lands between; never onto a 5-byte nop other than at the entry.
 * -ENOENT: no executable code there; -ENOEXEC: the bytes are not instructions, or the file does not show that one begins
 * there: it is neither the begin of a function (by .eh_frame, else by symbol), nor reached by decoding from one (nothing must
 * be placed).
 */
int site_choose(struct elf_file *file, __u64 address, __u32 arguments, struct site *site);

/*
 * Chooses a place for when the call has come back that returns to address: there the stack pointer is what it was then, and
 * nothing but the next few instructions has happened in between. Where none of them is cheap, it is the first. Errors as above.
 */
int site_choose_after(struct elf_file *file, __u64 address, struct site *site);

/*
 * The place of a static probe at address (virtual): exactly there. It has to be an instruction that does nothing and that all
 * kernels emulate: a 5-byte nop would become a call on some, which writes where a function may keep data. -ENOEXEC: it is
 * something else; -ENOENT.
 */
int site_of_marker(struct elf_file *file, __u64 address, struct site *site);

/* Registers and stack that the fetches of a spec, and of its code, read when the call begins; for site_choose(). */
__u32 site_arguments(const struct call_spec *spec);

const char *site_class_name(enum site_class class); /* "optimised", "emulated", "stepped" */

/* Expected cost of one recorded call (entry and return) of the class on this machine's kernel, in nanoseconds;
 * from measurements on one virtual machine (docs/performance.md), a figure to compare classes with. */
unsigned int site_class_cost(enum site_class class);

#endif
