/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked of a collector that runs. Each gets argv with its own word first and returns the exit status. */
#ifndef XPT_CLI_REMOTE_H
#define XPT_CLI_REMOTE_H

int remote_save(int argc, char **argv);
int remote_status(int argc, char **argv);
int remote_stop(int argc, char **argv);

#endif
