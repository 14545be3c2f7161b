/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet from the control socket: as a request, and as an answer that a client reads. */
#include <errno.h>
#include <string.h>

#include "base/core/json.h"
#include "control/control.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_reason(const char *reason)
{
	require(memchr(reason, 0, CONTROL_REASON_MAX) != NULL && *reason);
	for (; *reason; reason++)
		require((unsigned char)*reason >= ' ' && *reason != 0x7f);
}

/* A refusal, whatever its reason, is a packet that a client takes. */
static void check_refusal(const char *bytes, size_t length)
{
	char text[4 * CONTROL_REASON_MAX] = "", reason[CONTROL_REASON_MAX];
	struct text packet = { 0 };
	cJSON *answer;

	memcpy(text, bytes, length < sizeof(text) ? length : sizeof(text) - 1);
	control_write_refusal(&packet, CONTROL_ID_NONE, -ENOSPC, text);
	require(!packet.error && packet.length <= CONTROL_PACKET_MAX && json_is_object(packet.data, packet.length));
	require(!control_read_answer(packet.data, packet.length, 1, &answer, reason));
	require(control_answer_error(answer, NULL) == -ENOSPC);
	cJSON_Delete(answer);
	text_free(&packet);
}

/* What was asked for arrives again when it is sent on. */
static void check_save(const cJSON *body, __s64 id)
{
	struct xpt_save_options options, again;
	char reason[CONTROL_REASON_MAX];
	struct text packet = { 0 };
	const char *member;
	cJSON *object;
	__s64 id_again;

	if (control_read_save(body, &options, &member)) {
		require(member && *member);
		return;
	}
	control_begin_request(&packet, id, "save");
	control_add_save(&packet, &options);
	require(!control_end(&packet) && json_is_object(packet.data, packet.length));
	require(!control_read_request(packet.data, packet.length, &id_again, &object, reason) && id == id_again);
	require(!control_read_save(object, &again, &member));
	require(again.pid == options.pid && again.core == options.core && again.has_core == options.has_core);
	require(again.handle == options.handle && again.time == options.time);
	require(again.inferences == options.inferences && !again.program == !options.program);
	require(!again.program || !strcmp(again.program, options.program));
	cJSON_Delete(object);
	text_free(&packet);
}

static void check_request(const char *bytes, size_t length)
{
	char reason[CONTROL_REASON_MAX];
	cJSON *body;
	__s64 id;
	int error = control_read_request(bytes, length, &id, &body, reason);

	require(id >= CONTROL_ID_NONE && id <= 1ll << 53);
	if (error) {
		require(!body && (error == -EINVAL || error == -EPROTONOSUPPORT));
		check_reason(reason);
		return;
	}
	require(id != CONTROL_ID_NONE && json_is_object(bytes, length));
	require(*cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "do")));
	check_save(body, id);
	cJSON_Delete(body);
}

static void check_answer(const char *bytes, size_t length)
{
	struct xpt_continuous_status status = { .size = sizeof(status) };
	struct xpt_saved saved = { .size = sizeof(saved) };
	char reason[CONTROL_REASON_MAX];
	const char *given = "";
	cJSON *answer;
	int error = control_read_answer(bytes, length, 1, &answer, reason);

	require((error == 0 && answer) || (error == -EPROTO && !answer));
	if (error) {
		check_reason(reason);
		return;
	}
	require(control_answer_error(answer, &given) <= 0 && given);
	require(control_read_saved(answer, &saved) || memchr(saved.path, 0, sizeof(saved.path)));
	require(control_read_status(answer, &status) || status.pid >= 0);
	cJSON_Delete(answer);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	check_request((const char *)data, size);
	check_answer((const char *)data, size);
	check_refusal((const char *)data, size);
	return 0;
}
