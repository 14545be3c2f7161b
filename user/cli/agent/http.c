/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server of xputrace agent: libmicrohttpd in a thread that has no capabilities. A connection is for one request. A client holds
 * nobody up: answers are made once an interval and shared, connections are bounded, and cut off after a while, or when many others come.
 */
#include "cli/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/exposition.h"
#include "base/core/process.h"
#include "base/file/output.h"
#include "base/format/prometheus.h"
#include "cli/commands.h"

#define CONNECTIONS_MAX 256
#define CONNECTIONS_KEPT 192 /* beyond, the oldest goes: there is always room for those that come */
#define BACKLOG 128
#define CONNECTION_BYTES 16384 /* of a request's head */
#define IDLE_SECONDS 5
#define LIFE (30 * 1000000000ull) /* ns from accepted to cut off */
#define UNIX "unix:"

struct connection {
	int descriptor; /* -1: free */
	uint64_t begun;
	bool answered; /* its request is complete: it is cut off after those that have sent none */
	bool ending;
};

struct answer {
	struct MHD_Response *response; /* NULL: not made yet */
	uint64_t version;
};

struct agent_server {
	struct agent_metrics *metrics;
	int descriptor; /* that listens; the daemon closes it */
	int directory;	/* of a Unix socket, O_PATH; -1: none */
	char name[NAME_MAX + 1];
	dev_t device; /* of the socket's file, removed at the end; inode 0: none was made */
	ino_t inode;
	struct MHD_Daemon *daemon;
	int error;			      /* why there is no daemon */
	struct answer answers[AGENT_FORMATS]; /* of the daemon's thread */
	pthread_mutex_t lock;
	struct connection connections[CONNECTIONS_MAX];
};

/* ---- requests ---- */

static const char index_page[] = "xputrace agent: metrics are at /metrics\n";

static struct MHD_Response *make_response(const char *type, const void *bytes, size_t length,
					  enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(length, (void *)bytes, mode);

	if (!response)
		return NULL;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT);
	return response;
}

/* NULL: no memory. */
static struct MHD_Response *current_answer(struct agent_server *server, enum agent_format format)
{
	static const char *const types[AGENT_FORMATS] = { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS, PROMETHEUS_TYPE };
	struct answer *answer = &server->answers[format];
	uint64_t version = agent_metrics_version(server->metrics);
	struct text text = {};

	if (answer->response && answer->version == version)
		return answer->response;
	if (answer->response)
		MHD_destroy_response(answer->response); /* those who get it still have it */
	answer->response = NULL;
	agent_metrics_render(server->metrics, format, &text);
	if (!text.error)
		answer->response = make_response(types[format], text.data, text.length, MHD_RESPMEM_MUST_FREE);
	if (!answer->response)
		text_free(&text);
	answer->version = version;
	return answer->response;
}

static enum MHD_Result answer_with(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	struct MHD_Response *response = make_response("text/plain; charset=utf-8", text, strlen(text),
						      MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static void note_request(struct agent_server *server, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *mine = info ? info->socket_context : NULL;

	pthread_mutex_lock(&server->lock);
	if (mine)
		mine->answered = true;
	pthread_mutex_unlock(&server->lock);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *upload, size_t *upload_size, void **request)
{
	struct agent_server *server = context;
	struct MHD_Response *response;
	const char *accept;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)request;
	note_request(server, connection);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_with(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n");
	if (!strcmp(url, "/"))
		return answer_with(connection, MHD_HTTP_OK, index_page);
	if (strcmp(url, "/metrics") != 0)
		return answer_with(connection, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
	accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	response = current_answer(server, exposition_wants_protobuf(accept)    ? AGENT_PROTOBUF :
					  exposition_wants_openmetrics(accept) ? AGENT_OPENMETRICS :
										 AGENT_TEXT);
	if (!response)
		return answer_with(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

/* ---- connections ---- */

static void cut_off(struct connection *connection)
{
	connection->ending = true;
	shutdown(connection->descriptor, SHUT_RDWR);
}

/* Of many that connect and do nothing, the oldest goes, so that whoever asks at once gets an answer. */
static void keep_room(struct agent_server *server)
{
	struct connection *oldest = NULL;
	unsigned int used = 0;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *one = &server->connections[i];

		if (one->descriptor < 0 || one->ending)
			continue;
		used++;
		if (!oldest || one->answered < oldest->answered ||
		    (one->answered == oldest->answered && one->begun < oldest->begun))
			oldest = one;
	}
	if (used > CONNECTIONS_KEPT)
		cut_off(oldest);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct agent_server *server = context;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *mine = *socket_context;

	pthread_mutex_lock(&server->lock);
	if (code == MHD_CONNECTION_NOTIFY_CLOSED && mine)
		mine->descriptor = -1;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		keep_room(server);
	for (size_t i = 0; code == MHD_CONNECTION_NOTIFY_STARTED && info && i < CONNECTIONS_MAX; i++) {
		if (server->connections[i].descriptor >= 0)
			continue;
		*socket_context = &server->connections[i];
		server->connections[i] = (struct connection){ .descriptor = info->connect_fd,
							      .begun = clock_monotonic() };
		break;
	}
	pthread_mutex_unlock(&server->lock);
}

void agent_server_tick(struct agent_server *server)
{
	uint64_t now = clock_monotonic();

	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (server->connections[i].descriptor >= 0 && now - server->connections[i].begun > LIFE)
			cut_off(&server->connections[i]);
	pthread_mutex_unlock(&server->lock);
}

/* ---- addresses ---- */

/* "9464", "127.0.0.1:9464", "[::1]:9464"; port points into where. False: it is none of them. */
static bool split(const char *where, char *address, size_t size, const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t length = colon ? (size_t)(colon - where) : 0;
	uint64_t number;

	*port = colon ? colon + 1 : where;
	if (!**port || (*port)[strspn(*port, "0123456789")] || !parse_number(*port, &number) || number > 65535)
		return false;
	if (colon && *where == '[' && length > 2 && where[length - 1] == ']') {
		where++;
		length -= 2;
	} else if (colon && (!length || memchr(where, ':', length))) {
		return false;
	}
	if (length >= size)
		return false;
	snprintf(address, size, "%.*s", (int)length, where);
	if (!colon)
		snprintf(address, size, "127.0.0.1");
	return true;
}

static struct addrinfo *resolve(const char *where)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
					.ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char address[128];
	const char *port;

	if (!split(where, address, sizeof(address), &port) || getaddrinfo(address, port, &hints, &found))
		return NULL;
	return found;
}

const char *agent_listen_refused(const char *where)
{
	struct addrinfo *found;
	size_t length = strlen(where) - (!strncmp(where, UNIX, strlen(UNIX)) ? strlen(UNIX) : 0);

	if (!strncmp(where, UNIX, strlen(UNIX))) {
		if (length && length < sizeof(((struct sockaddr_un *)0)->sun_path))
			return NULL;
		return "expected the path of a socket, of at most 107 bytes";
	}
	found = resolve(where);
	if (!found)
		return "expected PORT, ADDRESS:PORT with an address of digits, [ADDRESS]:PORT, or unix:PATH";
	freeaddrinfo(found);
	return NULL;
}

/* A socket that nobody listens on is in the way. */
static void remove_stale(const struct agent_server *server, const struct sockaddr_un *address)
{
	struct stat status;
	int probe;

	if (fstatat(server->directory, server->name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(status.st_mode))
		return;
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof(*address)) && errno == ECONNREFUSED)
		unlinkat(server->directory, server->name, 0);
	if (probe >= 0)
		close(probe);
}

/* To who called sudo: the socket that was made, and nothing that somebody has put in its place, as another name of a file of root. */
static int give_socket(struct agent_server *server)
{
	int file = openat(server->directory, server->name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error = 0;
	struct stat status = {};
	uid_t user;
	gid_t group;

	if (file < 0)
		return -errno;
	if (fstat(file, &status))
		error = -errno;
	if (!error && (!S_ISSOCK(status.st_mode) || status.st_nlink != 1 || status.st_uid != geteuid()))
		error = -EPERM;
	if (!error && sudo_caller(&user, &group) && fchownat(file, "", user, group, AT_EMPTY_PATH))
		error = -errno;
	server->device = status.st_dev;
	server->inode = error ? 0 : status.st_ino;
	close(file);
	return error;
}

/* Of mode 0660. A descriptor, or -errno. */
static int listen_unix(struct agent_server *server, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char place[sizeof(address.sun_path) + NAME_MAX];
	int descriptor, error = 0;
	mode_t mask;

	server->directory = output_directory(path, server->name);
	if (server->directory < 0)
		return server->directory;
	/* Through /proc, no part of the path is looked up again. */
	if (snprintf(place, sizeof(place), "/proc/self/fd/%d/%s", server->directory, server->name) >=
	    (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, place);
	descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (descriptor < 0)
		return -errno;
	remove_stale(server, &address);
	mask = umask(0117);
	if (bind(descriptor, (struct sockaddr *)&address, sizeof(address)))
		error = -errno;
	umask(mask);
	if (!error)
		error = give_socket(server);
	if (!error && listen(descriptor, BACKLOG))
		error = -errno;
	if (error)
		close(descriptor);
	return error ?: descriptor;
}

static void remove_socket(const struct agent_server *server)
{
	struct stat status;

	if (server->inode && !fstatat(server->directory, server->name, &status, AT_SYMLINK_NOFOLLOW) &&
	    status.st_dev == server->device && status.st_ino == server->inode)
		unlinkat(server->directory, server->name, 0);
	if (server->directory >= 0)
		close(server->directory);
}

static int listen_tcp(const char *where)
{
	struct addrinfo *address = resolve(where);
	int descriptor, error = 0, one = 1;

	if (!address)
		return -EINVAL;
	descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (descriptor < 0)
		error = -errno;
	if (!error && (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		       bind(descriptor, address->ai_addr, address->ai_addrlen) || listen(descriptor, BACKLOG)))
		error = -errno;
	freeaddrinfo(address);
	if (error && descriptor >= 0)
		close(descriptor);
	return error ?: descriptor;
}

/* ---- begin and end ---- */

/* A thread has capabilities of its own, which threads that it starts get from it. */
static void *start_daemon(void *context)
{
	struct agent_server *server = context;

	if (thread_drop_capabilities())
		print_message(NULL, XPT_LOG_WARN, "cannot drop capabilities of the HTTP server");
	errno = 0;
	server->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, 0, NULL, NULL, on_request,
					  server, MHD_OPTION_LISTEN_SOCKET, server->descriptor,
					  MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS_MAX,
					  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECONDS,
					  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
					  MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_END);
	server->error = server->daemon ? 0 : -(errno ?: ENOMEM);
	return NULL;
}

int agent_server_create(const char *where, struct agent_metrics *metrics, struct agent_server **result)
{
	bool is_unix = !strncmp(where, UNIX, strlen(UNIX));
	struct agent_server *server = calloc(1, sizeof(*server));
	pthread_t starter;
	char text[256];
	int error = 0;

	if (!server) {
		print_message(NULL, XPT_LOG_ERROR, "cannot start the HTTP server: no memory");
		return -ENOMEM;
	}
	server->metrics = metrics;
	pthread_mutex_init(&server->lock, NULL);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		server->connections[i].descriptor = -1;
	server->directory = -1;
	server->descriptor = is_unix ? listen_unix(server, where + strlen(UNIX)) : listen_tcp(where);
	if (server->descriptor < 0) {
		error = server->descriptor;
		snprintf(text, sizeof(text), "cannot listen on %.140s: %s", where,
			 is_unix ? output_reason(error) : strerror(-error));
		print_message(NULL, XPT_LOG_ERROR, text);
		agent_server_destroy(server);
		return error;
	}
	error = thread_start(&starter, start_daemon, server, "xpt-http");
	if (!error)
		pthread_join(starter, NULL);
	error = error ?: server->error;
	if (error) {
		snprintf(text, sizeof(text), "cannot start the HTTP server: %s", strerror(-error));
		print_message(NULL, XPT_LOG_ERROR, text);
		close(server->descriptor);
		agent_server_destroy(server);
		return error;
	}
	*result = server;
	return 0;
}

void agent_server_destroy(struct agent_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	for (size_t i = 0; i < AGENT_FORMATS; i++)
		if (server->answers[i].response)
			MHD_destroy_response(server->answers[i].response);
	remove_socket(server);
	free(server);
}
