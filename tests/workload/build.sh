#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds the workloads: build.sh OUTDIR. Stand-ins come in two flavours: OUTDIR/lib with endbr64 at every entry (as most
# distributions compile; bti on AArch64), OUTDIR/plain/lib without. CC and CFLAGS are respected.
set -eu

here=$(dirname "$0")
out=${1:?usage: build.sh OUTDIR}
cc=${CC:-cc}
flags="-std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror ${CFLAGS:-} -I$here -I$here/../vm/driver"

case $($cc -dumpmachine) in
aarch64*) marked=-mbranch-protection=standard plain=-mbranch-protection=none ;;
*) marked=-fcf-protection=full plain=-fcf-protection=none ;;
esac

mkdir -p "$out/lib" "$out/plain/lib"

# RUNTIME SCENARIO LIBRARY [LIBRARY THAT IT CALLS]
standins="nrt nrt libnrt.so.1
qaic qaic libQAic.so
vaccel vaccel libvaccel.so
hsa - libhsa-runtime64.so.1
hip hip libamdhip64.so.6 libhsa-runtime64.so.1
cuda cuda libcuda.so.1
cudart cudart libcudart.so.12 libcuda.so.1
pjrt pjrt pjrt_plugin.so
ggml - libggml-base.so.0
llama llama libllama.so.0 libggml-base.so.0
level_zero - libze_loader.so.1"

# What every stand-in brings with it.
device="$here/standin/device.c $here/accelerator.c $here/emulated.c"
interface="$here/accelerator.h $here/emulated.h $here/../vm/driver/xptaccel_uapi.h"

# newer TARGET SOURCE...: is TARGET up to date?
newer() {
	target=$1
	shift
	[ -e "$target" ] || return 1
	for source in "$@"; do
		[ -n "$(find "$target" -newer "$source")" ] || return 1
	done
}

# library DIRECTORY FLAG NAME FILE [NEEDED]
library() {
	# shellcheck disable=SC2086
	newer "$1/$4" "$here/standin/$3.c" "$here"/standin/*.h $device $interface "$here/build.sh" && return
	# shellcheck disable=SC2016,SC2086
	$cc $flags "$2" -fPIC -fvisibility=hidden -shared -Wl,-soname,"$4" -Wl,--build-id -Wl,-rpath,'$ORIGIN' \
		-o "$1/$4" "$here/standin/$3.c" $device ${5:+"$1/$5"} -lpthread
}

engine="$here/workload.c $here/churn.c $here/ledger.c"
programs="$engine $here/workload.h $here/ledger.h $interface $here/build.sh"

echo "$standins" | while read -r name scenario file needed; do
	library "$out/lib" "$marked" "$name" "$file" "$needed"
	library "$out/plain/lib" "$plain" "$name" "$file" "$needed"
	[ "$scenario" = - ] && continue
	linked="-DWORKLOAD_LINKED=scenario_$scenario"
	# shellcheck disable=SC2086
	newer "$out/linked-$name" $programs "$here/scenario/$scenario.c" "$out/lib/$file" || {
		# as an ordinary program has it: the library among its NEEDED entries
		# shellcheck disable=SC2016,SC2086
		$cc $flags "$linked" -o "$out/linked-$name" $engine \
			"$here/scenario/$scenario.c" "$out/lib/$file" -Wl,-rpath,'$ORIGIN/lib' -ldl -lpthread
		# the runtime inside the executable: found by the symbol table only; and without a dynamic loader
		case $name in
		nrt | qaic)
			# shellcheck disable=SC2086
			$cc $flags "$linked" -o "$out/inside-$name" $engine \
				"$here/scenario/$scenario.c" "$here/standin/$name.c" $device -ldl -lpthread
			# shellcheck disable=SC2086
			$cc $flags -Wno-error "$linked" -static -o "$out/static-$name" $engine \
				"$here/scenario/$scenario.c" "$here/standin/$name.c" \
				$device -lpthread
			;;
		esac
	}
done

# shellcheck disable=SC2086
newer "$out/workload" $programs "$here"/scenario/*.c || {
	$cc $flags -o "$out/workload" $engine "$here"/scenario/*.c -ldl -lpthread
}

# shellcheck disable=SC2086
newer "$out/sleeper" "$here/sleeper.c" || {
	$cc $flags -o "$out/sleeper" "$here/sleeper.c"
	$cc $flags -static -o "$out/sleeper-static" "$here/sleeper.c"
}

# shellcheck disable=SC2086
newer "$out/clock_jumps.so" "$here/clock_jumps.c" ||
	$cc $flags -fPIC -shared -o "$out/clock_jumps.so" "$here/clock_jumps.c"

# shellcheck disable=SC2086
newer "$out/mappings.so" "$here/mappings.c" ||
	$cc $flags -fPIC -shared -o "$out/mappings.so" "$here/mappings.c"

# shellcheck disable=SC2086
newer "$out/faults.so" "$here/faults.c" ||
	$cc $flags -fPIC -fvisibility=hidden -shared -o "$out/faults.so" "$here/faults.c" -ldl

# shellcheck disable=SC2086
newer "$out/onnx" "$here/onnx/onnx.c" "$here/ledger.c" "$here/ledger.h" $interface ||
	$cc $flags -o "$out/onnx" "$here/onnx/onnx.c" "$here/ledger.c" -ldl -lpthread

# Gives code objects to the stand-ins, which call it back.
loads=$here/codeobj
# shellcheck disable=SC2086
newer "$out/code_loads" "$loads"/* "$here/standin/pjrt.h" "$here/build.sh" ||
	$cc $flags -rdynamic -o "$out/code_loads" "$loads"/*.c -ldl -lpthread

# Launches kernels by addresses of the host; its library of CUDA is linked to another one, in the same folder.
# shellcheck disable=SC2016,SC2086
newer "$out/stubs" "$here/stubs.c" "$here/build.sh" "$out/lib/libcudart.so.12" "$out/lib/libamdhip64.so.6" ||
	$cc $flags -o "$out/stubs" "$here/stubs.c" "$out/lib/libcudart.so.12" "$out/lib/libamdhip64.so.6" \
		-Wl,-rpath,'$ORIGIN/lib'

# A chain of calls that is known, without frame pointers.
# shellcheck disable=SC2016,SC2086
newer "$out/stacks" "$here/stacks.c" "$here/build.sh" "$out/lib/libnrt.so.1" ||
	$cc $flags $marked -fomit-frame-pointer -Wl,--build-id -o "$out/stacks" "$here/stacks.c" "$out/lib/libnrt.so.1" \
		-Wl,-rpath,'$ORIGIN/lib' -lpthread

# Prompts and answers of a language model.
# shellcheck disable=SC2016,SC2086
newer "$out/tokens" "$here/tokens.c" "$here/build.sh" "$here/standin/llama.h" "$out/lib/libllama.so.0" ||
	$cc $flags -o "$out/tokens" "$here/tokens.c" "$out/lib/libllama.so.0" -Wl,-rpath,'$ORIGIN/lib'

# Programs that check themselves: a stop, a signal or a call that goes wrong shows in what they print.
harm=$here/harm
mkdir -p "$out/harm"
for name in checks parent storm stacks leave; do
	# shellcheck disable=SC2016,SC2086
	newer "$out/harm/$name" "$harm/$name.c" "$harm"/harm.* "$here/build.sh" "$out/lib/libnrt.so.1" ||
		$cc $flags -rdynamic -o "$out/harm/$name" "$harm/$name.c" "$harm/harm.c" "$out/lib/libnrt.so.1" \
			-Wl,-rpath,'$ORIGIN/../lib' -ldl -lpthread
done
# shellcheck disable=SC2086
newer "$out/harm/states" "$harm/states.c" "$here/build.sh" ||
	$cc $flags -o "$out/harm/states" "$harm/states.c"

# Obeys commands, with a runtime that can be unloaded.
machine=$here/machine
mkdir -p "$out/machine"
# shellcheck disable=SC2086
newer "$out/machine/machine" "$machine"/* "$here/build.sh" || {
	$cc $flags "$marked" -fPIC -fvisibility=hidden -shared -Wl,--build-id -o "$out/machine/marked.so" "$machine/runtime.c"
	$cc $flags "$plain" -fPIC -fvisibility=hidden -shared -Wl,--build-id -o "$out/machine/plain.so" "$machine/runtime.c"
	$cc $flags -o "$out/machine/machine" "$machine/main.c" -ldl -lpthread
}

# What threads do in its inferences; exported, so that a description finds them.
# shellcheck disable=SC2086
newer "$out/states" "$here/states.c" "$here/build.sh" ||
	$cc $flags -rdynamic -o "$out/states" "$here/states.c" -lpthread

# One inference in a hundred is slow, for a known reason.
# shellcheck disable=SC2086
newer "$out/slow" "$here/slow.c" "$here/build.sh" ||
	$cc $flags -rdynamic -o "$out/slow" "$here/slow.c" -lpthread

# Who writes into the tables of a plugin, and who uses them.
hostile=$here/hostile
mkdir -p "$out/hostile"
# shellcheck disable=SC2016,SC2086
newer "$out/hostile/table" "$hostile"/* "$here/build.sh" || {
	$cc $flags -fPIC -shared -Wl,-soname,plugin.so -Wl,-z,noseparate-code -o "$out/hostile/plugin.so" "$hostile/plugin.c"
	$cc $flags -DSHIFTED -fPIC -shared -Wl,-soname,offset.so -Wl,-z,noseparate-code -o "$out/hostile/offset.so" "$hostile/plugin.c"
	$cc $flags -o "$out/hostile/table" "$hostile/table.c" "$out/hostile/plugin.so" -Wl,-rpath,'$ORIGIN' -ldl
}

# Programs that mark regions: with nothing of xputrace but its header, and with vAccel's stand-in.
region=$here/region
include=$here/../../include
# shellcheck disable=SC2086
newer "$out/marks" "$region/marks.c" "$include/xputrace/region.h" "$here/build.sh" ||
	$cc $flags "-I$include" -o "$out/marks" "$region/marks.c" -lpthread
# shellcheck disable=SC2086
newer "$out/classify" "$region/classify.c" "$include/xputrace/region.h" "$here/build.sh" ||
	$cc $flags "-I$include" -o "$out/classify" "$region/classify.c" -ldl -lm -lpthread
# shellcheck disable=SC2016,SC2086
newer "$out/vaccel_regions" "$region/vaccel_regions.c" "$here/build.sh" "$out/lib/libvaccel.so" ||
	$cc $flags -o "$out/vaccel_regions" "$region/vaccel_regions.c" "$out/lib/libvaccel.so" -Wl,-rpath,'$ORIGIN/lib'

# What not every machine has: the tests that need them say so when they are missing.
# shellcheck disable=SC2086
newer "$out/opencl" "$here/opencl.c" "$here/ledger.c" "$here/ledger.h" $interface ||
	$cc $flags -o "$out/opencl" "$here/opencl.c" "$here/ledger.c" -lOpenCL ||
	echo "build.sh: no OpenCL: the OpenCL workload is left out" >&2
# shellcheck disable=SC2086
newer "$out/opencl_loads" "$here/opencl_loads.c" ||
	$cc $flags -o "$out/opencl_loads" "$here/opencl_loads.c" -lOpenCL ||
	echo "build.sh: no OpenCL: the workload that loads its programs is left out" >&2
newer "$out/sleeper32" "$here/sleeper32.S" ||
	$cc -m32 -nostdlib -static -o "$out/sleeper32" "$here/sleeper32.S" 2>/dev/null ||
	echo "build.sh: no 32-bit linking: the 32-bit workload is left out" >&2

# Functions in C and C++ that are left in every way: with its symbols. The clones of a function that optimisation makes are other functions.
mkdir -p "$out/functions"
if ! newer "$out/functions/functions" "$here/functions/main.cpp" "$here/build.sh"; then
	${CXX:-g++} -std=c++17 -O2 -fno-ipa-cp -Wall -Wextra -Werror -o "$out/functions/functions" "$here/functions/main.cpp" -lpthread
fi

# A runtime in C++, stripped, whose programs are made of operators; it launches kernels of the CUDA stand-in.
operators=$here/operators
mkdir -p "$out/operators"
if ! newer "$out/operators/main" "$operators"/* "$here/build.sh" "$out/lib/libcuda.so.1"; then
	# shellcheck disable=SC2016
	set -- -std=gnu++17 -O1 -Wall -Wextra -Werror -Wl,-rpath,'$ORIGIN:$ORIGIN/../lib'
	${CXX:-g++} "$@" -fPIC -shared -s -Wl,-soname,libtoy.so -o "$out/operators/libtoy.so" "$operators/toy.cpp" "$out/lib/libcuda.so.1"
	${CXX:-g++} "$@" -o "$out/operators/main" "$operators/main.cpp" "$out/operators/libtoy.so" "$out/lib/libcuda.so.1" -lpthread
	# One whose operators are functions.
	${CXX:-g++} "$@" -fPIC -shared -s -Wl,-soname,libtorch_cpu.so -o "$out/operators/libtorch_cpu.so" "$operators/functions.cpp"
	${CXX:-g++} "$@" -o "$out/operators/functions" "$operators/functions_main.cpp" "$out/operators/libtorch_cpu.so" -lpthread
fi
