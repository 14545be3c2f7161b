/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code_lives.h"

static size_t chain_of(pid_t tgid, __u64 handle)
{
	return ((handle ^ (__u64)tgid << 40) * 0x9e3779b97f4a7c15ull) >> 52;
}

void code_lives_add(struct code_lives *lives, struct code_load *load)
{
	struct code_load **chain = &lives->chain[chain_of(load->tgid, load->handle) % CODE_LIVES_CHAINS];

	load->live = *chain;
	*chain = load;
	lives->count++;
}

static struct code_load *take(struct code_lives *lives, struct code_load **place)
{
	struct code_load *load = *place;

	*place = load->live;
	load->live = NULL;
	lives->count--;
	return load;
}

struct code_load *code_lives_take(struct code_lives *lives, pid_t tgid, const struct description *runtime, __u64 handle,
				  __u64 by)
{
	struct code_load **place = &lives->chain[chain_of(tgid, handle) % CODE_LIVES_CHAINS], **best = NULL;

	for (; *place; place = &(*place)->live) {
		if ((*place)->handle == handle && (*place)->tgid == tgid && (*place)->runtime == runtime &&
		    (*place)->ended <= by && (!best || (*place)->ended > (*best)->ended))
			best = place;
	}
	return best ? take(lives, best) : NULL;
}

struct code_load *code_lives_take_any(struct code_lives *lives, pid_t tgid)
{
	for (size_t i = 0; i < CODE_LIVES_CHAINS && lives->count; i++) {
		struct code_load **place = &lives->chain[i];

		while (*place && tgid && (*place)->tgid != tgid)
			place = &(*place)->live;
		if (*place)
			return take(lives, place);
	}
	return NULL;
}
