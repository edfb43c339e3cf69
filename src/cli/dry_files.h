/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that the steps of a plan make, where no step is really carried out. */
#ifndef CLI_DRY_FILES_H
#define CLI_DRY_FILES_H

#include <jansson.h>

#include "spec.h"

struct dry_files {
	json_t *sizes; /* name as in the document -> bytes */
};

int dry_files_init(struct dry_files *files, struct fail *f);
void dry_files_free(struct dry_files *files);

/* Before a step: what it reads of a file that an earlier step made is put in its place. */
int dry_files_before(const struct dry_files *files, struct step *step, struct fail *f);

/* After a step that succeeded: the file that it makes. length is that of its MR or of its read. */
int dry_files_after(struct dry_files *files, const struct step *step, uint64_t length,
		    struct fail *f);

#endif /* CLI_DRY_FILES_H */
