/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/cgroup.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID "8c2b1ae0cf1f5b6b2d5c33f7a2e7c1de0b1a3d1d6a0a4f0e9b7c6d5e4f3a2b1c"
#define OTHER "1111111111111111111111111111111111111111111111111111111111111111"
#define POD "2d3a5f0e-7c41-4b8e-9a52-0f6f2c7b1e9d"
#define SLICE "2d3a5f0e_7c41_4b8e_9a52_0f6f2c7b1e9d"
#define STATIC "0f9e8d7c6b5a49382716051423324150"

/* Copies into memory of just that size, so that a sanitizer sees a read beyond the end. */
static struct cgroup_ids parse(const char *text, size_t length)
{
	char *copy = malloc(length ?: 1);
	struct cgroup_ids ids;

	memcpy(copy, text, length);
	cgroup_parse(&ids, copy, length);
	free(copy);
	return ids;
}

Test(base_core_cgroup, paths_of_each_kind)
{
	static const struct {
		const char *text, *container, *pod;
	} recorded[] = {
		/* Nothing but systemd: v2, hybrid, v1. */
		{ "0::/user.slice/user-1000.slice/session-3.scope\n", "", "" },
		{ "0::/system.slice/ollama.service\n", "", "" },
		{ "1:name=systemd:/init.scope\n0::/init.scope\n", "", "" },
		{ "4:memory:/\n3:cpu,cpuacct:/\n", "", "" },
		/* docker: v1 with cgroupfs, v2 with systemd, v2 with cgroupfs, rootless */
		{ "12:pids:/docker/" ID "\n11:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", ID, "" },
		{ "0::/system.slice/docker-" ID ".scope\n", ID, "" },
		{ "0::/docker/" ID "\n", ID, "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope\n", ID, "" },
		/* podman: root, rootless, with the container's own group below, cgroupfs, its monitor */
		{ "0::/machine.slice/libpod-" ID ".scope\n", ID, "" },
		{ "0::/machine.slice/libpod-" ID ".scope/container\n", ID, "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n", ID,
		  "" },
		{ "5:cpuset:/libpod_parent/libpod-" ID "\n", ID, "" },
		{ "0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "" },
		/* containerd in Kubernetes: systemd, cgroupfs, v1, guaranteed, a static pod; with the colons of CRI */
		{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" SLICE ".slice/cri-containerd-" ID
		  ".scope\n",
		  ID, POD },
		{ "0::/kubepods/besteffort/pod" POD "/" ID "\n", ID, POD },
		{ "11:memory:/kubepods/burstable/pod" POD "/" ID "\n0::/\n", ID, POD },
		{ "0::/kubepods.slice/kubepods-pod" SLICE ".slice/cri-containerd-" ID ".scope\n", ID, POD },
		{ "0::/kubepods/burstable/pod" STATIC "/" ID "\n", ID, STATIC },
		{ "0::/system.slice/containerd.service/kubepods-burstable-pod" SLICE ".slice:cri-containerd:" ID "\n",
		  ID, POD },
		/* kubelet in a container of its own (kind): the outer one is not it */
		{ "0::/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" SLICE
		  ".slice/cri-containerd-" ID ".scope\n",
		  ID, POD },
		/* CRI-O: systemd, with a group below, its monitor, v1 */
		{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" SLICE ".slice/crio-" ID
		  ".scope\n",
		  ID, POD },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" SLICE ".slice/crio-" ID
		  ".scope/container\n",
		  ID, POD },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" SLICE ".slice/crio-conmon-" ID
		  ".scope\n",
		  "", POD },
		{ "3:cpu,cpuacct:/kubepods/besteffort/pod" POD "/crio-" ID "\n", ID, POD },
		/* containerd alone: a namespace in the path */
		{ "0::/default/" ID "\n", ID, "" },
		/* Hybrid: the group of v2 is not the container's. */
		{ "1:name=systemd:/docker/" ID "\n0::/system.slice/containerd.service\n", ID, "" },
		/* Seen from another namespace. */
		{ "0::/../../kubepods-pod" SLICE ".slice/cri-containerd-" ID ".scope\n", ID, POD },
		/* Nearly: one digit less, one more, capitals, something behind */
		{ "0::/docker/8c2b1ae0cf1f5b6b2d5c33f7a2e7c1de0b1a3d1d6a0a4f0e9b7c6d5e4f3a2b1\n", "", "" },
		{ "0::/docker/" ID "0\n", "", "" },
		{ "0::/docker-" ID ".service\n", "", "" },
		{ "0::/kubepods-pod2d3a5f0e_7c41_4b8e_9a52_0f6f2c7b1e9.slice\n", "", "" },
		{ "0::/kubepods-podding.slice\n", "", "" },
		{ "", "", "" },
		{ "\n\n:\n::\n", "", "" },
		{ "0::/docker/" ID, ID, "" },
	};

	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
		struct cgroup_ids ids = parse(recorded[i].text, strlen(recorded[i].text));

		cr_expect_str_eq(ids.container, recorded[i].container, "%s: %s", recorded[i].text, ids.container);
		cr_expect_str_eq(ids.pod, recorded[i].pod, "%s: %s", recorded[i].text, ids.pod);
	}
}

Test(base_core_cgroup, any_cut_is_harmless)
{
	static const char text[] = "1:x:/kubepods/pod" POD "/crio-" ID ".scope\n0::/a\n";

	for (size_t i = 0; i <= strlen(text); i++)
		parse(text, i);
}

Test(base_core_cgroup, processes)
{
	struct cgroup_ids ids = { "x", "x" };

	cgroup_read(&ids, 0x7fffffff); /* beyond the highest that there can be */
	cr_assert_str_empty(ids.container);
	cr_assert_str_empty(ids.pod);
	cgroup_read(&ids, getpid());
}
