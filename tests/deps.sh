#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh build|workload|demo|test|torch|vm|deb|rpm|tarball|packages|bench|lint|arm64: installs what a purpose needs, when something is missing.
#
# Only Debian and Ubuntu packages are installed; elsewhere the packages are named and the exit status is 1. Nothing is
# asked and, when nothing is missing, nothing is done and neither root nor a network is needed.
set -eu

purpose=${1:-test}

have() {
	command -v "$1" >/dev/null 2>&1
}

build="gcc libc6-dev make clang bpftool pkg-config libbpf-dev libdw-dev libelf-dev libcjson-dev libzydis-dev libiberty-dev libpcre2-dev
	libtraceevent-dev libncurses-dev libmicrohttpd-dev libcurl4-openssl-dev libssl-dev zlib1g-dev libsqlite3-dev doxygen"
workload="$build python3 g++ ocl-icd-opencl-dev pocl-opencl-icd procps util-linux"
demo="$workload nodejs npm"
test="$demo libcriterion-dev libclang-rt-dev perf bpftrace clang-tools lld llvm spirv-tools python3-pandas python3-yaml openssl socat tmux chromium prometheus"
deb="python3 debhelper dh-python dpkg-dev"
case $purpose in
build) packages=$build ;;
workload) packages=$workload ;;
demo) packages=$demo ;;
test) packages=$test ;;
torch) packages="$test python3-torch" ;; # 150 MB: for tests that are left out without it
vm) packages="$workload apparmor qemu-system-x86 qemu-system-arm g++-aarch64-linux-gnu busybox-static kmod e2fsprogs xz-utils zstd" ;;
deb) packages="$build $deb" ;;
rpm) packages="$build python3 rpm" ;;
tarball) packages="$build patchelf" ;;
packages) packages="$workload $deb lintian rpm mmdebstrap patchelf podman buildah runc" ;;
bench) packages=$test ;;
lint) packages="$build python3 clang-format-14 clang-tidy-14 shellcheck mandoc" ;;
arm64) packages="$build gcc-aarch64-linux-gnu libc6-dev-arm64-cross libbpf-dev:arm64 libdw-dev:arm64 libelf-dev:arm64 libcjson-dev:arm64
	libzydis-dev:arm64 libiberty-dev:arm64 libpcre2-dev:arm64 libtraceevent-dev:arm64 libncurses-dev:arm64 libmicrohttpd-dev:arm64 libcurl4-openssl-dev:arm64 libssl-dev:arm64 zlib1g-dev:arm64 libsqlite3-dev:arm64" ;;
*)
	echo "usage: deps.sh build|workload|demo|test|torch|vm|deb|rpm|tarball|packages|bench|lint|arm64" >&2
	exit 2
	;;
esac
if [ "$purpose" = arm64 ] && [ "$(uname -m)" = aarch64 ]; then
	packages=$build
fi

if ! have apt-get; then
	# There is no way to ask an unknown system by package: ask for what the packages are for.
	case $purpose in
	build) tools='' libraries='' ;;
	deb) tools="python3 dpkg-buildpackage dh" libraries='' ;;
	rpm) tools="python3 rpmbuild" libraries='' ;;
	tarball) tools=patchelf libraries='' ;;
	demo) tools="python3 node npm" libraries='' ;;
	vm) tools="python3 qemu-system-x86_64 qemu-system-aarch64 aarch64-linux-gnu-g++ busybox depmod mke2fs xz zstd" libraries='' ;;
	packages) tools="python3 dpkg-buildpackage dh lintian rpmbuild mmdebstrap patchelf" libraries='' ;;
	test | bench) tools="python3 node npm g++" libraries=criterion ;;
	lint) tools="python3 clang-format-14 clang-tidy-14 shellcheck mandoc" libraries='' ;;
	arm64) tools=aarch64-linux-gnu-gcc libraries='' ;;
	*) tools=python3 libraries='' ;;
	esac
	missing=
	for tool in gcc make clang bpftool pkg-config $tools; do
		have "$tool" || missing="$missing $tool"
	done
	for library in libbpf libdw libelf libcjson libpcre2-8 libtraceevent ncursesw libmicrohttpd libcurl libcrypto zlib sqlite3 $libraries; do
		pkg-config --exists "$library" 2>/dev/null || missing="$missing $library"
	done
	# Older versions of it come without a description for pkg-config.
	echo '#include <Zydis/Zydis.h>' | cc -E - >/dev/null 2>&1 || missing="$missing zydis"
	echo '#include <libiberty/demangle.h>' | cc -E - >/dev/null 2>&1 || missing="$missing libiberty"
	[ -z "$missing" ] && exit 0
	cat >&2 <<EOF
Missing:$missing
Install these, then run the same command again:
  Fedora: dnf install gcc gcc-c++ make clang compiler-rt bpftool pkgconf libbpf-devel elfutils-devel elfutils-libelf-devel \\
          cjson-devel zydis-devel binutils-devel pcre2-devel libtraceevent-devel ncurses-devel libmicrohttpd-devel libcurl-devel openssl-devel zlib-devel sqlite-devel python3 criterion-devel ocl-icd-devel pocl nodejs npm
  Arch:   pacman -S gcc make clang compiler-rt bpf pkgconf libbpf libelf cjson zydis pcre2 libtraceevent ncurses libmicrohttpd curl openssl zlib sqlite python \\
          ocl-icd opencl-headers pocl nodejs npm, and criterion from the AUR
EOF
	exit 1
fi

# Of a package that dpkg only knows by name the status is "not-installed".
installed() {
	dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

# What some distribution calls otherwise, or ships in a package of another name, is asked for by its command.
present() {
	case $1 in
	gcc | g++ | make | clang | python3 | shellcheck | mandoc | bpftrace | perf | npm) have "$1" ;;
	nodejs) have node ;;
	# Where it is no package of its own, tests in a browser are left out.
	chromium) have chromium || { apt-cache show make && ! apt-cache show chromium; } >/dev/null 2>&1 ;;
	pkg-config) have pkg-config ;;
	bpftool)
		for tool in bpftool /usr/sbin/bpftool /usr/lib/linux-tools/*/bpftool /usr/lib/linux-tools-*/bpftool; do
			"$tool" version >/dev/null 2>&1 && return 0
		done
		return 1
		;;
	*) installed "$1" ;;
	esac
}

# The name under which this distribution installs it.
package_name() {
	case $1 in
	bpftool) apt-cache show bpftool >/dev/null 2>&1 && echo bpftool || echo "linux-tools-common linux-tools-generic" ;;
	chromium) apt-cache show chromium >/dev/null 2>&1 && echo chromium || echo ;;
	perf) apt-cache show linux-perf >/dev/null 2>&1 && echo linux-perf || echo "linux-tools-common linux-tools-generic" ;;
	*) echo "$1" ;;
	esac
}

missing=
for package in $packages; do
	present "$package" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! have sudo; then
		echo "Missing:$missing: run this again as root to install them." >&2
		exit 1
	fi
	as_root=sudo
fi
apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

echo "Installing:$missing"
if [ "$purpose" = arm64 ] && ! dpkg --print-foreign-architectures | grep -qx arm64; then
	$as_root dpkg --add-architecture arm64
fi
apt update || echo "apt-get update has failed: trying with the lists that are there" >&2
names=
for package in $missing; do
	names="$names $(package_name "$package")"
done
# shellcheck disable=SC2086 # a list of names
apt install --no-install-recommends $names
