/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is written whole or not at all: under another name in its folder until it is done. */
#ifndef CLI_WHOLE_FILE_H
#define CLI_WHOLE_FILE_H

#include <limits.h>

#include "fail.h"

struct whole_file {
	int fd;
	const char *path; /* borrowed */
	char temporary[PATH_MAX];
};

int whole_file_open(const char *path, struct whole_file *ret_file, struct fail *f);
/* Its name is given to what was written. */
int whole_file_keep(struct whole_file *file, struct fail *f);
void whole_file_drop(struct whole_file *file);

#endif /* CLI_WHOLE_FILE_H */
