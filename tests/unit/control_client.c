/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/control_support.h"

#include <fcntl.h>

#include "control/control.h"

/* A packet that a server sends in place of an answer, or what else it does. */
struct false_server {
	const char *answer; /* NULL: none */
	bool stays;	    /* the connection stays open until the client has gone */
	bool deaf;	    /* it reads nothing */
};

static void request_begin(struct text *request, const char *what, const char *text)
{
	control_begin_request(request, CONTROL_REQUEST_ID, what);
	json_add_text(request, "text", text);
}

static int call(struct place *place, const char *name, const char *text, __u64 timeout, cJSON **answer)
{
	struct text request = { 0 };
	int error;

	place->said[0] = '\0';
	request_begin(&request, name, text);
	error = control_call(place->path, &request, timeout, answer, &place->log);
	cr_assert_eq(!error, *answer != NULL);
	cr_assert_eq(!error, !place->said[0], "%s", place->said);
	text_free(&request);
	return error;
}

static void expect_failure(struct place *place, __u64 timeout, int error, const char *said)
{
	cJSON *answer;

	cr_assert_eq(call(place, "echo", "x", timeout, &answer), error, "%s", place->said);
	cr_assert(strstr(place->said, said), "%s", place->said);
}

static int false_listen(const struct place *place, int backlog)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char folder[96];
	struct sockaddr_un address;

	snprintf(folder, sizeof(folder), "%s/run", place->folder);
	mkdir(folder, 0755);
	unlink(place->path);
	address = address_of(place->path);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listener, backlog), 0);
	return listener;
}

static void false_serve(int listener, const struct false_server *server)
{
	int client = accept(listener, NULL, NULL);
	char bytes[4096];

	if (!server->deaf)
		(void)!recv(client, bytes, sizeof(bytes), 0);
	if (server->answer)
		(void)!send(client, server->answer, strlen(server->answer), MSG_NOSIGNAL);
	while (server->stays && !server->deaf && recv(client, bytes, sizeof(bytes), 0) > 0)
		;
	if (server->stays && server->deaf)
		pause();
}

static pid_t false_start(const struct place *place, const struct false_server *server)
{
	int listener = false_listen(place, 4);
	pid_t pid = fork();

	if (!pid) {
		false_serve(listener, server);
		_exit(0);
	}
	close(listener);
	return pid;
}

Test(control_client, answers_and_refusals)
{
	const char *reason = NULL;
	struct place place;
	cJSON *answer;
	pid_t pid;

	place_make(&place);
	pid = place_serve(&place);
	cr_assert_eq(call(&place, "echo", "a\n\xc3\xa9\xff", PATIENCE, &answer), 0);
	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(answer, "text")), "a\n\xc3\xa9\xef\xbf\xbd");
	cr_assert_eq(control_answer_error(answer, &reason), 0);
	cr_assert_null(reason);
	cJSON_Delete(answer);

	cr_assert_eq(call(&place, "nothing", NULL, PATIENCE, &answer), 0);
	cr_assert_eq(control_answer_error(answer, &reason), -EOPNOTSUPP);
	cr_assert_str_eq(reason, "nothing of that \"name\"");
	cr_assert_eq(control_answer_error(answer, NULL), -EOPNOTSUPP);
	cJSON_Delete(answer);

	cr_assert_eq(call(&place, "", NULL, ~0ull, &answer), 0, "a time without limit");
	cr_assert_eq(control_answer_error(answer, &reason), -EINVAL);
	cJSON_Delete(answer);
	child_kill(pid);
	place_remove(&place);
}

Test(control_client, requests_that_are_long)
{
	struct place place;
	cJSON *answer;
	char *text = calloc(1, CONTROL_PACKET_MAX);
	pid_t pid;

	place_make(&place);
	pid = place_serve(&place);
	memset(text, 'x', CONTROL_PACKET_MAX - 100);
	cr_assert_eq(call(&place, "echo", text, PATIENCE, &answer), 0);
	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(answer, "text")), text);
	cJSON_Delete(answer);
	memset(text, 'x', CONTROL_PACKET_MAX - 20);
	cr_assert_eq(call(&place, "echo", text, PATIENCE, &answer), -EMSGSIZE);
	cr_assert(strstr(place.said, "65536 bytes"), "%s", place.said);
	child_kill(pid);
	free(text);
	place_remove(&place);
}

Test(control_client, nobody_listens)
{
	struct text request = { 0 };
	char path[128];
	struct place place;
	pid_t pid;

	place_make(&place);
	expect_failure(&place, PATIENCE, -ENOENT, "no collector runs under this name; start one with");
	snprintf(path, sizeof(path), "%s/run", place.folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	expect_failure(&place, PATIENCE, -ENOENT, "no collector runs");
	unlink(path);
	pid = place_serve(&place);
	child_kill(pid);
	expect_failure(&place, PATIENCE, -ECONNREFUSED, "was killed; start it again");
	unlink(place.path);
	close(open(place.path, O_CREAT | O_WRONLY, 0600));
	expect_failure(&place, PATIENCE, -ECONNREFUSED, "nobody listens");
	place.path[0] = '\0';
	expect_failure(&place, PATIENCE, -EINVAL, "path");
	snprintf(path, sizeof(path), "%0120d", 0);
	request_begin(&request, "echo", "x");
	cr_assert_eq(control_call(path, &request, PATIENCE, &(cJSON *){ NULL }, &place.log), -ENAMETOOLONG);
	text_free(&request);
	place_remove(&place);
}

static void expect_false(struct place *place, const struct false_server *server, __u64 timeout, int error,
			 const char *said)
{
	pid_t pid = false_start(place, server);

	expect_failure(place, timeout, error, said);
	child_kill(pid);
}

Test(control_client, answers_that_are_none)
{
	static const struct {
		const char *answer, *said;
	} bad[] = {
		{ "\n", "JSON" },
		{ "hello", "JSON" },
		{ "[]", "JSON" },
		{ "{\"xputrace\":2,\"id\":1,\"ok\":true", "JSON" },
		{ "{\"xputrace\":2,\"id\":1,\"ok\":true,\"x\":\"\xff\"}", "JSON" },
		{ "{\"id\":1,\"ok\":true}", "another version" },
		{ "{\"xputrace\":1,\"id\":1,\"ok\":true}", "another version" },
		{ "{\"xputrace\":2,\"id\":2,\"ok\":true}", "another request" },
		{ "{\"xputrace\":2,\"ok\":true}", "another request" },
		{ "{\"xputrace\":2,\"id\":null,\"ok\":true}", "another request" },
		{ "{\"xputrace\":2,\"id\":2,\"ok\":false,\"error\":\"EIO\"}", "another request" },
		{ "{\"xputrace\":2,\"id\":1}", "neither" },
		{ "{\"xputrace\":2,\"id\":1,\"ok\":1}", "neither" },
		{ "{\"xputrace\":2,\"id\":1,\"ok\":false}", "neither" },
	};
	static char large[CONTROL_PACKET_MAX + 2];
	struct place place;

	place_make(&place);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_false(&place, &(const struct false_server){ bad[i].answer, true, false }, PATIENCE, -EPROTO,
			     bad[i].said);
	memset(large, ' ', sizeof(large) - 1);
	memcpy(large, DONE_ANSWER("1"), strlen(DONE_ANSWER("1")));
	expect_false(&place, &(const struct false_server){ large, true, false }, PATIENCE, -EPROTO,
		     "more than 65536 bytes");
	expect_false(&place, &(const struct false_server){ .answer = NULL }, PATIENCE, -ECONNRESET, "closed");
	expect_false(&place, &(const struct false_server){ .answer = "" }, PATIENCE, -ECONNRESET, "closed");
	/* It closes with the request unread. */
	expect_false(&place, &(const struct false_server){ .deaf = true }, PATIENCE, -ECONNRESET, "closed");
	place_remove(&place);
}

Test(control_client, a_good_answer_may_come_in_any_way)
{
	static const struct false_server good[] = {
		{ "{\"xputrace\":2,\"id\":1,\"ok\":true}", true, false },
		{ "{\"xputrace\":2,\"id\":1,\"ok\":true,\"later\":{}}\n", false, false },
		{ "{\"xputrace\":2,\"id\":1,\"ok\":true}", false, true }, /* the request is left unread */
	};
	struct place place;
	cJSON *answer;

	place_make(&place);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		pid_t pid = false_start(&place, &good[i]);

		cr_assert_eq(call(&place, "echo", "x", PATIENCE, &answer), 0, "%zu: %s", i, place.said);
		cr_assert_eq(control_answer_error(answer, NULL), 0);
		cJSON_Delete(answer);
		child_kill(pid);
	}
	place_remove(&place);
}

Test(control_client, errors_by_name)
{
	static const struct {
		const char *answer;
		int error;
		const char *reason;
	} reported[] = {
		{ "{\"xputrace\":2,\"id\":1,\"ok\":false,\"error\":\"ENOSPC\",\"reason\":\"full\"}", -ENOSPC, "full" },
		{ "{\"xputrace\":2,\"id\":null,\"ok\":false,\"error\":\"EACCES\",\"reason\":\"no\"}", -EACCES, "no" },
		{ "{\"xputrace\":2,\"id\":1,\"ok\":false,\"error\":\"ENEWER\"}", -EREMOTEIO, "" },
	};
	struct place place;
	const char *reason;
	cJSON *answer;

	place_make(&place);
	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
		pid_t pid = false_start(&place, &(const struct false_server){ reported[i].answer, true, false });

		cr_assert_eq(call(&place, "echo", "x", PATIENCE, &answer), 0, "%s", place.said);
		cr_assert_eq(control_answer_error(answer, &reason), reported[i].error);
		cr_assert_str_eq(reason, reported[i].reason);
		cJSON_Delete(answer);
		child_kill(pid);
	}
	place_remove(&place);
}

Test(control_client, an_older_version_listens)
{
	struct sockaddr_un address;
	struct place place;
	int listener;

	place_make(&place);
	close(false_listen(&place, 4));
	unlink(place.path);
	address = address_of(place.path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listener, 4), 0);
	expect_failure(&place, PATIENCE, -EPROTOTYPE, "an older xputrace listens there");
	close(listener);
	place_remove(&place);
}

static void expect_timeout(struct place *place, const char *said)
{
	__u64 begun = clock_monotonic(), took;

	expect_failure(place, 50 * MS, -ETIMEDOUT, said);
	took = clock_monotonic() - begun;
	cr_assert(took >= 50 * MS && took < 1000 * MS, "%g ms", (double)took / 1e6);
}

Test(control_client, time_is_bounded, .timeout = 20)
{
	static const struct false_server silent = { .stays = true };
	struct place place;
	int listener, waiting[2];
	char said[32];
	pid_t pid;

	place_make(&place);
	pid = false_start(&place, &silent);
	/* Who listens is who called listen(). */
	snprintf(said, sizeof(said), "process %d has not answered", getpid());
	expect_timeout(&place, said);
	child_kill(pid);
	listener = false_listen(&place, 0);
	waiting[0] = path_connect(place.path);
	waiting[1] = path_connect(place.path);
	cr_assert(waiting[0] >= 0 && waiting[1] < 0);
	expect_timeout(&place, "has accepted no connection in time");
	expect_failure(&place, 0, -ETIMEDOUT, "in time");
	close(listener);
	place_remove(&place);
}

/* It says why and closes as soon as somebody connects: now and then before the request has been sent. */
Test(control_client, refusals_that_come_before_the_request)
{
	static const char refusal[] = "{\"xputrace\":2,\"id\":null,\"ok\":false,\"error\":\"EBUSY\"}";
	struct place place;
	cJSON *answer;
	int listener;
	pid_t pid;

	place_make(&place);
	listener = false_listen(&place, 4);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	pid = fork();
	while (!pid) {
		int client = accept(listener, NULL, NULL);

		if (client >= 0) {
			(void)!send(client, refusal, sizeof(refusal) - 1, MSG_NOSIGNAL);
			close(client);
		}
	}
	for (int i = 0; i < 2000; i++) {
		cr_assert_eq(call(&place, "echo", "x", PATIENCE, &answer), 0, "%s", place.said);
		cr_assert_eq(control_answer_error(answer, NULL), -EBUSY);
		cJSON_Delete(answer);
	}
	child_kill(pid);
	close(listener);
	place_remove(&place);
}

static int as_other_user(int (*act)(struct place *place), struct place *place)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(setgid(OTHER_USER) || setuid(OTHER_USER) ? 100 : act(place));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "%x", (unsigned int)status);
	return WEXITSTATUS(status);
}

static int cannot_ask(struct place *place)
{
	struct text request = { 0 };
	cJSON *answer;

	request_begin(&request, "echo", "x");
	return control_call(place->path, &request, PATIENCE, &answer, &place->log) != -EACCES ||
	       !strstr(place->said, "belongs to another user: run this as that user or as root");
}

static int is_refused(struct place *place)
{
	struct text request = { 0 };
	const char *reason = "";
	cJSON *answer;

	request_begin(&request, "echo", "x");
	return control_call(place->path, &request, PATIENCE, &answer, &place->log) ||
	       control_answer_error(answer, &reason) != -EACCES || !strstr(reason, "only root and the user");
}

/* It says to root what it likes, but is not asked anything: whoever is root need not believe it. */
static int offers_service(struct place *place)
{
	int listener = false_listen(place, 4), client;
	char byte;

	chmod(place->path, 0666);
	client = accept(listener, NULL, NULL);
	(void)!send(client, "{\"xputrace\":2,\"id\":1,\"ok\":true}", 31, MSG_NOSIGNAL);
	return recv(client, &byte, 1, 0) > 0 ? 1 : 0;
}

Test(control_client, other_users)
{
	char path[128];
	struct place place;
	struct stat status;
	pid_t pid;
	int ended;

	if (geteuid())
		cr_skip_test("another user: root is wanted");
	place_make(&place);
	pid = place_serve(&place);
	cr_assert_eq(chmod(place.folder, 0777), 0);
	snprintf(path, sizeof(path), "%s/run", place.folder);
	cr_assert_eq(chmod(path, 0755), 0);
	cr_assert_eq(as_other_user(cannot_ask, &place), 0);
	cr_assert_eq(chmod(place.path, 0666), 0);
	cr_assert_eq(as_other_user(is_refused, &place), 0);
	child_kill(pid);

	cr_assert_eq(chmod(path, 0777), 0);
	cr_assert_eq(unlink(place.path), 0);
	pid = fork();
	if (!pid)
		_exit(setgid(OTHER_USER) || setuid(OTHER_USER) ? 100 : offers_service(&place));
	for (__u64 until = clock_monotonic() + PATIENCE;
	     stat(place.path, &status) || (status.st_mode & 0777) != 0666;) {
		cr_assert_lt(clock_monotonic(), until);
		usleep(1000);
	}
	expect_failure(&place, PATIENCE, -EACCES, "of user 65534 listens there");
	cr_assert_eq(waitpid(pid, &ended, 0), pid);
	cr_assert_eq(ended, 0, "it was asked: %x", (unsigned int)ended);
	place_remove(&place);
}
