/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "code/format/elf_view.h"

/* e_flags of AMD GPUs, after LLVM's User Guide for AMDGPU. */
#define AMDGPU_PROCESSOR 0xff
/* e_flags of NVIDIA GPUs: up to ABI 7 the processor is in the low byte, from ABI 8 on (CUDA 13) in the next. */
#define CUDA_ABI_SHIFTED 8
#define CUDA_ACCELERATED_SHIFTED 0x8 /* sm_90a, ... */
#define CUDA_ACCELERATED 0x800

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif

/* From 0x20 on; NULL: reserved. */
#define AMDGPU_FIRST 0x20
static const char *const amdgpu[] = {
	"gfx600",
	"gfx601",
	"gfx700",
	"gfx701",
	"gfx702",
	"gfx703",
	"gfx704",
	NULL,
	"gfx801",
	"gfx802",
	"gfx803",
	"gfx810",
	"gfx900",
	"gfx902",
	"gfx904",
	"gfx906",
	"gfx908",
	"gfx909",
	"gfx90c",
	"gfx1010",
	"gfx1011",
	"gfx1012",
	"gfx1030",
	"gfx1031",
	"gfx1032",
	"gfx1033",
	"gfx602",
	"gfx705",
	"gfx805",
	"gfx1035",
	"gfx1034",
	"gfx90a",
	"gfx940",
	"gfx1100",
	"gfx1013",
	"gfx1150",
	"gfx1103",
	"gfx1036",
	"gfx1101",
	"gfx1102",
	"gfx1200",
	"gfx1250",
	"gfx1151",
	"gfx941",
	"gfx942",
	NULL,
	"gfx1201",
	"gfx950",
	"gfx1310",
	"gfx9-generic",
	"gfx10-1-generic",
	"gfx10-3-generic",
	"gfx11-generic",
	"gfx1152",
	NULL,
	"gfx1154",
	"gfx1153",
	"gfx12-generic",
	"gfx1251",
	"gfx12-5-generic",
	"gfx1172",
	"gfx1170",
	"gfx1171",
	"gfx9-4-generic",
};

static const struct {
	unsigned int machine;
	const char *narrow, *wide;
} processors[] = {
	{ EM_386, "i386", NULL },
	{ EM_X86_64, "x32", "x86_64" },
	{ EM_ARM, "arm", NULL },
	{ EM_AARCH64, "aarch64_ilp32", "aarch64" },
	{ EM_RISCV, "riscv32", "riscv64" },
	{ EM_PPC64, NULL, "ppc64" },
	{ EM_S390, "s390", "s390x" },
	{ EM_LOONGARCH, "loongarch32", "loongarch64" },
	{ EM_XTENSA, "xtensa", NULL },
	{ EM_QDSP6, "hexagon", NULL },
	{ EM_BPF, NULL, "bpf" },
};

static const char *amdgpu_name(unsigned int flags)
{
	unsigned int index = (flags & AMDGPU_PROCESSOR) - AMDGPU_FIRST;

	return index < sizeof(amdgpu) / sizeof(amdgpu[0]) ? amdgpu[index] : NULL;
}

static const char *processor_name(const struct elf_view *view)
{
	for (size_t i = 0; i < sizeof(processors) / sizeof(processors[0]); i++)
		if (processors[i].machine == view->machine)
			return view->wide ? processors[i].wide : processors[i].narrow;
	return NULL;
}

bool elf_view_machine(const struct elf_view *view, char name[ELF_MACHINE_NAME])
{
	const char *known;

	if (view->machine == EM_CUDA) {
		bool shifted = view->abi_version >= CUDA_ABI_SHIFTED;
		unsigned int processor = (shifted ? view->flags >> 8 : view->flags) & 0xff;
		bool accelerated = view->flags & (shifted ? CUDA_ACCELERATED_SHIFTED : CUDA_ACCELERATED);

		snprintf(name, ELF_MACHINE_NAME, "sm_%u%s", processor, accelerated ? "a" : "");
		return processor;
	}
	known = view->machine == EM_AMDGPU ? amdgpu_name(view->flags) : processor_name(view);
	if (known)
		snprintf(name, ELF_MACHINE_NAME, "%s", known);
	return known;
}
