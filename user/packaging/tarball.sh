#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tarball.sh INSTALLED FILE NAME SECONDS: what `make install prefix=` has put into the folder INSTALLED, with copies of the libraries that the
# command needs, those of the C library excepted, as FILE with the folder NAME. It runs where the C library is not older than here, from
# any folder. Times are SECONDS since the epoch.
set -eu

command=$1/bin/xputrace
rm -rf "$1/include" "$1"/lib/libxputrace.* "$1/lib/pkgconfig" "$1/lib/systemd" "$1/share/man/man3"
strip "$command"
# DT_RPATH: unlike DT_RUNPATH it holds for what the libraries need as well.
patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$command"
mkdir -p "$1/lib" "$1/share/doc/xputrace/libraries"
ldd "$command" | sed -n 's/.*=> \(\/.*\) (0x.*/\1/p' | sort -u | while read -r library; do
	case ${library##*/} in
	libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.* | ld-linux*) continue ;;
	esac
	cp -L "$library" "$1/lib/"
	chmod 644 "$1/lib/${library##*/}"
	# Under which conditions it may be passed on.
	if package=$(dpkg-query --search "$(realpath "$library")" 2>/dev/null || dpkg-query --search "$library" 2>/dev/null); then
		package=${package%%:*}
		cp -L "/usr/share/doc/$package/copyright" "$1/share/doc/xputrace/libraries/$package"
	fi
done
cat >"$1/README" <<'EOF'
xputrace with the libraries that it needs beside the C library. bin/xputrace runs from where it lies:

    sudo bin/xputrace check
    sudo bin/xputrace record -p PID -d 10s -o trace.json

man -l share/man/man1/xputrace.1 shows the manual, share/doc/xputrace/docs/guide.md the guide, and share/doc/xputrace/libraries/
the licences of the libraries.
EOF
tar --create --file="$2.tar" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$4" \
	--transform="s,^\.,$3,S" --directory="$1" .
gzip --no-name <"$2.tar" >"$2"
rm "$2.tar"
