/* SPDX-License-Identifier: BSD-2-Clause */
/* Other people's programs: finding one, and whether a preloaded library reaches it. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stddef.h>

#include "fail.h"

/* The file that name stands for: itself with a slash, else by $PATH. -ENOENT (127) or -EACCES (126). */
int program_find(const char *name, char *buf, size_t size, struct fail *reterr);

/* 0 when the dynamic linker will load what LD_PRELOAD names, else a negative errno with the reason:
 * raised privileges, no dynamic linker, another machine's program, not a program. */
int program_takes_preload(const char *path, struct fail *reterr);

#endif /* CLI_PROGRAM_H */
