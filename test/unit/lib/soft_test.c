/* SPDX-License-Identifier: BSD-2-Clause */
#include "soft_test.h"

#include <sys/mman.h>

struct ibmr_ctx *soft;

/* soft0_reset() forgets what the environment asked for: a mode, or a defect that is to be noticed. */
static void environment_again(void)
{
	const char *env = getenv("IBMR_SOFT0");
	char words[256], *word, *save;

	snprintf(words, sizeof(words), "%s", env ? env : "");
	for (word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value++ = '\0';
		soft_word(word, value);
	}
}

int soft_setup_bare(void **state)
{
	soft0_reset();
	environment_again();
	return 0;
}

int soft_teardown_bare(void **state)
{
	static const char *const live[] = { "live.mr", "live.mkey", "live.qp",
					    "live.cq", "live.pd",   "live.context" };
	size_t i;

	for (i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		if (soft_counter(live[i]))
			fail_msg("%s is %llu at the end", live[i],
				 (unsigned long long)soft_counter(live[i]));
	return 0;
}

int soft_setup(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_err err;

	soft_setup_bare(state);
	OK(ibmr_ctx_open(&opts, &soft, &err));
	return 0;
}

/* The MRs that a test left, also one that failed: users before members. */
static void dereg_all(void)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;

	while (soft->mrs) {
		for (mr = soft->mrs; mr->users; mr = mr->next)
			;
		OK(ibmr_mr_dereg(mr, &err));
	}
}

int soft_teardown(void **state)
{
	struct ibmr_err err;

	dereg_all();
	OK(ibmr_ctx_close(soft, &err));
	soft = NULL;
	return soft_teardown_bare(state);
}

void soft_word(const char *word, const char *value)
{
	if (soft0_set(word, value))
		fail_msg("soft0 knows no %s=%s", word, value);
}

uint64_t soft_counter(const char *name)
{
	uint64_t value = 0;

	if (soft0_counter(name, &value))
		fail_msg("soft0 has no counter %s", name);
	return value;
}

struct ibmr_mr *soft_reg(const char *name, uint64_t length, uint64_t access)
{
	struct ibmr_mr_spec spec = {
		.name = name, .mem = IBMR_MEM_ANON, .length = length, .access = access
	};
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;

	OK(ibmr_mr_reg(soft, &spec, &mr, &err));
	/* tests count pages: none may bring 511 others with it */
	(void)madvise(bytes_of(mr), length, MADV_NOHUGEPAGE);
	return mr;
}

uint8_t *bytes_of(const struct ibmr_mr *mr)
{
	return info_of(mr).addr;
}

struct ibmr_mr *soft_create(const char *name, uint64_t max_klms)
{
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;

	OK(ibmr_mr_create(soft, name, max_klms, &mr, &err));
	return mr;
}

void soft_fill_list(struct ibmr_mr *mr, uint64_t access, const struct ibmr_klm *klms, uint64_t num)
{
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = access, .num = num, .klms = klms
	};
	struct ibmr_err err;

	OK(ibmr_mr_fill(mr, &l, &err));
}

void soft_fill_repeat(struct ibmr_mr *mr, uint64_t access, const struct ibmr_block *blocks,
		      uint64_t num, uint64_t count)
{
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_REPEAT,
				 .access = access,
				 .count = count,
				 .num = num,
				 .blocks = blocks };
	struct ibmr_err err;

	OK(ibmr_mr_fill(mr, &l, &err));
}

void soft_dereg(struct ibmr_mr *mr)
{
	struct ibmr_err err;

	OK(ibmr_mr_dereg(mr, &err));
}

void ramp(struct ibmr_mr *mr, uint8_t seed)
{
	uint8_t *at = bytes_of(mr);
	uint64_t i, length = info_of(mr).length;

	for (i = 0; i < length; i++)
		at[i] = (uint8_t)(seed + i);
}

void reads_as(struct ibmr_mr *mr, uint64_t offset, const void *want, uint64_t length)
{
	uint8_t *got = malloc(length);
	struct ibmr_err err;

	assert_non_null(got);
	memset(got, 0xdd, length);
	OK(ibmr_mr_read(mr, offset, got, length, 0, &err));
	if (memcmp(got, want, length)) {
		uint64_t i = 0;

		while (got[i] == ((const uint8_t *)want)[i])
			i++;
		fail_msg("byte %llu of '%s' is 0x%02x, not 0x%02x",
			 (unsigned long long)(offset + i), info_of(mr).name, got[i],
			 ((const uint8_t *)want)[i]);
	}
	free(got);
}
