/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends metrics and spans by OTLP/HTTP: for each kind a bounded queue of requests, and a thread without capabilities that sends one after
 * the other. What a server cannot take now is sent again; what it never gets is counted.
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
#include "base/core/vec.h"
#include "base/file/gzip.h"
#include "base/format/otlp.h"
#include "cli/commands.h"

#define MS 1000000ull
#define BACKOFF_FIRST_MS 500u
#define BACKOFF_LAST_MS 30000u
#define RETRY_AFTER_LAST_MS 3600000u
#define FLUSH_MS 5000u		 /* from the end of the command until nothing is sent any more */
#define ANSWER_BYTES 65536u	 /* that are read of an answer */
#define SPAN_WAIT 90000000000ull /* ns that a span waits for its file at most: the longest --after, and time to write */
#define SPANS_WAITING_MAX 4096

enum cause { QUEUE_FULL, REFUSED, REJECTED, ENDED, NO_MEMORY, CAUSES };

static const char *const cause_names[CAUSES] = { "queue_full", "refused", "rejected", "ended", "no_memory" };

/* Names of threads, and what messages about them consist of. */
static const struct {
	const char *thread, *dropped, *failing, *again, *advice, *counter;
} signals[OTLP_SIGNALS] = {
	[OTLP_METRICS] = { "xpt-otlp", "metrics for ", "cannot send metrics to ", "metrics are sent again to ",
			   "advice on metrics of ",
			   "; they are dropped, and counted in xputrace_agent_otlp_dropped_points" },
	[OTLP_TRACES] = { "xpt-otlp-traces", "spans for ", "cannot send spans to ", "spans are sent again to ",
			  "advice on spans of ",
			  "; they are dropped, and counted in xputrace_agent_otlp_dropped_spans" },
};

struct item {
	struct item *next;
	struct text body; /* packed, if it is to be */
	size_t points;
};

struct sender {
	enum otlp_signal signal;
	struct otlp_settings settings;
	uint64_t queue_bytes;

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

/* That waits for the file with its inference. */
struct span {
	struct text labels; /* of its series */
	struct exemplar exemplar;
	uint64_t until; /* ns, CLOCK_MONOTONIC */
};

struct agent_push {
	struct agent_metrics *metrics;
	double started; /* s since 1970 */
	struct sender senders[OTLP_SIGNALS];
	struct span *spans; /* of agent_push_add() alone */
	size_t span_count;
};

static void say(const struct sender *sender, enum xpt_log_level level, const char *what, const char *reason,
		const char *end)
{
	const char *url = sender->settings.shown;
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

static void report_dropped(struct sender *sender, enum cause cause, const char *reason)
{
	bool before;

	pthread_mutex_lock(&sender->lock);
	before = sender->dropped_reported[cause];
	sender->dropped_reported[cause] = true;
	pthread_mutex_unlock(&sender->lock);
	if (!before)
		say(sender, XPT_LOG_WARN, signals[sender->signal].dropped, reason, signals[sender->signal].counter);
}

static void drop_for_memory(struct sender *sender, size_t points)
{
	pthread_mutex_lock(&sender->lock);
	sender->dropped[NO_MEMORY] += points;
	pthread_mutex_unlock(&sender->lock);
	report_dropped(sender, NO_MEMORY, "no memory");
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
static void enqueue(struct sender *sender, struct item *items)
{
	uint64_t added = 0;
	bool dropped = false;

	for (const struct item *item = items; item; item = item->next)
		added += item->body.length;
	pthread_mutex_lock(&sender->lock);
	while (sender->first && sender->bytes + added > sender->queue_bytes) {
		struct item *oldest = sender->first;

		sender->first = oldest->next;
		if (!sender->first)
			sender->last = &sender->first;
		sender->bytes -= oldest->body.length;
		sender->dropped[QUEUE_FULL] += oldest->points;
		dropped = true;
		free_item(oldest);
	}
	*sender->last = items;
	while (*sender->last)
		sender->last = &(*sender->last)->next;
	sender->bytes += added;
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
	if (dropped)
		report_dropped(sender, QUEUE_FULL, "the queue (--otlp-queue) is full");
}

/* Ends the encoder, and queues its requests. */
static void enqueue_requests(struct sender *sender, struct otlp_encoder *encoder)
{
	struct item *items = NULL, **last = &items;
	size_t points = 0;

	for (size_t i = 0; i < encoder->count; i++)
		points += encoder->requests[i].points;
	if (otlp_end(encoder))
		drop_for_memory(sender, points);
	for (size_t i = 0; i < encoder->count; i++) {
		struct otlp_request *request = &encoder->requests[i];
		struct item *item = calloc(1, sizeof(*item));
		char *fitting;

		if (!item || (sender->settings.packed && pack(&request->body))) {
			drop_for_memory(sender, request->points);
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
	free(encoder->requests);
	if (items)
		enqueue(sender, items);
}

static struct otlp_encoder encoder_of(const struct sender *sender, uint64_t time)
{
	return (struct otlp_encoder){ .json = sender->settings.json,
				      .exponential = sender->settings.exponential,
				      .resource = &sender->settings.resource,
				      .is_of_spans = sender->signal == OTLP_TRACES,
				      .scope_name = "xputrace",
				      .scope_version = XPT_VERSION,
				      .time = time };
}

/* ---- spans ---- */

static void free_span(struct span *span)
{
	text_free(&span->labels);
	text_free(&span->exemplar.labels);
}

static void on_span(void *context, const struct text *labels, const struct exemplar *exemplar)
{
	struct span span = { .exemplar = *exemplar, .until = clock_monotonic() + SPAN_WAIT };
	struct agent_push *push = context;

	span.exemplar.labels = (struct text){ 0 };
	text_bytes(&span.labels, labels->data, labels->length);
	text_bytes(&span.exemplar.labels, exemplar->labels.data, exemplar->labels.length);
	if (span.labels.error || span.exemplar.labels.error || vec_push(push->spans, push->span_count, span)) {
		free_span(&span);
		drop_for_memory(&push->senders[OTLP_TRACES], 1);
	}
}

/* Whether the file with its inference is there. */
static bool find_file(const struct span *span, struct agent_saves *saves, struct agent_file *file)
{
	const struct exemplar *exemplar = &span->exemplar;

	return saves && agent_saves_find(saves, (uint64_t)((exemplar->time - exemplar->value) * 1e9),
					 (uint64_t)(exemplar->time * 1e9), file);
}

static void add_spans(struct agent_push *push, struct agent_saves *saves, uint64_t time)
{
	struct sender *sender = &push->senders[OTLP_TRACES];
	struct otlp_encoder encoder = encoder_of(sender, time);
	bool pending = saves && agent_saves_pending(saves);
	uint64_t now = clock_monotonic();
	size_t count = push->span_count;
	struct agent_file file;

	push->span_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct span span = push->spans[i];
		bool found = find_file(&span, saves, &file);

		if (!found && pending && now < span.until && push->span_count < SPANS_WAITING_MAX) {
			push->spans[push->span_count++] = span;
			continue;
		}
		otlp_add_span(&encoder, &span.labels, &span.exemplar,
			      found ? &(struct otlp_file){ file.path, file.reason, file.bytes } : NULL);
		free_span(&span);
	}
	enqueue_requests(sender, &encoder);
}

void agent_push_add(struct agent_push *push, struct agent_saves *saves, uint64_t time)
{
	struct otlp_encoder metrics = encoder_of(&push->senders[OTLP_METRICS], time);
	struct exposition to = { .sink = &metrics.sink };

	otlp_begin(&metrics);
	agent_metrics_expose(push->metrics, &to);
	enqueue_requests(&push->senders[OTLP_METRICS], &metrics);
	if (!push->senders[OTLP_TRACES].has_thread)
		return;
	agent_metrics_spans(push->metrics, on_span, push);
	add_spans(push, saves, time);
}

/* ---- sending ---- */

/* The oldest, which is the caller's. NULL: the end, and nothing is left, or no time. */
static struct item *take_oldest(struct sender *sender)
{
	struct item *item;

	pthread_mutex_lock(&sender->lock);
	while (!sender->first && !sender->ending)
		pthread_cond_wait(&sender->changed, &sender->lock);
	item = sender->ending && clock_monotonic() >= sender->deadline ? NULL : sender->first;
	if (item) {
		sender->first = item->next;
		if (!sender->first)
			sender->last = &sender->first;
		item->next = NULL;
	}
	pthread_mutex_unlock(&sender->lock);
	return item;
}

static size_t on_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct sender *sender = context;
	size_t room = ANSWER_BYTES - sender->answer.length, length = size * count;

	text_bytes(&sender->answer, bytes, length < room ? length : room);
	sender->answer_cut = length > room;
	return sender->answer_cut || sender->answer.error ? 0 : length;
}

/* Ends a transfer when it is too late for it. curl calls it at least once a second. */
static int on_progress(void *context, curl_off_t down, curl_off_t downloaded, curl_off_t up, curl_off_t uploaded)
{
	struct sender *sender = context;
	bool late;

	(void)down;
	(void)downloaded;
	(void)up;
	(void)uploaded;
	pthread_mutex_lock(&sender->lock);
	late = sender->ending && clock_monotonic() >= sender->deadline;
	pthread_mutex_unlock(&sender->lock);
	return late;
}

static CURL *create_handle(struct sender *sender)
{
	CURL *curl = curl_easy_init();

	if (!curl)
		return NULL;
	curl_easy_setopt(curl, CURLOPT_URL, sender->settings.url);
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
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, sender->settings.headers);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, sender->fault);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, sender);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, sender);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	if (sender->settings.certificate)
		curl_easy_setopt(curl, CURLOPT_CAINFO, sender->settings.certificate);
	if (sender->settings.client_certificate)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, sender->settings.client_certificate);
	if (sender->settings.client_key)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, sender->settings.client_key);
	return curl;
}

enum outcome { SENT, AGAIN, NEVER };

/* Sends it once. *wait_ms: what the server wants, 0: nothing. reason: why not, and of SENT: what was rejected; "": nothing. */
static enum outcome attempt(struct sender *sender, const struct item *item, unsigned int timeout_ms, uint64_t *wait_ms,
			    uint64_t *rejected, char *reason, size_t size)
{
	struct otlp_answer answer;
	curl_off_t after = 0;
	const char *type = NULL;
	long status = 0;
	CURLcode code;
	bool success;

	text_clear(&sender->answer, ANSWER_BYTES);
	sender->answer_cut = false;
	*sender->fault = '\0';
	curl_easy_setopt(sender->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(sender->curl, CURLOPT_POSTFIELDS, item->body.data);
	curl_easy_setopt(sender->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)item->body.length);
	code = curl_easy_perform(sender->curl);
	*wait_ms = *rejected = 0;
	if (code && !sender->answer_cut) {
		snprintf(reason, size, "%s", *sender->fault ? sender->fault : curl_easy_strerror(code));
		return AGAIN;
	}
	curl_easy_getinfo(sender->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(sender->curl, CURLINFO_RETRY_AFTER, &after);
	curl_easy_getinfo(sender->curl, CURLINFO_CONTENT_TYPE, &type);
	success = status >= 200 && status < 300;
	otlp_answer_parse(&answer, type && !strncmp(type, OTLP_TYPE_JSON, strlen(OTLP_TYPE_JSON)), success,
			  sender->answer.data, sender->answer.length);
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
static bool wait_for_retry(struct sender *sender, uint64_t *backoff, uint64_t asked_ms)
{
	uint64_t until = clock_monotonic() + (asked_ms ?: jitter(*backoff)) * MS;
	struct timespec when = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
	bool was_ending, in_time = true;

	*backoff = *backoff * 2 < BACKOFF_LAST_MS ? *backoff * 2 : BACKOFF_LAST_MS;
	pthread_mutex_lock(&sender->lock);
	sender->retries++;
	was_ending = sender->ending;
	while (in_time && clock_monotonic() < until) {
		if (sender->ending && !was_ending && !asked_ms) {
			*backoff = BACKOFF_FIRST_MS;
			break;
		}
		in_time = !sender->ending || until < sender->deadline;
		if (in_time)
			pthread_cond_timedwait(&sender->changed, &sender->lock, &when);
	}
	pthread_mutex_unlock(&sender->lock);
	return in_time;
}

/* Of a request that begins now, ms. */
static unsigned int time_left(struct sender *sender)
{
	unsigned int left = sender->settings.timeout_ms;
	uint64_t now = clock_monotonic();

	pthread_mutex_lock(&sender->lock);
	if (sender->ending && now >= sender->deadline)
		left = 1;
	else if (sender->ending && (sender->deadline - now) / MS < left)
		left = (unsigned int)((sender->deadline - now) / MS) + 1;
	pthread_mutex_unlock(&sender->lock);
	return left;
}

/* Until it is sent, or never will be. False: because of the end, and so is all that waits. */
static bool deliver(struct sender *sender, const struct item *item)
{
	uint64_t backoff = BACKOFF_FIRST_MS, wait_ms, rejected;
	enum cause cause = REFUSED;
	enum outcome outcome;
	char reason[800];

	while ((outcome = attempt(sender, item, time_left(sender), &wait_ms, &rejected, reason, sizeof(reason))) ==
	       AGAIN) {
		if (!sender->failing)
			say(sender, XPT_LOG_WARN, signals[sender->signal].failing, reason,
			    "; they are kept and sent again");
		sender->failing = true;
		if (wait_for_retry(sender, &backoff, wait_ms))
			continue;
		cause = ENDED;
		break;
	}
	if (outcome == SENT && sender->failing)
		say(sender, XPT_LOG_INFO, signals[sender->signal].again, "it accepts them", "");
	sender->failing = outcome == AGAIN;
	pthread_mutex_lock(&sender->lock);
	sender->bytes -= item->body.length;
	sender->sent += outcome == SENT ? item->points - rejected : 0;
	sender->dropped[outcome == SENT ? REJECTED : cause] += outcome == SENT ? rejected : item->points;
	pthread_mutex_unlock(&sender->lock);
	if (outcome == SENT && rejected)
		report_dropped(sender, REJECTED, *reason ? reason : "the server rejects a part of them");
	else if (outcome == NEVER)
		report_dropped(sender, REFUSED, reason);
	else if (outcome == SENT && *reason && !sender->advised)
		say(sender, XPT_LOG_INFO, signals[sender->signal].advice, reason, "");
	sender->advised |= outcome == SENT && *reason;
	return outcome != AGAIN;
}

static void *send_all(void *context)
{
	struct sender *sender = context;
	bool in_time = true;
	struct item *item;

	if (thread_drop_capabilities())
		print_message(NULL, XPT_LOG_WARN, "cannot drop capabilities of the thread that sends metrics");
	while (in_time && (item = take_oldest(sender))) {
		in_time = deliver(sender, item);
		free_item(item);
	}
	return NULL;
}

/* ---- its own metrics ---- */

static void expose_counts(struct agent_push *push, struct exposition *to, enum otlp_signal signal)
{
	static const struct metric sent[OTLP_SIGNALS] = {
		{ "xputrace_agent_otlp_sent_points", NULL, "Data points that the server of --otlp has accepted.",
		  METRIC_COUNTER },
		{ "xputrace_agent_otlp_sent_spans", NULL, "Spans that the server of --otlp has accepted.",
		  METRIC_COUNTER },
	};
	static const struct metric dropped[OTLP_SIGNALS] = {
		{ "xputrace_agent_otlp_dropped_points", NULL,
		  "Data points that the server of --otlp did not get, by cause.", METRIC_COUNTER },
		{ "xputrace_agent_otlp_dropped_spans", NULL, "Spans that the server of --otlp did not get, by cause.",
		  METRIC_COUNTER },
	};
	struct sender *sender = &push->senders[signal];
	struct text labels = {};

	pthread_mutex_lock(&sender->lock);
	exposition_family(to, &sent[signal]);
	exposition_value(to, &labels, (double)sender->sent, push->started);
	exposition_family(to, &dropped[signal]);
	for (enum cause cause = 0; cause < CAUSES; cause++) {
		text_clear(&labels, ~(size_t)0);
		label_add(&labels, "cause", cause_names[cause]);
		exposition_value(to, &labels, (double)sender->dropped[cause], push->started);
	}
	pthread_mutex_unlock(&sender->lock);
	text_free(&labels);
}

static void expose(void *context, struct exposition *to)
{
	static const struct metric retries = { "xputrace_agent_otlp_retries", NULL,
					       "Requests that were to be sent again.", METRIC_COUNTER };
	static const struct metric queue = { "xputrace_agent_otlp_queue_bytes", "bytes", "Requests that wait.",
					     METRIC_GAUGE };
	struct agent_push *push = context;
	uint64_t tries = 0, bytes = 0;
	struct text none = {};

	for (enum otlp_signal signal = 0; signal < OTLP_SIGNALS; signal++) {
		struct sender *sender = &push->senders[signal];

		if (!sender->has_thread)
			continue;
		expose_counts(push, to, signal);
		pthread_mutex_lock(&sender->lock);
		tries += sender->retries;
		bytes += sender->bytes;
		pthread_mutex_unlock(&sender->lock);
	}
	exposition_family(to, &retries);
	exposition_value(to, &none, (double)tries, push->started);
	exposition_family(to, &queue);
	exposition_value(to, &none, (double)bytes, 0);
}

/* ---- begin and end ---- */

const char *agent_push_url(const struct agent_push *push, bool spans)
{
	const struct sender *sender = &push->senders[spans ? OTLP_TRACES : OTLP_METRICS];

	return sender->has_thread ? sender->settings.shown : NULL;
}

/* To be ended in any case. 0; -ENOENT: no endpoint is configured; -EINVAL (reported), -ENOMEM. */
static int start(struct sender *sender, enum otlp_signal signal, const char *url, uint64_t queue)
{
	pthread_condattr_t monotonic;
	int error;

	sender->signal = signal;
	sender->queue_bytes = queue;
	sender->last = &sender->first;
	pthread_mutex_init(&sender->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sender->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	error = otlp_settings_read(&sender->settings, signal, url);
	if (!error && (curl_global_init(CURL_GLOBAL_DEFAULT) || !(sender->curl = create_handle(sender))))
		error = -ENOMEM;
	if (!error)
		error = thread_start(&sender->thread, send_all, sender, signals[signal].thread);
	sender->has_thread = !error;
	return error;
}

/* The thread sends what waits, until the deadline. */
static void ask_to_end(struct sender *sender)
{
	pthread_mutex_lock(&sender->lock);
	sender->ending = true;
	sender->deadline = clock_monotonic() + FLUSH_MS * MS;
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
}

/* waiting: points that are not in its queue yet. */
static void end(struct sender *sender, size_t waiting)
{
	uint64_t left;

	if (!sender->last) /* it was never started */
		return;
	if (sender->has_thread)
		pthread_join(sender->thread, NULL);
	sender->dropped[ENDED] += waiting;
	while (sender->first) {
		struct item *item = sender->first;

		sender->first = item->next;
		sender->dropped[ENDED] += item->points;
		free_item(item);
	}
	left = sender->dropped[ENDED];
	if (left) {
		char text[200];

		snprintf(text, sizeof(text), "%llu %s that were not sent in time are dropped", (unsigned long long)left,
			 sender->signal == OTLP_METRICS ? "data points" : "spans");
		print_message(NULL, XPT_LOG_WARN, text);
	}
	if (sender->curl)
		curl_easy_cleanup(sender->curl);
	otlp_settings_free(&sender->settings);
	text_free(&sender->answer);
	pthread_cond_destroy(&sender->changed);
	pthread_mutex_destroy(&sender->lock);
}

int agent_push_create(const char *url, uint64_t queue, bool spans, struct agent_metrics *metrics,
		      struct agent_push **result)
{
	struct agent_push *push = calloc(1, sizeof(*push));
	int error;

	if (!push)
		return -ENOMEM;
	push->metrics = metrics;
	push->started = (double)clock_read(CLOCK_REALTIME) / 1e9;
	error = start(&push->senders[OTLP_METRICS], OTLP_METRICS, url, queue);
	if (!error && spans) {
		error = start(&push->senders[OTLP_TRACES], OTLP_TRACES, url, queue);
		error = error == -ENOENT ? 0 : error;
	}
	if (error) {
		agent_push_destroy(push);
		return error == -ENOENT ? 0 : error;
	}
	agent_metrics_extend(metrics, expose, push);
	*result = push;
	return 0;
}

void agent_push_destroy(struct agent_push *push)
{
	if (!push)
		return;
	for (enum otlp_signal signal = 0; signal < OTLP_SIGNALS; signal++)
		if (push->senders[signal].has_thread)
			ask_to_end(&push->senders[signal]);
	agent_metrics_extend(push->metrics, NULL, push);
	end(&push->senders[OTLP_METRICS], 0);
	end(&push->senders[OTLP_TRACES], push->span_count);
	for (size_t i = 0; i < push->span_count; i++)
		free_span(&push->spans[i]);
	free(push->spans);
	free(push);
}
