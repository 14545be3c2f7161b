/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of C++ types as type_info objects hold them, which stay in libraries that have been stripped.
 */
#ifndef XPT_TARGET_ELF_TYPE_NAME_H
#define XPT_TARGET_ELF_TYPE_NAME_H

#include <stddef.h>

/*
 * Turns the mangled name of a C++ type (<type> of the Itanium C++ ABI) into readable text:
 * "N11onnxruntime4GemmIfEE" into "onnxruntime::Gemm<float>". An asterisk in front, the mark of a type that is known to
 * one library only, is left out. The format is that of `c++filt -t`.
 *
 * mangled may hold any bytes: time, stack and memory are bounded, and only letters, digits, '_', '$', '.' and bytes
 * above 0x7f come over from it. text has at most size bytes with the NUL; after an error it is the empty string.
 *
 * 0; -ENOTSUP when the name is not understood, malformed, or too long or nested too deeply, or the text does not fit.
 */
int type_name_read(const char *mangled, char *text, size_t size);

/*
 * The name of a function as its symbol has it, without parameters: "_ZN2at4_ops2mm4callERKNS_6TensorES4_" gives
 * "at::_ops::mm::call". What follows the name is ignored. A symbol that is not mangled is its own name. As above.
 */
int type_name_read_function(const char *symbol, char *text, size_t size);

#endif
