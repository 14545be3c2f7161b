/* SPDX-License-Identifier: BSD-2-Clause */
/* The callback thread: reports are handed to their callbacks one after the other, in the order in which they were made. */
#include <errno.h>
#include <stdlib.h>

#include "session/session.h"

static struct subscriber *subscriber_of(const struct xpt_session *session, const struct handle *handle)
{
	struct subscriber *subscriber = session->subscribers;

	while (subscriber && subscriber->handle != handle)
		subscriber = subscriber->next;
	return subscriber;
}

void deliveries_add(void *context, struct handle *handle, struct report *report)
{
	struct xpt_session *session = context;
	struct subscriber *subscriber = subscriber_of(session, handle);
	struct delivery *delivery = subscriber ? malloc(sizeof(*delivery)) : NULL;

	if (!delivery) {
		log_error(&session->collector->log, "no memory for a report: it is dropped");
		report_free(session->profiling, report);
		return;
	}
	*delivery = (struct delivery){ .subscriber = subscriber, .report = report };
	*session->last = delivery;
	session->last = &delivery->next;
	session->waiting++;
	session->waiting_bytes += report_bytes(report);
	subscriber->waiting++;
	pthread_cond_signal(&session->queued);
}

/* The one after *link leaves the queue. */
static struct delivery *delivery_take(struct xpt_session *session, struct delivery **link)
{
	struct delivery *delivery = *link;

	*link = delivery->next;
	if (session->last == &delivery->next)
		session->last = link;
	session->waiting--;
	session->waiting_bytes -= report_bytes(delivery->report);
	return delivery;
}

static void delivery_free(struct xpt_session *session, struct delivery *delivery)
{
	report_free(session->profiling, delivery->report);
	delivery->subscriber->waiting--;
	free(delivery);
}

static void subscriber_unlink(struct subscriber *subscriber)
{
	struct subscriber **link = &subscriber->session->subscribers;

	while (*link != subscriber)
		link = &(*link)->next;
	*link = subscriber->next;
	free(subscriber);
}

void *deliveries_run(void *context)
{
	struct xpt_session *session = context;
	struct subscriber *subscriber;
	struct delivery *delivery;

	pthread_mutex_lock(&session->lock);
	for (;;) {
		while (!session->first && !session->ending)
			pthread_cond_wait(&session->queued, &session->lock);
		if (session->ending)
			break;
		delivery = delivery_take(session, &session->first);
		subscriber = delivery->subscriber;
		subscriber->delivering = true;
		pthread_mutex_unlock(&session->lock);
		subscriber->callback(subscriber->context, report_view(delivery->report));
		pthread_mutex_lock(&session->lock);
		delivery_free(session, delivery);
		subscriber->delivering = false;
		if (!subscriber->handle)
			subscriber_unlink(subscriber);
		pthread_cond_broadcast(&session->changed);
	}
	pthread_mutex_unlock(&session->lock);
	return NULL;
}

bool deliveries_is_callback(const struct xpt_session *session)
{
	return session->has_calling_back && pthread_equal(pthread_self(), session->calling_back);
}

struct subscriber *subscriber_add(struct xpt_session *session, struct handle *handle, xpt_profile_report_fn callback,
				  void *context)
{
	struct subscriber *subscriber = calloc(1, sizeof(*subscriber));

	if (!subscriber)
		return NULL;
	subscriber->session = session;
	subscriber->handle = handle;
	subscriber->callback = callback;
	subscriber->context = context;
	subscriber->next = session->subscribers;
	session->subscribers = subscriber;
	return subscriber;
}

void subscriber_remove(struct subscriber *subscriber)
{
	struct xpt_session *session = subscriber->session;
	struct delivery **link = &session->first;

	handle_free(subscriber->handle);
	while (*link) {
		if ((*link)->subscriber == subscriber)
			delivery_free(session, delivery_take(session, link));
		else
			link = &(*link)->next;
	}
	if (subscriber->delivering && deliveries_is_callback(session)) {
		subscriber->handle = NULL; /* the thread frees it when the callback has returned */
		return;
	}
	while (subscriber->delivering)
		session_wait_change(session, ~0ull);
	subscriber_unlink(subscriber);
}
