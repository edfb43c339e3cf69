/* SPDX-License-Identifier: BSD-2-Clause */
#include "dry_files.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../lib/ibmr.h"

int dry_files_init(struct dry_files *files, struct fail *f)
{
	files->sizes = json_object();
	return files->sizes ? 0 : fail_nomem(f);
}

void dry_files_free(struct dry_files *files)
{
	json_decref(files->sizes);
	files->sizes = NULL;
}

static bool find(const struct dry_files *files, const char *name, uint64_t *ret_size)
{
	const json_t *size = name ? json_object_get(files->sizes, name) : NULL;

	if (!size)
		return false;
	*ret_size = (uint64_t)json_integer_value(size);
	return true;
}

/* Bytes of a file that is not there are as good as any others: only their number counts. */
static void replace_data(const struct dry_files *files, struct step_data *data)
{
	uint64_t size;

	if (data->kind != DATA_FILE || !find(files, data->text, &size))
		return;
	data->kind = DATA_HEX;
	data->text = "";
	data->bytes = size;
}

/* The library takes a file that is not there when it is to make it; how much of it there is, is found
 * here then. */
static int replace_file(const struct dry_files *files, struct step_reg *reg, struct fail *f)
{
	uint64_t size, end;

	if (reg->create || !find(files, reg->file, &size))
		return 0;
	if (reg->length == IBMR_TO_END && reg->file_offset < size)
		reg->length = size - reg->file_offset;
	if (__builtin_add_overflow(reg->file_offset, reg->length, &end) || end > size) {
		fail_set(f, FAIL_RANGE,
			 "offset %" PRIu64
			 " and what follows is past the end of file '%s', which has "
			 "%" PRIu64 " byte%s by then",
			 reg->file_offset, reg->file, size, fail_plural(size));
		f->err = EFAULT;
		return -EFAULT;
	}
	reg->map_shared = reg->create = true;
	return 0;
}

int dry_files_before(const struct dry_files *files, struct step *step, struct fail *f)
{
	if (step->verb == STEP_WRITE)
		replace_data(files, &step->write.data);
	if (step->verb != STEP_REG)
		return 0;
	replace_data(files, &step->reg.init);
	return replace_file(files, &step->reg, f);
}

int dry_files_after(struct dry_files *files, const struct step *step, uint64_t length,
		    struct fail *f)
{
	const char *name = NULL;
	uint64_t size = length, old;

	if (step->verb == STEP_READ) {
		name = step->read.to_file;
	} else if (step->verb == STEP_REG && step->reg.create) {
		name = step->reg.file;
		size += step->reg.file_offset;
		if (find(files, name, &old) && old > size)
			size = old;
	}
	if (!name)
		return 0;
	return json_object_set_new(files->sizes, name, json_integer((json_int_t)size))
		       ? fail_nomem(f)
		       : 0;
}
