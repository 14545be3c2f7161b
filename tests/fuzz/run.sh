#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh SECONDS FOLDER TARGET...: runs FOLDER/TARGET so long, or with 0 seconds over its corpus only. All targets run,
# whatever fails before; inputs that fail are kept in FOLDER/TARGET.failures/.
set -u

seconds=$1
folder=$2
shift 2
if [ $# -eq 0 ]; then
	echo "fuzz: no targets" >&2
	exit 1
fi
here=$(cd "$(dirname "$0")" && pwd)
failed=

for target in "$@"; do
	found=$folder/$target.corpus
	failures=$folder/$target.failures
	mkdir -p "$found" "$failures"
	if [ "$seconds" -eq 0 ]; then
		set -- -runs=0
	else
		set -- "-max_total_time=$seconds"
	fi
	set -- "$@" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 "-artifact_prefix=$failures/" "$found"
	# Seeds come second: what is found is written to the first folder, never to the source tree.
	[ -d "$here/corpus/$target" ] && set -- "$@" "$here/corpus/$target"
	if "$folder/$target" "$@" >"$folder/$target.log" 2>&1; then
		echo "fuzz $target: ok, $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$target.log") inputs"
	else
		echo "fuzz $target: FAILED, log in $folder/$target.log"
		tail -n 30 "$folder/$target.log"
		failed="$failed $target"
	fi
done
[ -z "$failed" ]
