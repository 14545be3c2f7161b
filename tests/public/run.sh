#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh BUILD: installs into a temporary folder, builds the programs of this folder against what is installed there, as
# somebody else would, and runs them. One line a test; the closing line counts them. Environment: MAKE, CC, CXX.
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 2
root=$(cd "$here/../.." && pwd) || exit 2
build=$(cd "${1:?usage: run.sh BUILD}" && pwd) || exit 2
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
results=$scratch/results
: >"$results"

# A line of a test, to be seen and to be counted.
result() {
	printf '%s\n' "$*" | tee -a "$results"
}

# Stands in for the machine's, which is not to be touched.
mkdir "$scratch/sbin"
printf '#!/bin/sh\n: >"%s/ldconfig_ran"\n' "$scratch" >"$scratch/sbin/ldconfig"
chmod +x "$scratch/sbin/ldconfig"
export PATH="$scratch/sbin:$PATH"

if ! "${MAKE:-make}" --no-print-directory -C "$root" install prefix="$prefix" DESTDIR= >"$scratch/log" 2>&1; then
	cat "$scratch/log"
	result "failed install"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
fi
if [ "$(id -u)" -ne 0 ] || rm "$scratch/ldconfig_ran"; then
	result "passed install.ldconfig"
else
	result "failed install.ldconfig: it was not run"
fi
"${MAKE:-make}" --no-print-directory -C "$root" install prefix=/usr DESTDIR="$scratch/package" >"$scratch/log" 2>&1
if [ -x "$scratch/package/usr/bin/xputrace" ] && [ ! -e "$scratch/ldconfig_ran" ]; then
	result "passed install.package"
else
	result "failed install.package: $(tail -n 1 "$scratch/log")"
fi
# Every file that a document refers to is beside it.
missing=$(cd "$prefix/share/doc/xputrace" && grep -ro --include='*.md' ']([^):]*)' . | sed 's/:](/ /; s/[#)].*//' |
	while read -r document link; do
		[ -e "$(dirname "$document")/$link" ] || echo "$document: $link"
	done)
if [ -s "$prefix/share/doc/xputrace/README.md" ] && [ -z "$missing" ]; then
	result "passed install.documents"
else
	result "failed install.documents: $missing"
fi
# The file in the build folder has the temporary prefix now.
"${MAKE:-make}" --no-print-directory -C "$root" "${build#"$root"/}/xputrace.pc" >/dev/null 2>&1

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
export XPUTRACE_BUILD="$build" PUBLIC_WORKLOAD="$build/workload/workload" PUBLIC_RECORDINGS="$root/tests/e2e/kept"
mkdir "$scratch/work"
cd "$scratch/work" || exit 2

# What pkg-config says for the static library also names the shared one first: the archive is asked for by its name.
libraries() {
	case $1 in
	shared) echo "$(pkg-config --libs xputrace) -Wl,-rpath,$prefix/lib" ;;
	static) pkg-config --static --libs xputrace | sed 's/-lxputrace/-l:libxputrace.a/' ;;
	esac
}

# build SOURCE OUTPUT LINK: the strictest that a user may ask for.
build() {
	case $1 in
	*.c) compiler="${CC:-cc} -std=c99 -Wconversion" ;;
	*.cpp) compiler="${CXX:-c++} -std=c++11" ;;
	esac
	# shellcheck disable=SC2046,SC2086 # lists of flags
	$compiler -pedantic -Wall -Wextra -Werror -O1 -g $(pkg-config --cflags xputrace) -o "$2" "$1" $(libraries "$3") -lm
}

# Every header by itself, in both languages.
for header in "$prefix"/include/xputrace/*.h; do
	name=$(basename "$header" .h)
	echo "#include <xputrace/$name.h>" >alone.c
	cp alone.c alone.cpp
	# shellcheck disable=SC2046 # a list of flags
	if ${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror -Wconversion $(pkg-config --cflags xputrace) \
		-fsyntax-only alone.c &&
		${CXX:-c++} -std=c++11 -pedantic -Wall -Wextra -Werror $(pkg-config --cflags xputrace) \
			-fsyntax-only alone.cpp; then
		result "passed header.$name"
	else
		result "failed header.$name: it does not compile by itself"
	fi
done

for link in shared static; do
	for source in "$here"/*.c "$here"/*.cpp; do
		name=$(basename "${source%.*}")
		if ! build "$source" "./$name-$link" "$link"; then
			result "failed $link.$name: it does not build"
			continue
		fi
		timeout 300 "./$name-$link" >output
		status=$?
		sed "s/^\([a-z]*\) /\1 $link./" output | tee -a "$results"
		# The programs count their own failures; what ends them early has no line.
		if [ "$status" -ne 0 ] && ! grep -q '^failed ' output; then
			result "failed $link.$name: ended with status $status"
		fi
	done
done
case $(readelf -d values-static) in
*libxputrace*) result "failed static.linked: it needs the shared library" ;;
*) result "passed static.linked" ;;
esac

for script in exports abi command examples shared; do
	python3 -B "$here/$script.py" "$prefix" >output
	status=$?
	tee -a "$results" <output
	if [ "$status" -ne 0 ] && ! grep -q '^failed ' output; then
		result "failed $script: ended with status $status"
	fi
done

count() {
	grep -c "^$1 " "$results"
}

echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" -eq 0 ]
