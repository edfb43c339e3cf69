/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that a request names, opened by who asks: relative names, permissions and /dev/fd are the
 * client's and not the session's.
 */
#ifndef CLI_LENT_H
#define CLI_LENT_H

struct lent_file {
	const char *name; /* for messages; NULL: nothing was lent */
	int fd;		  /* -1: opening it failed, with number */
	int number;
};

/* By what they are for. In a session every file is lent; elsewhere none is. */
struct lent {
	struct lent_file file;	  /* memory of reg; data of write */
	struct lent_file init;	  /* of reg */
	struct lent_file to_file; /* of read */
};

#endif /* CLI_LENT_H */
