#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh PROGRAM [OPTION...]: runs the unit tests in PROGRAM and prints what failed, what was skipped and the totals.
# What a sanitizer reports is a failure even when the test had ended by then: leaks are found at the very end.
set -u

program=$1
shift
reports=$program.reports
log=$program.log
rm -rf "$reports"
mkdir -p "$reports"

ASAN_OPTIONS=log_path=$(realpath "$reports")/report:${ASAN_OPTIONS:-} \
	UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-} "$program" --verbose=1 "$@" >"$log" 2>&1
status=$?

grep -Ev '^\[(RUN |PASS|====)\]|: Test is disabled$' "$log"
for report in "$reports"/*; do
	[ -e "$report" ] || continue
	cat "$report"
	status=1
done
grep 'Synthesis:' "$log" || status=1
[ "$status" -eq 0 ] || echo "unit tests: FAILED, all output in $log"
exit "$status"
