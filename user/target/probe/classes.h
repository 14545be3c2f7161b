/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Classes of a stripped C++ library: run-time type information stays in it, because exceptions and dynamic_cast need it.
 * From the name of a base class to the methods of all classes derived from it, as the Itanium C++ ABI lays out names,
 * type_info objects and virtual tables. The file may be hostile; memory and time are bounded.
 */
#ifndef XPT_TARGET_PROBE_CLASSES_H
#define XPT_TARGET_PROBE_CLASSES_H

#include "target/elf/file.h"

#define CLASSES_MAX 65536      /* further ones are left out, and counted */
#define CLASS_NAME_LENGTH 1024 /* bytes of a mangled name; classes with a longer one are left out */

/* What one class has in one slot of the base's virtual table. */
struct class_method {
	char *class_name; /* as type information has it, mangled: "N11onnxruntime4GemmIfEE"; owned */
	__u64 table;	  /* virtual address that an object's base holds: behind offset and type information */
	__u64 method;	  /* virtual address of code; one that adjusts the object when the base is not its first */
	unsigned int slot;
};

struct classes {
	struct class_method *methods; /* sorted by method, slot and class name */
	size_t method_count;
	size_t class_count; /* derived from the base, directly or not */
	size_t inherited;   /* slots of their tables with the base's own function */
	size_t abstract;    /* slots of their tables without code of this file: pure, or of another library */
	size_t tables;	    /* virtual tables with the base that were found */
	__u64 *own; /* what the base itself has in each of the slots: virtual addresses; 0: nothing, or not known */
	size_t left_out; /* classes: the base is a virtual one, so that it has no fixed place; or too many */
};

/*
 * base: "onnxruntime::OpKernel", no template. slots: of its virtual table, counted from 0, destructors included. -ENOENT: the
 * file does not have the class; -EINVAL: that is no name of a class; -ENOMEM; or what reading the file gives.
 */
int classes_find(struct elf_file *file, const char *base, const unsigned int *slots, size_t slot_count,
		 struct classes *result);
void classes_free(struct classes *classes);

/* The order of methods, for qsort(). */
int class_method_compare(const void *left, const void *right);

#endif
