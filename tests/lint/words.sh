#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# words.sh [ROOT]: what must not stand in any file: marks of unfinished work, paths of one machine, hosts of package
# registries; and what must: the licence line. Prints FILE:LINE:TEXT of each, exit status 1 if there is one.
set -u

cd "${1:-$(dirname "$0")/../..}" || exit 2
status=0
list=$(mktemp)
trap 'rm -f "$list"' EXIT

# vmlinux.h is the kernel's text; this folder names what it looks for.
if ! git ls-files -z --cached --others --exclude-standard >"$list" 2>/dev/null; then
	find . -name .git -prune -o -path ./build -prune -o -type f -print0 | sed -z 's|^\./||' >"$list"
fi
sed -i -z -e '/^vmlinux\/.*\.h$/d' -e '/^tests\/lint\//d' "$list"
if [ ! -s "$list" ]; then
	echo "words: no files found" >&2
	exit 2
fi

# forbid WHAT PATTERN: files that are gone from the disk but not yet from the index are passed over.
forbid() {
	if xargs -0 grep -nIEs -e "$2" /dev/null <"$list"; then
		echo "words: the lines above have $1" >&2
		status=1
	fi
}

forbid "a mark of unfinished work" '\b(TODO|FIXME|XXX|HACK|WIP)\b'
forbid "a path of one machine" '(^|[^A-Za-z0-9_.$})/-])/(home|root|work|Users|build)/[A-Za-z0-9_.-]'
forbid "a host of a package registry" '(deb|security|ftp)\.debian\.org|registry\.[a-z0-9-]+\.[a-z]|npmjs\.(org|com)|artifactory|(^|[^a-z])pypi\.org|"resolved": *"'
forbid "a conflict mark" '^(<<<<<<<|>>>>>>>) '
forbid "blanks at a line's end" '[[:blank:]]+$'

while IFS= read -r file; do
	[ -f "$file" ] || continue
	case $file in
	*.c | *.h | *.py | *.sh | *.js | *.css | *.mjs | *.bash | *.fish | *.map | *.[13] | Makefile | .ci/run) ;;
	*) continue ;;
	esac
	if ! head -n 3 "$file" | grep -q 'SPDX-License-Identifier:'; then
		echo "$file:1: no licence line" >&2
		status=1
	fi
done <<EOF
$(tr '\0' '\n' <"$list")
EOF

[ "$status" -eq 0 ] && echo "words: $(tr -cd '\0' <"$list" | wc -c) files, nothing found"
exit "$status"
