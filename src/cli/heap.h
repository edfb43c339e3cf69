/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_HEAP_H
#define CLI_HEAP_H

#include <stddef.h>

/* So many bytes will be allocated in small pieces and kept. A hint, which cannot fail. */
void heap_expect(size_t bytes);

#endif /* CLI_HEAP_H */
