#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes the seeds of the ELF fuzz target in tests/fuzz/corpus/elf: small shared libraries that have each structure the
# reader knows. Needs clang and lld; run again only when a structure is added.
set -eu

out=$(cd "$(dirname "$0")" && pwd)/corpus/elf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/seed.c" <<'C'
extern int outside(int);
static int hidden(int a) { return outside(a) + 1; }
int execute(int *p, int a) { if (!p) return -1; for (int i = 0; i < a; i++) *p += hidden(i); return *p; }
int load(int a) { return a ? hidden(a) : 0; }
#define SIX hidden, execute, load, hidden, execute, load
static void *const table[12] = {SIX, SIX};
static const void *get(unsigned version) { return version - 1 < 30 ? table : 0; }
static void *const object[2] = {get, load};
const void *get_base(void) { return object; }
static struct { unsigned long size; void *slots[8]; } sized = {72, {hidden, 0, load}}, late;
void *get_sized(void) { return &sized; }
void *get_late(void) { return &late; }
C

cat >"$work/classes.cpp" <<'C'
namespace rt {
struct Kernel { virtual void gone(); virtual void freed(); virtual int Compute() = 0; virtual int a(); virtual int b(); };
void Kernel::gone() {} void Kernel::freed() {} int Kernel::a() { return 1; } int Kernel::b() { return 2; }
struct One : Kernel { int Compute() override; }; int One::Compute() { return 3; }
struct Other { virtual int x(); long y; }; int Other::x() { return 4; }
struct Two : Other, One { int Compute() override; }; int Two::Compute() { return 5; }
template <class T> struct Three : Two { int b() override { return sizeof(T); } }; template struct Three<int>;
struct Four : virtual Kernel { int Compute() override; }; int Four::Compute() { return 6; }
}
C

cat >"$work/places.c" <<'C'
extern void report(const char *), register_function(void **, const void *, char *, const char *, int), register_callback(void (*)(int));
static int stub(int a) { report("stub"); return a; }
static int other_stub(int a) { report("other stub"); return a + 1; }
int refers(int a) { report("a string of the library"); return a; }
static void called(int a) { report("called"); (void)a; }
void enter(int a) {
	__asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",%%note\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n"
		"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, 0, 0\n.asciz \"lib\"\n.asciz \"step\"\n"
		".asciz \"-4@%0\"\n994: .balign 4\n.popsection" : : "r"(a));
}
void begin(void **all) {
	register_function(all, stub, "_Z6kernelPf", "_Z6kernelPf", -1);
	register_function(all, other_stub, "_Z5otherPf", "_Z5otherPf", -1);
	register_callback(called);
}
C

# build NAME OPTION...; the environment's source, or seed.c
build() {
	name=$1
	shift
	clang-14 -w -shared -fPIC -nostdlib -fuse-ld=lld -Wl,-z,max-page-size=64,-z,noseparate-code,--build-id "$@" \
		-o "$out/$name" "$work/${source:-seed}.c"
}

build x86_64 --target=x86_64-linux-gnu -O2
build x86_64_landing_pads --target=x86_64-linux-gnu -O1 -fcf-protection
build x86_64_relr_stripped --target=x86_64-linux-gnu -O2 -s -Wl,--pack-dyn-relocs=relr
build x86_64_sysv_hash --target=x86_64-linux-gnu -O0 -Wl,--hash-style=sysv
build aarch64 --target=aarch64-linux-gnu -O2
build aarch64_bti --target=aarch64-linux-gnu -O1 -mbranch-protection=standard
printf 'V_1.0 { execute; };\nV_1.2 { load; } V_1.0;\n' >"$work/versions"
build x86_64_versions --target=x86_64-linux-gnu -O2 -s -Wl,-soname,seed "-Wl,--version-script=$work/versions"
for machine in x86_64 aarch64; do
	clang++-14 -w -shared -fPIC -nostdlib -fuse-ld=lld -Wl,-z,max-page-size=64,-z,noseparate-code -s \
		--target=$machine-linux-gnu -O1 -o "$out/${machine}_classes" "$work/classes.cpp"
done
for machine in x86_64 aarch64; do
	source=places build ${machine}_places --target=$machine-linux-gnu -O2
	clang++-14 -w -shared -fPIC -nostdlib -fuse-ld=lld -Wl,-z,max-page-size=64,-z,noseparate-code \
		--target=$machine-linux-gnu -O1 -o "$out/${machine}_methods" "$work/classes.cpp"
done
ls -l "$out"
