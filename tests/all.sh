#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# all.sh: builds, then runs every kind of test, whatever fails before; the totals come last. While the end-to-end tests wait
# for the programs that they trace, the other kinds are built and run; those that measure something come when nothing else runs.
# Exit status: 0 when nothing failed. Environment: MAKE.
set -u

cd "$(dirname "$0")/.." || exit 1
export MAKE="${MAKE:-make}"
logs=build/logs
kinds="build unit sanitize fuzz lint symbols public e2e"

# Builds one target with its output shown and kept; its status is that of the command, not of tee.
step() {
	name=$1
	shift
	start=$(date +%s)
	printf '\n== %s\n' "$name"
	{
		"$@" 2>&1
		echo $? >"$logs/$name.status"
	} | tee "$logs/$name.log"
	status=$(cat "$logs/$name.status")
	seconds=$(($(date +%s) - start))
}

# Without a row a step has failed.
row() {
	result=ok
	[ "$status" -eq 0 ] || result=FAILED
	printf '%-10s %8s %8s %8s %7ss  %s\n' "$name" "$@" "$seconds" "$result" >"$logs/$name.row"
}

# Criterion's closing line: "[====] Synthesis: Tested: 12 | Passing: 11 | Failing: 1 | Crashing: 0".
unit_count() {
	sed -n "s/.*Synthesis:.*$1: *\([0-9][0-9]*\).*/\1/p" "$logs/$name.log" | tail -n 1
}

unit_row() {
	tested=$(unit_count Tested)
	passing=$(unit_count Passing)
	# A run that has not come to its closing line, or found no tests, proves nothing.
	[ "${tested:-0}" -gt 0 ] || status=1
	row "${passing:--}" "$((${tested:-0} - ${passing:-0}))" "$(grep -c '^\[SKIP\]' "$logs/$name.log")"
}

# Closing line of the Python runners: "12 passed, 0 failed, 1 skipped".
count_row() {
	totals=$(sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed, \([0-9][0-9]*\) skipped$/\1 \2 \3/p' \
		"$logs/$name.log" | tail -n 1)
	[ -n "$totals" ] || status=1
	# shellcheck disable=SC2086 # three columns
	row ${totals:-- - -}
}

# All but the end-to-end tests. What both need is built before: two makes at once never build the same file. What traces comes
# first, beside end-to-end tests that run side by side anyway; what only computes leaves the processors to those that run alone.
others() {
	step symbols "$MAKE" --no-print-directory test-symbols
	count_row
	step public "$MAKE" --no-print-directory test-public
	count_row
	step fuzz nice -n 19 "$MAKE" --no-print-directory -j"$(nproc)" -Otarget test-fuzz test-bench
	row - - -
	step sanitizers nice -n 19 "$MAKE" --no-print-directory -j"$(nproc)" -Otarget build/test-sanitize
	step lint nice -n 19 "$MAKE" --no-print-directory test-lint
	row - - -
	step unit nice -n 10 "$MAKE" --no-print-directory test-unit
	unit_row
	step sanitize nice -n 10 "$MAKE" --no-print-directory test-sanitize
	unit_row
}

# In a process group of its own, to be ended with this script.
if [ "${1:-}" = others ]; then
	others
	exit
fi
rm -rf "$logs"
mkdir -p "$logs"
step build "$MAKE" --no-print-directory -j"$(nproc)" -Otarget all workload build/test-code-read build/bench/loop build/test-unit
row - - -
setsid tests/all.sh others >"$logs/others" 2>&1 </dev/null &
others=$!
trap 'kill -- -$others 2>/dev/null; exit 1' HUP INT TERM
if [ "$(id -u)" -eq 0 ]; then
	step e2e "$MAKE" --no-print-directory test-e2e E2E_OPTIONS="--cases 3 ${E2E_OPTIONS:-} --alone-after $others"
	wait "$others"
	count_row
else
	wait "$others"
	echo "e2e        -        -      all       0s  SKIPPED: needs root" >"$logs/e2e.row"
fi
cat "$logs/others"

failed=
printf '\n== Totals\n%-10s %8s %8s %8s %8s\n' kind passed failed skipped time
for name in $kinds; do
	grep -hs . "$logs/$name.row" || echo "$name: has not come to its end"
	grep -Eqs '(ok|SKIPPED: needs root)$' "$logs/$name.row" || failed="$failed $name"
done
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
