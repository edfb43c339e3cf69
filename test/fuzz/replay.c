/* SPDX-License-Identifier: BSD-2-Clause */
/* Give every file of the folders named to a fuzzer's entry point, as TAP: usage: PROGRAM FOLDER... */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* An exact copy on the heap, so that AddressSanitizer sees a read past its end. */
static int replay(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *data = NULL;
	FILE *file;
	long size = -1;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	file = fopen(path, "rb");
	if (!file)
		return -errno;
	if (fseek(file, 0, SEEK_END) == 0)
		size = ftell(file);
	if (size >= 0 && fseek(file, 0, SEEK_SET) == 0)
		data = malloc((size_t)size);
	if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) {
		free(data);
		fclose(file);
		return -EIO;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int number = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		struct dirent **names;
		int count = scandir(argv[i], &names, visible, alphasort);

		if (count <= 0) {
			printf("Bail out! no files in %s\n", argv[i]);
			return 1;
		}
		printf("1..%d\n", count);
		for (int k = 0; k < count; k++) {
			int ret;

			printf("# %s\n", names[k]->d_name);
			fflush(stdout);
			ret = replay(argv[i], names[k]->d_name);
			printf("%sok %d - %s", ret ? "not " : "", ++number, names[k]->d_name);
			printf(ret ? ": %s\n" : "\n", strerror(-ret));
			fflush(stdout);
			failed += ret != 0;
			free(names[k]);
		}
		free(names);
	}
	return failed ? 1 : 0;
}
