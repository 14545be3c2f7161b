/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket's file: who may reach it, what is left alone, and servers that start and end there at the same time. */
#include "tests/unit/control_support.h"

#include <fcntl.h>
#include <sys/file.h>

static unsigned int mode_of(const char *path)
{
	struct stat status;

	cr_assert_eq(lstat(path, &status), 0, "%s", path);
	return status.st_mode;
}

static void make_folder(const struct place *place, mode_t mode)
{
	char folder[96];

	snprintf(folder, sizeof(folder), "%s/run", place->folder);
	cr_assert_eq(mkdir(folder, 0700), 0);
	cr_assert_eq(chmod(folder, mode), 0);
}

static void check_refused(struct place *place, int error, const char *said)
{
	place->said[0] = '\0';
	place->control = NULL;
	cr_assert_eq(place_open(place), error, "%s", place->said);
	cr_assert_null(place->control);
	cr_assert(strstr(place->said, said), "%s", place->said);
}

Test(control_place, only_its_owner_reaches_it)
{
	char folder[96], lock[128];
	struct place place;

	place_make(&place);
	umask(0);
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	snprintf(folder, sizeof(folder), "%s/run", place.folder);
	snprintf(lock, sizeof(lock), "%s/" CONTROL_LOCK, place.directory);
	cr_assert_eq(mode_of(place.path), S_IFSOCK | 0600);
	cr_assert_eq(mode_of(folder), S_IFDIR | 0700);
	cr_assert_eq(mode_of(lock), S_IFREG | 0600);
	expect_service(&place);
	control_close(place.control);
	place.control = NULL;
	cr_assert_neq(access(place.path, F_OK), 0);
	cr_assert_eq(mode_of(folder), S_IFDIR | 0700);
	place_remove(&place);
}

Test(control_place, folders_that_others_rule)
{
	static const mode_t bad[] = { 0777, 01777, 0770, 0702 }, good[] = { 0700, 0755, 0500 };
	char folder[96], lock[128];
	struct place place;

	place_make(&place);
	snprintf(folder, sizeof(folder), "%s/run", place.folder);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make_folder(&place, bad[i]);
		check_refused(&place, -EPERM, "chmod go-w");
		cr_assert_eq(rmdir(folder), 0, "something was left behind");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (geteuid() && !(good[i] & 0200))
			continue;
		make_folder(&place, good[i]);
		cr_assert_eq(place_open(&place), 0, "%s", place.said);
		control_close(place.control);
		place.control = NULL;
		cr_assert_eq(mode_of(folder), S_IFDIR | good[i]);
		snprintf(lock, sizeof(lock), "%s/" CONTROL_LOCK, place.directory);
		cr_assert_eq(unlink(lock), 0);
		cr_assert_eq(rmdir(folder), 0, "something else was left behind");
	}
	if (geteuid())
		cr_skip_test("a directory of another user: root is wanted");
	make_folder(&place, 0700);
	cr_assert_eq(chown(folder, OTHER_USER, OTHER_USER), 0);
	check_refused(&place, -EPERM, "belongs to user 65534");
	place_remove(&place);
}

Test(control_place, paths_that_cannot_be)
{
	struct place place;
	char folder[96];

	place_make(&place);
	snprintf(folder, sizeof(folder), "%s/run", place.folder);
	snprintf(place.path, sizeof(place.path), "/%090d", 0);
	check_refused(&place, -ENAMETOOLONG, "107 bytes");
	snprintf(place.path, sizeof(place.path), "/a.sock");
	snprintf(place.directory, sizeof(place.directory), "%s/not/there", place.folder);
	check_refused(&place, -ENOENT, "cannot create");
	snprintf(place.directory, sizeof(place.directory), "%s/run", place.folder);
	cr_assert_eq(symlink(place.folder, folder), 0);
	check_refused(&place, -ENOTDIR, "symbolic links are not followed");
	cr_assert_eq(unlink(folder), 0);
	close(open(folder, O_CREAT | O_WRONLY, 0600));
	check_refused(&place, -ENOTDIR, folder);
	cr_assert_eq(chdir(place.folder), 0);
	snprintf(place.directory, sizeof(place.directory), "here");
	snprintf(place.path, sizeof(place.path), "here/a.sock");
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	expect_service(&place);
	place_remove(&place);
}

Test(control_place, what_else_is_there_is_left_alone)
{
	char lock[128], text[8] = "";
	struct sockaddr_un address;
	struct place place;
	int file;

	place_make(&place);
	make_folder(&place, 0700);
	file = open(place.path, O_CREAT | O_RDWR, 0600);
	cr_assert_eq(write(file, "data", 4), 4);
	check_refused(&place, -EEXIST, "remove it, or choose another name");
	cr_assert_eq(pread(file, text, sizeof(text), 0), 4);
	cr_assert_eq(mode_of(place.path), S_IFREG | 0600);
	unlink(place.path);
	close(file);

	cr_assert_eq(symlink("/dev/null", place.path), 0);
	check_refused(&place, -EEXIST, "remove it");
	cr_assert(S_ISLNK(mode_of(place.path)));
	unlink(place.path);
	cr_assert_eq(symlink("nowhere", place.path), 0);
	check_refused(&place, -EEXIST, "remove it");
	cr_assert(S_ISLNK(mode_of(place.path)));
	unlink(place.path);

	cr_assert_eq(mkdir(place.path, 0700), 0);
	check_refused(&place, -EEXIST, "remove it");
	cr_assert_eq(rmdir(place.path), 0);

	file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	address = address_of(place.path);
	cr_assert_eq(bind(file, (struct sockaddr *)&address, sizeof(address)), 0);
	check_refused(&place, -EEXIST, "remove it");
	cr_assert(S_ISSOCK(mode_of(place.path)));
	close(file);
	unlink(place.path);

	snprintf(lock, sizeof(lock), "%s/" CONTROL_LOCK, place.directory);
	unlink(lock);
	cr_assert_eq(symlink("elsewhere", lock), 0);
	check_refused(&place, -ELOOP, "cannot open 'lock'");
	unlink(lock);
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	place_remove(&place);
}

Test(control_place, a_path_that_is_taken)
{
	struct control *first;
	struct place place;
	char said[96];
	pid_t pid;

	place_make(&place);
	pid = place_serve(&place);
	snprintf(said, sizeof(said), "process %d listens there already", pid);
	check_refused(&place, -EADDRINUSE, said);
	check_refused(&place, -EADDRINUSE, said);
	/* Left by a kill. */
	child_kill(pid);
	cr_assert(S_ISSOCK(mode_of(place.path)));
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	expect_service(&place);

	/* In the same process too. */
	first = place.control;
	place.control = NULL;
	snprintf(said, sizeof(said), "process %d listens there already", getpid());
	check_refused(&place, -EADDRINUSE, said);
	place.control = first;
	expect_service(&place);
	control_close(place.control);
	place.control = NULL;
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	place_remove(&place);
}

Test(control_place, listeners_that_hold_no_lock_are_seen)
{
	struct sockaddr_un address;
	struct place place;
	int listener, waiting[3];
	char said[96];

	place_make(&place);
	make_folder(&place, 0700);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	address = address_of(place.path);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	snprintf(said, sizeof(said), "process %d listens there already", getpid());
	check_refused(&place, -EADDRINUSE, said);
	/* One whose queue is full. */
	for (int i = 0; i < 3; i++)
		waiting[i] = path_connect(place.path);
	cr_assert_lt(waiting[2], 0);
	check_refused(&place, -EADDRINUSE, "listens there already");
	cr_assert(S_ISSOCK(mode_of(place.path)));
	place_remove(&place);
}

/* Another process is just between making room and listening, or has stopped there. */
Test(control_place, a_lock_that_is_held)
{
	char path[128];
	struct place place;
	__u64 begun;
	int lock;

	place_make(&place);
	make_folder(&place, 0700);
	snprintf(path, sizeof(path), "%s/" CONTROL_LOCK, place.directory);
	lock = open(path, O_CREAT | O_RDWR, 0600);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	begun = clock_monotonic();
	check_refused(&place, -EADDRINUSE, "another process is starting or ending a server there: try again");
	cr_assert_lt(clock_monotonic(), begun + PATIENCE);
	cr_assert_neq(access(place.path, F_OK), 0);
	close(lock);
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	place_remove(&place);
}

Test(control_place, only_its_own_socket_is_removed)
{
	struct control *first, *second;
	struct place place;

	place_make(&place);
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	first = place.control;
	/* Somebody cleans up, and starts another one. */
	cr_assert_eq(unlink(place.path), 0);
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	second = place.control;
	control_close(first);
	cr_assert(S_ISSOCK(mode_of(place.path)));
	expect_service(&place);
	control_close(second);
	place.control = NULL;
	cr_assert_neq(access(place.path, F_OK), 0);
	place_remove(&place);
}

/* In a child without privileges: its exit status. */
static int as_other_user(int (*act)(struct place *place), struct place *place)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (setgid(OTHER_USER) || setuid(OTHER_USER))
			_exit(100);
		_exit(act(place));
	}
	while (!waitpid(pid, &status, WNOHANG))
		place_work(place, clock_monotonic() + MS);
	cr_assert(WIFEXITED(status), "%x", (unsigned int)status);
	return WEXITSTATUS(status);
}

static int cannot_connect(struct place *place)
{
	return path_connect(place->path) >= 0 || errno != EACCES;
}

static int is_refused(struct place *place)
{
	static const char answer[] = "{\"xputrace\":2,\"id\":null,\"ok\":false,\"error\":\"EACCES\"";
	char line[512];
	int client = path_connect(place->path);
	ssize_t got;

	if (client < 0)
		return 1;
	(void)!send(client, ECHO_REQUEST("1", "x"), sizeof(ECHO_REQUEST("1", "x")) - 1, MSG_NOSIGNAL);
	fcntl(client, F_SETFL, 0);
	got = recv(client, line, sizeof(line), 0);
	return got < (ssize_t)strlen(answer) || memcmp(line, answer, strlen(answer)) ||
	       recv(client, line, sizeof(line), 0) > 0;
}

Test(control_place, other_users_are_not_answered)
{
	char folder[96];
	struct place place;

	if (geteuid())
		cr_skip_test("another user: root is wanted");
	place_make(&place);
	snprintf(folder, sizeof(folder), "%s/run", place.folder);
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	cr_assert_eq(chmod(place.folder, 0755), 0);
	cr_assert_eq(as_other_user(cannot_connect, &place), 0);
	cr_assert_eq(chmod(folder, 0755), 0);
	cr_assert_eq(as_other_user(cannot_connect, &place), 0);
	cr_assert_eq(chmod(place.path, 0666), 0);
	cr_assert_eq(as_other_user(is_refused, &place), 0);
	cr_assert_eq(place.handled, 0);
	expect_service(&place);
	place_remove(&place);
}

/* As expect_service(); an assertion in a child would fail nothing. */
static bool asks_itself(struct place *place)
{
	char line[128] = "";
	int client = path_connect(place->path);

	(void)!send(client, ECHO_REQUEST("1", "own"), sizeof(ECHO_REQUEST("1", "own")) - 1, MSG_NOSIGNAL);
	for (__u64 until = clock_monotonic() + PATIENCE;
	     recv(client, line, sizeof(line) - 1, MSG_DONTWAIT) < 0 && clock_monotonic() < until;)
		place_work(place, clock_monotonic() + 5 * MS);
	close(client);
	return !strcmp(line, ECHO_ANSWER("1", "own"));
}

/* A server of another user answers that user and root. */
static int serves_both(struct place *place)
{
	place->control = NULL;
	snprintf(place->directory, sizeof(place->directory), "%s/own", place->folder);
	snprintf(place->path, sizeof(place->path), "%s/a.sock", place->directory);
	if (place_open(place))
		return 1;
	if (!asks_itself(place))
		return 2;
	/* The parent, which is root, asks too. */
	for (__u64 until = clock_monotonic() + PATIENCE; place->handled < 2 && clock_monotonic() < until;)
		place_work(place, clock_monotonic() + 5 * MS);
	return place->handled < 2 ? 3 : 0;
}

Test(control_place, a_server_without_privileges)
{
	struct place place;
	char path[128];
	pid_t pid;
	int status, client;

	if (geteuid())
		cr_skip_test("another user: root is wanted");
	place_make(&place);
	cr_assert_eq(chmod(place.folder, 0777), 0);
	snprintf(path, sizeof(path), "%s/own/a.sock", place.folder);
	pid = fork();
	if (!pid)
		_exit(setgid(OTHER_USER) || setuid(OTHER_USER) ? 100 : serves_both(&place));
	for (__u64 until = clock_monotonic() + PATIENCE; (client = path_connect(path)) < 0;)
		cr_assert_lt(clock_monotonic(), until);
	send_text(client, ECHO_REQUEST("1", "x"));
	fcntl(client, F_SETFL, 0);
	cr_assert_eq(recv(client, &(char){ 0 }, 1, 0), 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%x", (unsigned int)status);
	place_remove(&place);
}

/* ---- races ---- */

#define RACERS 4
#define ROUNDS 100

/*
 * All start at the same moment, at a socket that has been left behind by a kill in every other round. Exactly one
 * listens: what it says of itself is what a client hears.
 */
Test(control_place, of_those_that_start_at_once_one_goes_on)
{
	struct place place;

	place_make(&place);
	for (int round = 0; round < ROUNDS; round++) {
		int go[2], result[2], won = 0;
		pid_t racers[RACERS], winner = 0;

		cr_assert_eq(pipe(go), 0);
		cr_assert_eq(pipe(result), 0);
		for (int i = 0; i < RACERS; i++) {
			racers[i] = fork();
			if (!racers[i]) {
				struct {
					pid_t pid;
					int error;
				} mine = { .pid = getpid() };

				close(go[1]);
				(void)!read(go[0], &(char){ 0 }, 1);
				mine.error = place_open(&place);
				if (write(result[1], &mine, sizeof(mine)) != sizeof(mine) || mine.error)
					_exit(1);
				for (;;)
					pause();
			}
		}
		close(go[0]);
		close(go[1]);
		for (int i = 0; i < RACERS; i++) {
			struct {
				pid_t pid;
				int error;
			} one;

			cr_assert_eq(read(result[0], &one, sizeof(one)), sizeof(one));
			cr_assert(!one.error || one.error == -EADDRINUSE, "%d", one.error);
			winner = one.error ? winner : one.pid;
			won += !one.error;
		}
		cr_assert_eq(won, 1, "round %d: %d", round, won);
		for (int i = 0; i < RACERS; i++) {
			if (racers[i] == winner) {
				struct ucred peer = { 0 };
				socklen_t length = sizeof(peer);
				int client = path_connect(place.path);

				cr_assert_geq(client, 0);
				cr_assert_eq(getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length), 0);
				cr_assert_eq(peer.pid, winner);
				close(client);
			}
		}
		for (int i = 0; i < RACERS; i++)
			child_kill(racers[i]);
		if (round % 2) {
			cr_assert_eq(place_open(&place), 0, "%s", place.said);
			control_close(place.control);
			place.control = NULL;
		}
		close(result[0]);
		close(result[1]);
	}
	place_remove(&place);
}

/* Those that end in order beside those that start: nobody removes what is another one's. */
Test(control_place, starting_beside_ending)
{
	struct place place;
	pid_t children[RACERS];
	int status;

	place_make(&place);
	for (int i = 0; i < RACERS; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		for (int served = 0, tried = 0; served < ROUNDS && tried < 1000000; tried++) {
			struct pollfd ready;
			int client, error = place_open(&place);

			if (error == -EADDRINUSE)
				continue;
			if (error)
				_exit(2);
			/* Those that look whether somebody listens may fill the queue. */
			while ((client = path_connect(place.path)) < 0 && errno == EAGAIN)
				control_work(place.control);
			if (client < 0)
				_exit(3);
			send_text(client, ECHO_REQUEST("1", "x"));
			ready = (struct pollfd){ .fd = client, .events = POLLIN };
			/* Others look in, too; none of them answers. */
			while (poll(&ready, 1, 0) != 1)
				control_work(place.control);
			close(client);
			control_close(place.control);
			served++;
		}
		_exit(0);
	}
	for (int i = 0; i < RACERS; i++) {
		cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
		cr_assert_eq(status, 0, "%x", (unsigned int)status);
	}
	cr_assert_eq(place_open(&place), 0, "%s", place.said);
	place_remove(&place);
}
