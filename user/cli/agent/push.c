/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends metrics by OTLP/HTTP: a bounded queue of requests, and a thread without capabilities that sends one after the other. What a server
 * cannot take now is sent again; what it never gets is counted.
 */
#include "cli/agent/otlp.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/core/process.h"
#include "base/file/gzip.h"
#include "base/format/otlp.h"
#include "cli/commands.h"

#define MS 1000000ull
#define BACKOFF_FIRST_MS 500u
#define BACKOFF_LAST_MS 30000u
#define RETRY_AFTER_LAST_MS 3600000u
#define FLUSH_MS 5000u	    /* from the end of the command until nothing is sent any more */
#define ANSWER_BYTES 65536u /* that are read of an answer */

enum cause { QUEUE_FULL, REFUSED, REJECTED, ENDED, CAUSES };

static const char *const cause_names[CAUSES] = { "queue_full", "refused", "rejected", "ended" };

struct item {
	struct item *next;
	struct text body; /* packed, if it is to be */
	size_t points;
};

struct agent_push {
	struct agent_metrics *metrics;
	struct otlp_settings settings;
	uint64_t queue_bytes;
	double started; /* s since 1970 */

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct item *first, **last;
	uint64_t bytes; /* of items, with that which is being sent */
	bool ending;
	uint64_t deadline; /* ns, CLOCK_MONOTONIC; when ending */
	uint64_t sent, retries, dropped[CAUSES];
	bool dropped_reported[CAUSES];

	/* Of the thread. */
	CURL *curl;
	struct text answer;
	bool answer_cut, failing, advised;
	char fault[CURL_ERROR_SIZE];
};

static void say(enum xpt_log_level level, const char *what, const char *url, const char *reason, const char *end)
{
	struct text line = {};
	char text[1024];

	text_string(&line, what);
	text_terminal(&line, url, strlen(url), 0);
	text_literal(&line, ": ");
	text_terminal(&line, reason, strlen(reason), 0);
	text_string(&line, end);
	snprintf(text, sizeof(text), "%.*s", (int)line.length, line.data ?: "");
	text_free(&line);
	print_message(NULL, level, text);
}

/* ---- the queue ---- */

static void free_item(struct item *item)
{
	if (item)
		text_free(&item->body);
	free(item);
}

static void report_dropped(struct agent_push *push, enum cause cause, const char *reason)
{
	bool before;

	pthread_mutex_lock(&push->lock);
	before = push->dropped_reported[cause];
	push->dropped_reported[cause] = true;
	pthread_mutex_unlock(&push->lock);
	if (!before)
		say(XPT_LOG_WARN, "metrics for ", push->settings.shown, reason,
		    "; they are dropped, and counted in xputrace_agent_otlp_dropped_points");
}

static int append(void *context, const void *bytes, size_t length)
{
	struct text *text = context;

	text_bytes(text, bytes, length);
	return text->error;
}

/* In place. 0 or -ENOMEM. */
static int pack(struct text *body)
{
	struct gzip *gzip = gzip_create();
	unsigned char end[GZIP_END];
	struct text packed = {};
	int error = gzip ? gzip_add(gzip, body->data, body->length, true, append, &packed) : -ENOMEM;

	if (!error)
		text_bytes(&packed, end, gzip_end(gzip, NULL, 0, end));
	gzip_free(gzip);
	if (error || packed.error) {
		text_free(&packed);
		return error ?: packed.error;
	}
	text_free(body);
	*body = packed;
	return 0;
}

/* Behind all others; where there is no room, the oldest are dropped, but none of these. */
static void enqueue(struct agent_push *push, struct item *items)
{
	uint64_t added = 0;
	bool dropped = false;

	for (const struct item *item = items; item; item = item->next)
		added += item->body.length;
	pthread_mutex_lock(&push->lock);
	while (push->first && push->bytes + added > push->queue_bytes) {
		struct item *oldest = push->first;

		push->first = oldest->next;
		if (!push->first)
			push->last = &push->first;
		push->bytes -= oldest->body.length;
		push->dropped[QUEUE_FULL] += oldest->points;
		dropped = true;
		free_item(oldest);
	}
	*push->last = items;
	while (*push->last)
		push->last = &(*push->last)->next;
	push->bytes += added;
	pthread_cond_broadcast(&push->changed);
	pthread_mutex_unlock(&push->lock);
	if (dropped)
		report_dropped(push, QUEUE_FULL, "the queue (--otlp-queue) is full");
}

void agent_push_add(struct agent_push *push, uint64_t time)
{
	struct otlp_encoder encoder = { .json = push->settings.json,
					.exponential = push->settings.exponential,
					.resource = &push->settings.resource,
					.scope_name = "xputrace",
					.scope_version = XPT_VERSION,
					.time = time };
	struct exposition to = { .sink = &encoder.sink };
	struct item *items = NULL, **last = &items;

	otlp_begin(&encoder);
	agent_metrics_expose(push->metrics, &to);
	if (otlp_end(&encoder)) {
		print_message(NULL, XPT_LOG_WARN, "no memory for metrics to be sent");
		return;
	}
	for (size_t i = 0; i < encoder.count; i++) {
		struct otlp_request *request = &encoder.requests[i];
		struct item *item = calloc(1, sizeof(*item));
		char *fitting;

		if (!item || (push->settings.packed && pack(&request->body))) {
			print_message(NULL, XPT_LOG_WARN, "no memory for metrics to be sent");
			text_free(&request->body);
			free(item);
			continue;
		}
		fitting = realloc(request->body.data, request->body.length); /* it may wait for long */
		if (fitting) {
			request->body.data = fitting;
			request->body.capacity = request->body.length;
		}
		*item = (struct item){ .body = request->body, .points = request->points };
		*last = item;
		last = &item->next;
	}
	free(encoder.requests);
	if (items)
		enqueue(push, items);
}

/* The oldest, which is the caller's. NULL: the end, and nothing is left, or no time. */
static struct item *take_oldest(struct agent_push *push)
{
	struct item *item;

	pthread_mutex_lock(&push->lock);
	while (!push->first && !push->ending)
		pthread_cond_wait(&push->changed, &push->lock);
	item = push->ending && clock_monotonic() >= push->deadline ? NULL : push->first;
	if (item) {
		push->first = item->next;
		if (!push->first)
			push->last = &push->first;
		item->next = NULL;
	}
	pthread_mutex_unlock(&push->lock);
	return item;
}

/* ---- sending ---- */

static size_t on_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct agent_push *push = context;
	size_t room = ANSWER_BYTES - push->answer.length, length = size * count;

	text_bytes(&push->answer, bytes, length < room ? length : room);
	push->answer_cut = length > room;
	return push->answer_cut || push->answer.error ? 0 : length;
}

/* Ends a transfer when it is too late for it. curl calls it at least once a second. */
static int on_progress(void *context, curl_off_t down, curl_off_t downloaded, curl_off_t up, curl_off_t uploaded)
{
	struct agent_push *push = context;
	bool late;

	(void)down;
	(void)downloaded;
	(void)up;
	(void)uploaded;
	pthread_mutex_lock(&push->lock);
	late = push->ending && clock_monotonic() >= push->deadline;
	pthread_mutex_unlock(&push->lock);
	return late;
}

static CURL *create_handle(struct agent_push *push)
{
	CURL *curl = curl_easy_init();

	if (!curl)
		return NULL;
	curl_easy_setopt(curl, CURLOPT_URL, push->settings.url);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L); /* a name that nobody resolves does not hold up the end */
#endif
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "xputrace/" XPT_VERSION);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, push->settings.headers);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, push->fault);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, push);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, push);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	if (push->settings.certificate)
		curl_easy_setopt(curl, CURLOPT_CAINFO, push->settings.certificate);
	if (push->settings.client_certificate)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, push->settings.client_certificate);
	if (push->settings.client_key)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, push->settings.client_key);
	return curl;
}

enum outcome { SENT, AGAIN, NEVER };

/* Sends it once. *wait_ms: what the server wants, 0: nothing. reason: why not, and of SENT: what was rejected; "": nothing. */
static enum outcome attempt(struct agent_push *push, const struct item *item, unsigned int timeout_ms,
			    uint64_t *wait_ms, uint64_t *rejected, char *reason, size_t size)
{
	struct otlp_answer answer;
	curl_off_t after = 0;
	const char *type = NULL;
	long status = 0;
	CURLcode code;
	bool success;

	text_clear(&push->answer, ANSWER_BYTES);
	push->answer_cut = false;
	*push->fault = '\0';
	curl_easy_setopt(push->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(push->curl, CURLOPT_POSTFIELDS, item->body.data);
	curl_easy_setopt(push->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)item->body.length);
	code = curl_easy_perform(push->curl);
	*wait_ms = *rejected = 0;
	if (code && !push->answer_cut) {
		snprintf(reason, size, "%s", *push->fault ? push->fault : curl_easy_strerror(code));
		return AGAIN;
	}
	curl_easy_getinfo(push->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(push->curl, CURLINFO_RETRY_AFTER, &after);
	curl_easy_getinfo(push->curl, CURLINFO_CONTENT_TYPE, &type);
	success = status >= 200 && status < 300;
	otlp_answer_parse(&answer, type && !strncmp(type, OTLP_TYPE_JSON, strlen(OTLP_TYPE_JSON)), success,
			  push->answer.data, push->answer.length);
	if (success) {
		*rejected = answer.rejected < item->points ? answer.rejected : item->points;
		snprintf(reason, size, "%s", answer.message);
		return SENT;
	}
	snprintf(reason, size, "the server answers %ld%s%s", status, *answer.message ? ", " : "", answer.message);
	if (after > 0)
		*wait_ms = after > RETRY_AFTER_LAST_MS / 1000 ? RETRY_AFTER_LAST_MS : (uint64_t)after * 1000;
	return status == 429 || status == 502 || status == 503 || status == 504 ? AGAIN : NEVER;
}

/* Half of it up to all of it. */
static uint64_t jitter(uint64_t ms)
{
	return ms / 2 + clock_monotonic() % (ms / 2 + 1); /* of its nanoseconds nobody knows the last ones */
}

/*
 * Waits before it is sent again; the end of the command ends a wait that the server has not asked for. False: there is no time left for
 * that.
 */
static bool wait_for_retry(struct agent_push *push, uint64_t *backoff, uint64_t asked_ms)
{
	uint64_t until = clock_monotonic() + (asked_ms ?: jitter(*backoff)) * MS;
	struct timespec when = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
	bool was_ending, in_time = true;

	*backoff = *backoff * 2 < BACKOFF_LAST_MS ? *backoff * 2 : BACKOFF_LAST_MS;
	pthread_mutex_lock(&push->lock);
	push->retries++;
	was_ending = push->ending;
	while (in_time && clock_monotonic() < until) {
		if (push->ending && !was_ending && !asked_ms) {
			*backoff = BACKOFF_FIRST_MS;
			break;
		}
		in_time = !push->ending || until < push->deadline;
		if (in_time)
			pthread_cond_timedwait(&push->changed, &push->lock, &when);
	}
	pthread_mutex_unlock(&push->lock);
	return in_time;
}

/* Of a request that begins now, ms. */
static unsigned int time_left(struct agent_push *push)
{
	unsigned int left = push->settings.timeout_ms;
	uint64_t now = clock_monotonic();

	pthread_mutex_lock(&push->lock);
	if (push->ending && now >= push->deadline)
		left = 1;
	else if (push->ending && (push->deadline - now) / MS < left)
		left = (unsigned int)((push->deadline - now) / MS) + 1;
	pthread_mutex_unlock(&push->lock);
	return left;
}

/* Until it is sent, or never will be. False: because of the end, and so is all that waits. */
static bool deliver(struct agent_push *push, const struct item *item)
{
	uint64_t backoff = BACKOFF_FIRST_MS, wait_ms, rejected;
	enum cause cause = REFUSED;
	enum outcome outcome;
	char reason[800];

	while ((outcome = attempt(push, item, time_left(push), &wait_ms, &rejected, reason, sizeof(reason))) == AGAIN) {
		if (!push->failing)
			say(XPT_LOG_WARN, "cannot send metrics to ", push->settings.shown, reason,
			    "; they are kept and sent again");
		push->failing = true;
		if (wait_for_retry(push, &backoff, wait_ms))
			continue;
		cause = ENDED;
		break;
	}
	if (outcome == SENT && push->failing)
		say(XPT_LOG_INFO, "metrics are sent again to ", push->settings.shown, "it accepts them", "");
	push->failing = outcome == AGAIN;
	pthread_mutex_lock(&push->lock);
	push->bytes -= item->body.length;
	push->sent += outcome == SENT ? item->points - rejected : 0;
	push->dropped[outcome == SENT ? REJECTED : cause] += outcome == SENT ? rejected : item->points;
	pthread_mutex_unlock(&push->lock);
	if (outcome == SENT && rejected)
		report_dropped(push, REJECTED, *reason ? reason : "the server rejects a part of them");
	else if (outcome == NEVER)
		report_dropped(push, REFUSED, reason);
	else if (outcome == SENT && *reason && !push->advised)
		say(XPT_LOG_INFO, "advice of ", push->settings.shown, reason, "");
	push->advised |= outcome == SENT && *reason;
	return outcome != AGAIN;
}

static void *send_all(void *context)
{
	struct agent_push *push = context;
	bool in_time = true;
	struct item *item;

	if (thread_drop_capabilities())
		print_message(NULL, XPT_LOG_WARN, "cannot drop capabilities of the thread that sends metrics");
	while (in_time && (item = take_oldest(push))) {
		in_time = deliver(push, item);
		free_item(item);
	}
	return NULL;
}

/* ---- its own metrics ---- */

static void expose(void *context, struct exposition *to)
{
	static const struct metric sent = { "xputrace_agent_otlp_sent_points", NULL,
					    "Data points that the server of --otlp has accepted.", METRIC_COUNTER };
	static const struct metric dropped = { "xputrace_agent_otlp_dropped_points", NULL,
					       "Data points that the server of --otlp did not get, by cause.",
					       METRIC_COUNTER };
	static const struct metric retries = { "xputrace_agent_otlp_retries", NULL,
					       "Requests that were to be sent again.", METRIC_COUNTER };
	static const struct metric queue = { "xputrace_agent_otlp_queue_bytes", "bytes", "Requests that wait.",
					     METRIC_GAUGE };
	struct agent_push *push = context;
	struct text labels = {};

	pthread_mutex_lock(&push->lock);
	exposition_family(to, &sent);
	exposition_value(to, &labels, (double)push->sent, push->started);
	exposition_family(to, &dropped);
	for (enum cause cause = 0; cause < CAUSES; cause++) {
		text_clear(&labels, ~(size_t)0);
		label_add(&labels, "cause", cause_names[cause]);
		exposition_value(to, &labels, (double)push->dropped[cause], push->started);
	}
	text_clear(&labels, ~(size_t)0);
	exposition_family(to, &retries);
	exposition_value(to, &labels, (double)push->retries, push->started);
	exposition_family(to, &queue);
	exposition_value(to, &labels, (double)push->bytes, 0);
	pthread_mutex_unlock(&push->lock);
	text_free(&labels);
}

/* ---- begin and end ---- */

const char *agent_push_url(const struct agent_push *push)
{
	return push->settings.shown;
}

int agent_push_create(const char *url, uint64_t queue, struct agent_metrics *metrics, struct agent_push **result)
{
	struct agent_push *push = calloc(1, sizeof(*push));
	pthread_condattr_t monotonic;
	int error;

	if (!push)
		return -ENOMEM;
	push->metrics = metrics;
	push->queue_bytes = queue;
	push->started = (double)clock_read(CLOCK_REALTIME) / 1e9;
	push->last = &push->first;
	pthread_mutex_init(&push->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&push->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	error = otlp_settings_read(&push->settings, url);
	if (!error && (curl_global_init(CURL_GLOBAL_DEFAULT) || !(push->curl = create_handle(push))))
		error = -ENOMEM;
	if (!error)
		error = thread_start(&push->thread, send_all, push, "xpt-otlp");
	if (error) {
		agent_push_destroy(push);
		return error == -ENOENT ? 0 : error;
	}
	push->has_thread = true;
	agent_metrics_extend(metrics, expose, push);
	*result = push;
	return 0;
}

void agent_push_destroy(struct agent_push *push)
{
	uint64_t left;

	if (!push)
		return;
	if (push->has_thread) {
		pthread_mutex_lock(&push->lock);
		push->ending = true;
		push->deadline = clock_monotonic() + FLUSH_MS * MS;
		pthread_cond_broadcast(&push->changed);
		pthread_mutex_unlock(&push->lock);
		pthread_join(push->thread, NULL);
		agent_metrics_extend(push->metrics, NULL, NULL);
	}
	while (push->first) {
		struct item *item = push->first;

		push->first = item->next;
		push->dropped[ENDED] += item->points;
		free_item(item);
	}
	left = push->dropped[ENDED];
	if (left) {
		char text[200];

		snprintf(text, sizeof(text), "%llu data points that were not sent in time are dropped",
			 (unsigned long long)left);
		print_message(NULL, XPT_LOG_WARN, text);
	}
	if (push->curl)
		curl_easy_cleanup(push->curl);
	otlp_settings_free(&push->settings);
	text_free(&push->answer);
	pthread_cond_destroy(&push->changed);
	pthread_mutex_destroy(&push->lock);
	free(push);
}
