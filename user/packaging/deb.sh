#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deb.sh VERSION ARCHIVE FOLDER: Debian packages of the source archive, into the folder. Environment: SOURCE_DATE_EPOCH.
set -eu

archive=$(realpath "$2")
mkdir -p "$3"
cd "$3"
rm -rf "xputrace-$1" ./*.deb ./*.changes ./*.buildinfo
rm -f "xputrace_$1.orig.tar.gz"
cp "$archive" "xputrace_$1.orig.tar.gz"
tar -xzf "$archive"
cd "xputrace-$1"
cp -r user/packaging/deb debian
cat >debian/changelog <<EOF
xputrace ($1-0upstream1) unstable; urgency=medium

  * See CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(LC_ALL=C date -u -R -d "@${SOURCE_DATE_EPOCH:-0}")
EOF
DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --unsigned-changes --unsigned-source --build=binary
