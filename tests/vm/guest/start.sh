#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# First program in the root file system: makes a system of it, runs the tests or a shell, switches the machine off.
export PATH=/usr/bin:/usr/sbin HOME=/run TERM=linux LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1

mount -t tmpfs none /tmp
mount -t tmpfs none /var
mkdir -p /dev/pts /dev/shm
mount -t devpts none /dev/pts
mount -t tmpfs none /dev/shm
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
mount -t securityfs none /sys/kernel/security
mount -t bpf none /sys/fs/bpf
if busybox grep -q xputrace.cgroup=1 /proc/cmdline; then
	mount -t tmpfs none /sys/fs/cgroup
	for each in cpu cpuset memory pids devices freezer perf_event; do
		mkdir -p /sys/fs/cgroup/$each
		mount -t cgroup -o $each none /sys/fs/cgroup/$each || rmdir /sys/fs/cgroup/$each
	done
else
	mount -t cgroup2 none /sys/fs/cgroup
fi
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
busybox ip link set lo up
busybox hostname xputrace-vm

if busybox grep -q xputrace.shell /proc/cmdline; then
	cd /xputrace || exit 1
	busybox setsid busybox cttyhack bash
else
	python3 /xputrace/tests/vm/guest/tests.py
fi
busybox poweroff -f
