/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789abcdef"
#define POD_DIGITS 32

/* Whether text, which may go on, begins with exactly this many digits. */
static bool has_digits(const char *text, size_t length, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (i >= length || !memchr(DIGITS, text[i], sizeof(DIGITS) - 1))
			return false;
	return length == count || !memchr(DIGITS, text[count], sizeof(DIGITS) - 1);
}

/* "8-4-4-4-12", with '_' in slices of systemd, as whose levels '-' would count; or 32 digits of a static pod. */
static bool parse_pod(char pod[POD_UID_LENGTH + 1], const char *text, size_t length)
{
	static const unsigned int parts[] = { 8, 4, 4, 4, 12 };
	size_t at = 0;

	if (has_digits(text, length, POD_DIGITS)) {
		memcpy(pod, text, POD_DIGITS);
		pod[POD_DIGITS] = '\0';
		return true;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (i && (at >= length || (text[at] != '-' && text[at] != '_')))
			return false;
		at += i > 0;
		if (!has_digits(text + at, length - at, parts[i]))
			return false;
		at += parts[i];
	}
	for (size_t i = 0; i < POD_UID_LENGTH; i++)
		pod[i] = text[i] == '_' ? '-' : text[i];
	pod[POD_UID_LENGTH] = '\0';
	return true;
}

/*
 * "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID.scope", "libpod-ID.scope", "ID"; of containerd without systemd also
 * "kubepods-...-podUID.slice:cri-containerd:ID". crio-conmon-ID and libpod-conmon-ID hold the monitor of a container.
 */
static bool parse_container(char container[CONTAINER_ID_DIGITS + 1], const char *name, size_t length)
{
	for (size_t at = 0; at + CONTAINER_ID_DIGITS <= length; at++) {
		const char *rest = name + at + CONTAINER_ID_DIGITS;
		size_t left = length - at - CONTAINER_ID_DIGITS;

		if (at && name[at - 1] != '-' && name[at - 1] != ':')
			continue;
		if (!has_digits(name + at, length - at, CONTAINER_ID_DIGITS) ||
		    (left && (left != strlen(".scope") || memcmp(rest, ".scope", left) != 0)) ||
		    (at >= 7 && !memcmp(name + at - 7, "conmon-", 7)))
			continue;
		memcpy(container, name + at, CONTAINER_ID_DIGITS);
		container[CONTAINER_ID_DIGITS] = '\0';
		return true;
	}
	return false;
}

/* "podUID", "kubepods-burstable-podUID.slice" */
static void parse_name(struct cgroup_ids *ids, const char *name, size_t length)
{
	for (size_t at = 0; at + 3 < length; at++)
		if (!memcmp(name + at, "pod", 3) && (!at || name[at - 1] == '-') &&
		    parse_pod(ids->pod, name + at + 3, length - at - 3))
			break;
	parse_container(ids->container, name, length);
}

static void parse_path(struct cgroup_ids *ids, const char *path, size_t length)
{
	for (size_t at = 0, size; at < length; at += size + 1) {
		const char *slash = memchr(path + at, '/', length - at);

		size = slash ? (size_t)(slash - path) - at : length - at;
		parse_name(ids, path + at, size);
	}
}

void cgroup_parse(struct cgroup_ids *ids, const char *text, size_t length)
{
	*ids = (struct cgroup_ids){ 0 };
	for (size_t at = 0, size; at < length; at += size + 1) {
		const char *end = memchr(text + at, '\n', length - at), *colon;
		struct cgroup_ids found = { 0 };

		size = end ? (size_t)(end - text) - at : length - at;
		colon = memchr(text + at, ':', size);
		colon = colon ? memchr(colon + 1, ':', size - (size_t)(colon + 1 - text - at)) : NULL;
		if (!colon)
			continue;
		parse_path(&found, colon + 1, size - (size_t)(colon + 1 - text - at));
		/* A controller that nobody has set up for the container says nothing. */
		if (!*ids->container)
			memcpy(ids->container, found.container, sizeof(ids->container));
		if (!*ids->pod)
			memcpy(ids->pod, found.pod, sizeof(ids->pod));
	}
}

void cgroup_read(struct cgroup_ids *ids, pid_t pid)
{
	char path[64], text[16384];
	FILE *file;

	*ids = (struct cgroup_ids){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	cgroup_parse(ids, text, fread(text, 1, sizeof(text), file));
	fclose(file);
}
