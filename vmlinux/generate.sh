#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# generate.sh ARCH: makes vmlinux/ARCH/vmlinux.h from the BTF of Debian's kernel package, ARCH being x86 or arm64.
#
# The header is committed, so that a build never depends on the kernel of the machine it runs on; this script is only
# run to move to another kernel. It works for both architectures on either, as any user: apt gets lists and a cache of
# its own, so neither the machine's sources nor its foreign architectures are touched.
#
# Environment: SUITE   Debian suite to take the kernel from (bookworm-backports)
#              MIRROR  Debian mirror (the first Debian one of this machine's own sources)
#              KERNEL  version part of the package name, as in linux-image-KERNEL-arm64-unsigned (the newest)
set -eu

arch=${1:-}
case $arch in
x86) debian_arch=amd64 ;;
arm64) debian_arch=arm64 ;;
*)
	echo "usage: generate.sh x86|arm64" >&2
	exit 2
	;;
esac
suite=${SUITE:-bookworm-backports}
# shellcheck disable=SC2016 # apt's own fields
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' | grep -v security | head -n 1)}
if [ -z "$mirror" ]; then
	echo "generate.sh: this machine has no Debian source: give MIRROR=URL" >&2
	exit 1
fi
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/image"
: >"$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
cat >"$work/apt.conf" <<EOF
Dir::State "$work";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "$debian_arch";
APT::Architectures { "$debian_arch"; };
APT::Sandbox::User "";
EOF
APT_CONFIG=$work/apt.conf
export APT_CONFIG
apt-get -q update

if [ -n "${KERNEL:-}" ]; then
	package=linux-image-$KERNEL-$debian_arch-unsigned
else
	package=$(apt-cache search --names-only "^linux-image-[0-9][^-]*(-[0-9]+)?-$debian_arch-unsigned\$" |
		cut -d' ' -f1 | sort -V | tail -n 1)
fi
if [ -z "$package" ]; then
	echo "generate.sh: no kernel package for $debian_arch in $suite" >&2
	exit 1
fi
version=$(apt-cache show "$package" | sed -n 's/^Version: //p' | head -n 1)
(cd "$work" && apt-get -q download "$package")
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -C "$work/image" -x --wildcards './boot/vmlinuz-*'
python3 "$here/extract_btf.py" "$work"/image/boot/vmlinuz-* "$work/vmlinux.btf"

mkdir -p "$here/$arch"
{
	echo "/* Debian $package $version: vmlinux/generate.sh $arch, bpftool btf dump file vmlinux.btf format c */"
	bpftool btf dump file "$work/vmlinux.btf" format c
} >"$work/vmlinux.h"
mv "$work/vmlinux.h" "$here/$arch/vmlinux.h"
echo "generate.sh: $arch/vmlinux.h from $package $version"
