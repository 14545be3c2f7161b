/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/format/object.h"

#include <string.h>

static const char *const names[CODE_KINDS] = {
	[CODE_UNKNOWN] = "unknown", [CODE_ELF] = "elf",	      [CODE_HSACO] = "hsaco", [CODE_CUBIN] = "cubin",
	[CODE_FATBIN] = "fatbin",   [CODE_BUNDLE] = "bundle", [CODE_PTX] = "ptx",     [CODE_SPIRV] = "spirv",
	[CODE_BITCODE] = "bitcode", [CODE_OPENCL] = "opencl", [CODE_NEFF] = "neff",   [CODE_QPC] = "qpc",
	[CODE_ONNX] = "onnx",	    [CODE_GGUF] = "gguf",     [CODE_HLO] = "hlo",     [CODE_MLIR] = "mlir",
};

const char *code_kind_name(enum code_kind kind)
{
	return (unsigned int)kind < CODE_KINDS ? names[kind] : names[CODE_UNKNOWN];
}

enum code_kind code_kind_from_name(const char *name)
{
	for (unsigned int kind = 0; kind < CODE_KINDS; kind++)
		if (strcmp(names[kind], name) == 0)
			return (enum code_kind)kind;
	return CODE_UNKNOWN;
}
