#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# embed.sh FILE... [--drivers FILE...]: writes to standard output the C source that holds the files of runtimes and of
# drivers, as user/describe/reader/collection.h declares.
set -eu

for file in "$@"; do
	if [ "$file" != --drivers ] && [ ! -f "$file" ]; then
		echo "embed.sh: $file: no such file" >&2
		exit 1
	fi
done

echo '/* SPDX-License-Identifier: BSD-2-Clause */'
echo '/* Made by user/describe/embed.sh. */'
echo '#include "describe/reader/collection.h"'
echo

number=0
for file in "$@"; do
	[ "$file" != --drivers ] || continue
	echo "static const unsigned char text_${number}[] = {"
	od -An -v -tx1 "$file" | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	# An array must not be empty; the length below leaves this byte out.
	echo '0 };'
	number=$((number + 1))
done

# close KIND COUNT: ends the array that is open.
close() {
	echo '	{ 0, 0, 0 },'
	echo '};'
	echo "const size_t builtin_$1_count = $2;"
}

echo
echo 'const struct builtin_file builtin_files[] = {'
number=0
first=0
kind='file'
for file in "$@"; do
	if [ "$file" = --drivers ]; then
		close file "$number"
		echo 'const struct builtin_file builtin_drivers[] = {'
		kind='driver'
		first=$number
		continue
	fi
	name=$(basename "$file" | sed 's/[\\"]/\\&/g')
	echo "	{ \"$name\", (const char *)text_$number, sizeof(text_$number) - 1 },"
	number=$((number + 1))
done
close "$kind" $((number - first))
if [ "$kind" = file ]; then
	echo 'const struct builtin_file builtin_drivers[] = {'
	close driver 0
fi
