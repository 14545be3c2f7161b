#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# First program of a machine: loads what its disks need, mounts them, goes on in the root file system.
busybox=/bin/busybox

fail() {
	echo "init: $*" >/dev/console
	$busybox poweroff -f
}

$busybox mount -t proc none /proc
$busybox mount -t sysfs none /sys
$busybox mount -t devtmpfs none /dev 2>/dev/null
for module in /modules/*; do
	$busybox insmod "$module" || echo "init: $module: not loaded" >/dev/console
done
tries=0
until [ -b /dev/vda ] && [ -b /dev/vdb ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || fail "the disks do not appear"
	$busybox usleep 100000
done
$busybox mount -t ext4 -o ro /dev/vda /new || fail "the root file system cannot be mounted"
$busybox mount -t ext4 -o ro /dev/vdb /new/usr/lib/modules || fail "the modules cannot be mounted"
for each in proc sys dev; do
	$busybox mount -o move "/$each" "/new/$each" || fail "$each cannot be moved"
done
$busybox mount -t tmpfs none /new/run
$busybox cp /options.json /new/run/options.json
exec $busybox switch_root /new /bin/sh /xputrace/tests/vm/guest/start.sh </dev/console >/dev/console 2>&1
