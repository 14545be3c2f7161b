#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# all.sh: builds, then runs every kind of test, whatever fails before; the totals come last.
# Exit status: 0 when nothing failed. Environment: MAKE.
set -u

cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
logs=build/logs
rm -rf "$logs"
mkdir -p "$logs"
failed=
rows=

# Runs one target with its output shown and kept; its status is that of make, not of tee.
step() {
	name=$1
	shift
	printf '\n== %s\n' "$name"
	start=$(date +%s)
	{
		"$make" --no-print-directory "$@" 2>&1
		echo $? >"$logs/$name.status"
	} | tee "$logs/$name.log"
	status=$(cat "$logs/$name.status")
	seconds=$(($(date +%s) - start))
	[ "$status" -eq 0 ] || failed="$failed $name"
}

row() {
	rows="$rows$(printf '%-10s %8s %8s %8s %7ss  %s' "$@")
"
}

verdict() {
	[ "$status" -eq 0 ] && echo ok || echo FAILED
}

# Criterion's closing line: "[====] Synthesis: Tested: 12 | Passing: 11 | Failing: 1 | Crashing: 0".
unit_count() {
	sed -n "s/.*Synthesis:.*$1: *\([0-9][0-9]*\).*/\1/p" "$logs/$name.log" | tail -n 1
}

unit_row() {
	tested=$(unit_count Tested)
	passing=$(unit_count Passing)
	if [ -z "$tested" ] || [ "$tested" -eq 0 ]; then
		# A run that has not come to its closing line, or found no tests, proves nothing.
		failed="$failed $name"
		status=1
	fi
	row "$name" "${passing:--}" "$((${tested:-0} - ${passing:-0}))" "$(grep -c '^\[SKIP\]' "$logs/$name.log")" \
		"$seconds" "$(verdict)"
}

step build -j"$(nproc)" -Otarget all build/test-unit build/test-sanitize test-bench
row build - - - "$seconds" "$(verdict)"
step unit test-unit
unit_row
step sanitize test-sanitize
unit_row
step fuzz -j"$(nproc)" -Otarget test-fuzz
row fuzz - - - "$seconds" "$(verdict)"
step lint test-lint
row lint - - - "$seconds" "$(verdict)"

# Closing line of the Python runners: "12 passed, 0 failed, 1 skipped".
count_row() {
	totals=$(sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed, \([0-9][0-9]*\) skipped$/\1 \2 \3/p' \
		"$logs/$name.log" | tail -n 1)
	if [ -z "$totals" ]; then
		[ "$status" -eq 0 ] && failed="$failed $name"
		status=1
		totals="- - -"
	fi
	# shellcheck disable=SC2086 # three columns
	row "$name" $totals "$seconds" "$(verdict)"
}

step symbols test-symbols
count_row
step public test-public
count_row
if [ "$(id -u)" -eq 0 ]; then
	step e2e test-e2e
	count_row
else
	row e2e - - all 0 "SKIPPED: needs root"
fi

printf '\n== Totals\n%-10s %8s %8s %8s %8s\n%s' kind passed failed skipped time "$rows"
# Skipped tests by name: Criterion's "[SKIP] suite::test: reason", and "skipped name (time): reason".
for name in unit sanitize symbols public e2e; do
	grep -E '^(\[SKIP\]|skipped) ' "$logs/$name.log" 2>/dev/null | sed "s/^/  $name: /"
done >"$logs/skipped"
if [ -s "$logs/skipped" ]; then
	printf '\nSkipped:\n'
	cat "$logs/skipped"
fi
# Failed tests by name, with what is said of them; and those that were made again.
for name in symbols public e2e; do
	sed -n "/^failed /,/^[^ ]/{/^failed /p;/^ /p;};/^again /p" "$logs/$name.log" 2>/dev/null | sed "s/^/  $name: /"
done >"$logs/failed"
for name in $failed; do
	grep -E '^\[(FAIL|----|CRASH)' "$logs/$name.log" 2>/dev/null | head -n 40 | sed "s/^/  $name: /"
done >>"$logs/failed"
if [ -s "$logs/failed" ]; then
	printf '\nFailed, or made again:\n'
	cat "$logs/failed"
fi
if [ -n "$failed" ]; then
	printf '\nFAILED:%s (logs in %s/)\n' "$failed" "$logs"
	exit 1
fi
printf '\nAll passed.\n'
