#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh FLAG...: every check that needs tools, all of them, whatever fails before. FLAG...: compiler flags of the build.
# TIDY=0 leaves out clang-tidy, which takes most of the time.
set -u

cd "$(dirname "$0")/../.." || exit 1
failed=
skipped=

# check NAME TOOL COMMAND...: a missing tool is named, never passed over in silence.
check() {
	local name=$1 tool=$2
	shift 2
	if ! command -v "$tool" >/dev/null; then
		echo "lint: $name: skipped, $tool is not installed"
		skipped="$skipped $name"
	elif "$@"; then
		echo "lint: $name: ok"
	else
		echo "lint: $name: FAILED"
		failed="$failed $name"
	fi
}

# tidy FLAG...: its counts of suppressed warnings go to standard error and tell nothing.
tidy() {
	printf '%s\0' "${units[@]}" |
		xargs -0 -P "$(nproc)" -I {} clang-tidy-14 --quiet {} -- "$@" 2>/dev/null
}

mapfile -t sources < <(find user include bpf docs node tests -name '*.[ch]' | sort)
mapfile -t units < <(find user -name '*.c' | sort)
mapfile -t scripts < <(find .ci tests vmlinux user -path '*/corpus' -prune -o \( -name '*.sh' -o -name '*.bash' -o -path .ci/run \) -print | sort)
mapfile -t manuals < <(find user/cli/man -name '*.[13]' | sort)
mapfile -t javascripts < <(find node tests user -name '*.js' -o -name '*.mjs' | sort)
mapfile -t pythons < <(find python tests vmlinux -name '*.py' | sort)

check format clang-format-14 clang-format-14 --style=file --dry-run -Werror "${sources[@]}"
check shell shellcheck shellcheck -x "${scripts[@]}"
check manuals mandoc mandoc -T lint -W warning "${manuals[@]}"
# Compiled in memory: no __pycache__ beside the sources.
check python python3 python3 -W error -c '
import sys
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as source:
        compile(source.read(), name, "exec")
' "${pythons[@]}"
# shellcheck disable=SC2016 # of the inner shell
check javascript node sh -c 'for each; do node --check "$each" || exit; done' sh "${javascripts[@]}"
check layers python3 python3 tests/lint/layers.py
check words grep tests/lint/words.sh
check documents python3 python3 tests/lint/documents.py
check selftest python3 python3 tests/lint/selftest.py
if [ "${TIDY:-1}" != 0 ]; then
	check tidy clang-tidy-14 tidy "$@"
fi

[ -n "$skipped" ] && echo "lint: skipped:$skipped"
if [ -n "$failed" ]; then
	echo "lint: FAILED:$failed"
	exit 1
fi
echo "lint: all ok"
