/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that start and end at the same path at the same time. */
#include "tests/unit/session_control.h"

#define RACERS 4
#define ROUNDS 100

/*
 * All start at the same moment, at a socket that has been left behind by a kill in every other round. Exactly one
 * listens: what it says of itself is what a client hears.
 */
Test(session_control_races, of_those_that_start_at_once_one_goes_on)
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

/* Those that end tidily beside those that start: nobody takes away what is another one's. */
Test(session_control_races, starting_beside_ending)
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
			send_text(client, ECHO_LINE("1", "x"));
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
