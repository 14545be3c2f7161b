/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of a code object, that is, of bytes that a program gives to a runtime so that a device runs them: of which
 * kind they are, how many, and which functions are in them. Bytes are never trusted: what does not fit is an error in
 * words, and nothing outside them is read.
 */
#ifndef XPT_CODE_FORMAT_OBJECT_H
#define XPT_CODE_FORMAT_OBJECT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Numbers are part of recordings. */
enum code_kind {
	CODE_UNKNOWN = 0,
	CODE_ELF = 1,	 /* for a processor, or a machine that has no kind of its own */
	CODE_HSACO = 2,	 /* ELF for AMD GPUs */
	CODE_CUBIN = 3,	 /* ELF for NVIDIA GPUs */
	CODE_FATBIN = 4, /* container of CUDA: cubins and PTX for several GPUs */
	CODE_BUNDLE = 5, /* container of clang: objects for several targets */
	CODE_PTX = 6,	 /* text */
	CODE_SPIRV = 7,
	CODE_BITCODE = 8, /* LLVM */
	CODE_OPENCL = 9,  /* source text */
	CODE_NEFF = 10,	  /* AWS Neuron; its layout is not published: nothing in it is read */
	CODE_QPC = 11,	  /* Qualcomm Cloud AI; the same */
	CODE_ONNX = 12,
	CODE_GGUF = 13,
	CODE_HLO = 14,	/* XLA: a serialized HloModuleProto */
	CODE_MLIR = 15, /* text, or bytecode (StableHLO, MHLO) */
	CODE_KINDS,
};

const char *code_kind_name(enum code_kind kind);      /* "hsaco"; never NULL */
enum code_kind code_kind_from_name(const char *name); /* CODE_UNKNOWN: none of these, or "unknown" */

#define CODE_FUNCTIONS_MAX 65536 /* kept of one object */
#define CODE_PARTS_MAX 4096
#define CODE_DEPTH_MAX 4 /* objects inside of objects are read so deep */

struct code_function {
	char *name;    /* as in the object, not demangled */
	__u64 offset;  /* of its first byte in the object; 0: it has no place of its own (text, modules) */
	__u64 size;    /* bytes; 0: not known */
	__u64 address; /* virtual address in the object, where it has such; else 0 */
	bool kernel;   /* may be launched by the host */
};

/* An object inside a container, a file that belongs to it. */
struct code_part {
	char *name; /* target ("hipv4-amdgcn-amd-amdhsa--gfx90a", "sm_80"), or path of the file */
	enum code_kind kind;
	bool external; /* a file of its own; offset and size are then in that, size 0 is up to its end */
	__u64 offset;
	__u64 size;
};

struct code_contents {
	enum code_kind kind;
	char *machine; /* "x86_64", "gfx90a", "sm_80", "64-bit"; NULL: unknown */
	char *name;    /* what it calls itself (ONNX graph, GGUF model); NULL */
	char *error;   /* why it was not read to its end: "section 3 lies behind the end"; NULL: it was */
	struct code_function *functions; /* in the order of offset, then name */
	size_t function_count;
	__u64 functions_left_out; /* beyond CODE_FUNCTIONS_MAX */
	struct code_part *parts;  /* in their order in the object */
	size_t part_count;
	__u64 parts_left_out;
};

/*
 * Reads an object. hint: what it is when its bytes do not identify it (source text, formats without a magic number),
 * CODE_UNKNOWN: nothing is known. Always fills result, which code_contents_free() empties. 0, or -ENOMEM. A bad object
 * is 0 with an error in it.
 */
int code_read(const void *bytes, size_t size, enum code_kind hint, struct code_contents *result);
void code_contents_free(struct code_contents *contents); /* leaves it zeroed */

/*
 * Reads length bytes at offset of an object of unknown size, from wherever it lies. 0 or -errno; nothing is read in
 * part.
 */
typedef int (*code_read_fn)(void *context, __u64 offset, void *to, size_t length);

/*
 * How many bytes an object has, by its own header. -ENODATA: it has none (text: see code_is_text()), -EBADMSG: it is
 * invalid, -EFBIG: more than limit, or the error of read. At most a few hundred reads.
 */
int code_own_size(code_read_fn read, void *context, __u64 limit, __u64 *size);
/* Does it look like text that ends with a 0 byte? length bytes of its begin, at least 1. */
bool code_is_text(const void *head, size_t length);

#endif
