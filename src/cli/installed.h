/* SPDX-License-Identifier: BSD-2-Clause */
/* Where what belongs to this program lies: beside it in a build folder, or installed. */
#ifndef CLI_INSTALLED_H
#define CLI_INSTALLED_H

#include <stddef.h>

/* The first that is there and allows mode, as of access(2): beside/name from the program's own folder,
 * name in dir as an installation has it relative to the program, name in dir as configured. With raised
 * privileges only the last: the caller chooses where the program lies. A negative errno leaves the last
 * path in buf. */
int installed_find(const char *beside, const char *dir, const char *name, int mode, char *buf,
		   size_t size);

#endif /* CLI_INSTALLED_H */
