#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dist.sh VERSION COMMIT SECONDS FILE: the source, as it lies here, as FILE.tar.gz with the folder xputrace-VERSION. What it is
# made of is noted in user/packaging/commit; SECONDS since the epoch is the time of all files. The same source makes the same bytes, and leaves a FILE of
# them as it is.
set -eu

cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -e .git ]; then
	git ls-files -z --cached --others --exclude-standard
else
	find . -path ./build -prune -o \( -type f -o -type l \) -printf '%P\0'
fi >"$scratch/all"
# Without what is gone from the disk, but not yet from the index.
# shellcheck disable=SC2016 # of the inner shell
xargs -0 sh -c 'for each; do if [ -e "$each" ]; then printf "%s\0" "$each"; fi; done' sh <"$scratch/all" |
	sort -z -u | grep -zvx user/packaging/commit >"$scratch/files"
mkdir -p "$scratch/user/packaging"
[ -z "$2" ] || printf '%s %s\n' "$2" "$3" >"$scratch/user/packaging/commit"
touch "$scratch/user/packaging/commit"
tar --create --file="$scratch/tar" --format=gnu --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$3" \
	--transform="s,^,xputrace-$1/,S" --null --no-recursion --files-from="$scratch/files" \
	--directory="$scratch" user/packaging/commit
mkdir -p "$(dirname "$4")"
gzip --no-name <"$scratch/tar" >"$scratch/gz"
cmp -s "$scratch/gz" "$4" || cp "$scratch/gz" "$4"
