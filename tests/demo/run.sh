#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh: a real model in ONNX Runtime, traced while it runs; OpenCL on PoCL where Node.js or its package can't be had.
# Writes demo-trace.json and prints the summary. As root. Environment: MAKE.
set -u

cd "$(dirname "$0")/../.." || exit 1
make=${MAKE:-make}
trace=demo-trace.json
seconds=5
target=

say() {
	printf '\ndemo: %s\n' "$*"
}

fail() {
	printf '\ndemo: %s\n' "$*" >&2
	exit 1
}

# Whatever happens, the traced program does not outlive the demonstration.
stop_target() {
	[ -n "$target" ] || return
	kill "$target" 2>/dev/null
	wait "$target" 2>/dev/null
	target=
}
trap stop_target EXIT

# start COMMAND...: starts the program to trace and waits for the line with which it says that it runs.
start() {
	local line
	coproc io { exec "$@"; }
	# shellcheck disable=SC2154 # set by coproc
	target=$io_PID
	while IFS= read -r -t 60 -u "${io[0]}" line; do
		[[ $line == *'"ready"'* ]] && return
	done
	fail "the program to trace did not start: $*"
}

onnx_possible() {
	tests/deps.sh demo || return 1
	"$make" --no-print-directory npm
}

[ "$(id -u)" -eq 0 ] || fail "tracing needs root: sudo make demo"
tests/deps.sh build || exit 1
say "building"
"$make" --no-print-directory -j"$(nproc)" all || exit 1

if onnx_possible; then
	mkdir -p build/demo
	python3 tests/workload/onnx/make_model.py small build/demo/mlp.onnx hidden=512 || fail "the model could not be generated"
	say "serving a model in ONNX Runtime: two sessions, from Node.js, unmodified"
	start node tests/workload/onnx/serve.mjs build/demo/mlp.onnx --sessions 2 --concurrency 2 --rate 200 --seconds 0
else
	say "Node.js or onnxruntime-node can't be had here: OpenCL on PoCL instead"
	seconds=1 # of some 60,000 calls: longer makes the trace large
	tests/deps.sh workload || exit 1
	"$make" --no-print-directory workload || exit 1
	# Half a minute of work, of which the end is not waited for.
	start build/workload/opencl --wait-for-go 1000000
	echo go >&"${io[1]}"
fi

say "attaching to process $target for $seconds seconds, while it runs"
build/xputrace record -p "$target" -d "${seconds}s" -o "$trace" || fail "recording failed; build/xputrace check tells what is missing"
stop_target

say "the trace is in $trace ($(stat -c %s "$trace") bytes)
      Open https://ui.perfetto.dev and drop it there (it does not leave your machine), or load it in chrome://tracing.
      Two sessions of one file are two programs. --name HANDLE=NAME names a program that has no name.
      Your own program: sudo build/xputrace record -p PID -o trace.json"
