/* SPDX-License-Identifier: BSD-2-Clause */
/* Access rights: their words, and the rules that hold on every device. */
#include "private.h"

#include <stdio.h>
#include <string.h>

static const struct {
	uint64_t bit;
	const char *name;
} words[] = {
	{ IBMR_ACCESS_LOCAL_WRITE, "local_write" },
	{ IBMR_ACCESS_REMOTE_WRITE, "remote_write" },
	{ IBMR_ACCESS_REMOTE_READ, "remote_read" },
	{ IBMR_ACCESS_REMOTE_ATOMIC, "remote_atomic" },
	{ IBMR_ACCESS_MW_BIND, "mw_bind" },
	{ IBMR_ACCESS_ON_DEMAND, "on_demand" },
	{ IBMR_ACCESS_HUGETLB, "hugetlb" },
	{ IBMR_ACCESS_RELAXED_ORDERING, "relaxed_ordering" },
};
#define NUM_WORDS (sizeof(words) / sizeof(words[0]))

/* The low bits are passed to verbs as they are. */
_Static_assert((int)IBMR_ACCESS_LOCAL_WRITE == IBV_ACCESS_LOCAL_WRITE &&
		       (int)IBMR_ACCESS_REMOTE_WRITE == IBV_ACCESS_REMOTE_WRITE &&
		       (int)IBMR_ACCESS_REMOTE_READ == IBV_ACCESS_REMOTE_READ &&
		       (int)IBMR_ACCESS_REMOTE_ATOMIC == IBV_ACCESS_REMOTE_ATOMIC &&
		       (int)IBMR_ACCESS_MW_BIND == IBV_ACCESS_MW_BIND &&
		       (int)IBMR_ACCESS_ON_DEMAND == IBV_ACCESS_ON_DEMAND &&
		       (int)IBMR_ACCESS_HUGETLB == IBV_ACCESS_HUGETLB &&
		       (int)IBMR_ACCESS_RELAXED_ORDERING == IBV_ACCESS_RELAXED_ORDERING,
	       "access bits have verbs' values");

uint64_t ibmr_access_from_name(const char *name)
{
	size_t i;

	for (i = 0; name && i < NUM_WORDS; i++)
		if (!strcmp(name, words[i].name))
			return words[i].bit;
	return 0;
}

const char *ibmr_access_name(uint64_t bit)
{
	size_t i;

	for (i = 0; i < NUM_WORDS; i++)
		if (bit == words[i].bit)
			return words[i].name;
	return NULL;
}

const char *ibmri_access_text(uint64_t access, char *buf, size_t size)
{
	size_t used = 0, i;
	int n;

	snprintf(buf, size, "no rights");
	for (i = 0; i < NUM_WORDS && used < size; i++) {
		if (!(access & words[i].bit))
			continue;
		access &= ~words[i].bit;
		n = snprintf(buf + used, size - used, "%s%s", used ? ", " : "", words[i].name);
		used += n > 0 ? (size_t)n : 0;
	}
	if (access && used < size)
		snprintf(buf + used, size - used, "%s0x%llx", used ? ", " : "",
			 (unsigned long long)access);
	return buf;
}

int ibmri_access_check(uint64_t access, uint64_t allowed, const char *what, const char *origin,
		       struct ibmr_err *err)
{
	const uint64_t writers = IBMR_ACCESS_REMOTE_WRITE | IBMR_ACCESS_REMOTE_ATOMIC;
	uint64_t known = 0;
	char text[160], all[160];
	size_t i;
	int ret;

	for (i = 0; i < NUM_WORDS; i++)
		known |= words[i].bit;
	if (access & ~known)
		return ibmri_refuse(
			err, IBMR_E_ARGUMENT, origin, "access 0x%llx has unknown bits 0x%llx",
			(unsigned long long)access, (unsigned long long)(access & ~known));
	if (access & ~allowed) {
		ret = ibmri_refuse(err, IBMR_E_ACCESS, origin, "%s cannot carry %s; it carries %s",
				   what, ibmri_access_text(access & ~allowed, text, sizeof(text)),
				   ibmri_access_text(allowed, all, sizeof(all)));
		ibmri_err_cause(err, "flag_not_carried");
		return ret;
	}
	if (access & writers && !(access & IBMR_ACCESS_LOCAL_WRITE)) {
		ret = ibmri_refuse(err, IBMR_E_ACCESS, origin,
				   "%s needs local_write, which is not given",
				   ibmri_access_text(access & writers, text, sizeof(text)));
		ibmri_err_cause(err, "needs_local_write");
		ibmri_err_hint(err, "add local_write");
		return ret;
	}
	return 0;
}
