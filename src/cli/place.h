/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a session listens: its socket and the lock beside it. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "fail.h"

struct place {
	char path[PATH_MAX]; /* absolute */
	const char *asked;   /* as given; NULL: the default */
	const char *base;    /* the name in its folder; points into path */
	int dir;	     /* the folder, O_PATH */
	int lock;	     /* -1: not ours */
	int listener;	     /* -1: none */
	bool noted;	     /* the lock stays, and says why the session ended */
};

/* socket: as given, or NULL for the default. With make, the default's folder is made when it is not
 * there. A folder of the default that others may enter is refused. */
int place_open(const char *socket, bool make, struct place *ret_place, struct fail *f);
/* Become the one session of this place. -EADDRINUSE session: one is running. */
int place_lock(struct place *place, struct fail *f);
/* With the lock: remove what a crash left, and listen. */
int place_listen(struct place *place, struct fail *f);
/* A connection that does not block, to a process of this user; session otherwise. */
int place_connect(const struct place *place, int *ret_fd, struct fail *f);
/* Leave word of why it ends, which who comes from now on finds in place of the socket; the next start takes
 * it away. */
void place_note(struct place *place, const char *text);
/* Remove socket and lock, if they are ours, and close. */
void place_close(struct place *place);

#endif /* CLI_PLACE_H */
