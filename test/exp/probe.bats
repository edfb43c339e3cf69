#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# What configure scripts ask of the old library's headers: names and members, each by a program that
# compiles or not, as autoconf has it, with pkg-config's flags and nothing else.
# In one device mode: it compiles, and runs nothing.

setup() {
	flags=$(PKG_CONFIG_PATH=$IBMR_BUILD/meson-uninstalled pkg-config --cflags libibmr-exp)
	cd "$BATS_TEST_TMPDIR" || exit
}

compiles() { # HEADER COMPILER...: the body of main() is on standard input
	local header=$1
	shift
	{
		printf '#include <infiniband/%s>\nint main(void)\n{\n' "$header"
		cat
		printf 'return 0;\n}\n'
	} >probe.c
	# shellcheck disable=SC2086
	"$@" $flags -fsyntax-only probe.c
}

declared() { # NAME...: AC_CHECK_DECLS
	local name
	for name in "$@"; do
		printf '#ifndef %s\n(void)%s;\n#endif\n' "$name" "$name"
	done
}

members() { # STRUCT.MEMBER...: AC_CHECK_MEMBERS
	local name
	for name in "$@"; do
		printf '{ static struct %s aggr; if (sizeof(aggr.%s)) return 0; }\n' "${name%%.*}" "${name#*.}"
	done
}

asked_for() {
	declared IBV_EXP_ACCESS_ALLOCATE_MR IBV_EXP_ACCESS_ON_DEMAND IBV_EXP_DEVICE_MR_ALLOCATE \
		IBV_EXP_WR_NOP IBV_EXP_DEVICE_DC_TRANSPORT IBV_EXP_ATOMIC_HCA_REPLY_BE \
		IBV_EXP_PREFETCH_WRITE_ACCESS IBV_EXP_DEVICE_ATTR_PCI_ATOMIC_CAPS \
		IBV_EXP_WR_EXT_MASKED_ATOMIC_CMP_AND_SWP IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG \
		IBV_EXP_SEND_EXT_ATOMIC_INLINE IBV_EXP_DEVICE_ATTR_RESERVED_2 IBV_EXP_MR_INDIRECT_KLMS \
		IBV_EXP_QP_CREATE_UMR IBV_EXP_MR_FIXED_BUFFER_SIZE IBV_EXP_ODP_SUPPORT_IMPLICIT \
		IBV_EXP_IMPLICIT_MR_SIZE IBV_EXP_DEVICE_UMR IBV_EXP_WC_UMR IBV_EXP_WR_UMR_FILL \
		ibv_exp_reg_mr ibv_exp_create_qp ibv_exp_prefetch_mr ibv_exp_query_device \
		ibv_exp_post_send ibv_exp_poll_cq ibv_exp_create_mr ibv_exp_query_mkey \
		ibv_exp_alloc_mkey_list_memory ibv_exp_get_provider_func ibv_exp_alloc_dm ibv_dereg_mr
	members ibv_exp_device_attr.exp_device_cap_flags ibv_exp_device_attr.odp_caps \
		ibv_exp_device_attr.odp_caps.per_transport_caps.dc_odp_caps \
		ibv_exp_device_attr.odp_mr_max_size ibv_exp_device_attr.umr_fixed_size_caps \
		ibv_exp_qp_init_attr.max_inl_recv ibv_exp_qp_init_attr.max_inl_send_klms \
		ibv_exp_masked_atomic_params.masked_log_atomic_arg_sizes_network_endianness \
		ibv_exp_send_wr.ext_op.umr.mem_list.rb.repeat_count ibv_exp_reg_mr_in.create_flags
}

@test "everything that programs ask for is found, by either header, in C and C++" {
	for header in verbs.h verbs_exp.h; do
		asked_for | compiles "$header" gcc
		asked_for | compiles "$header" clang -x c++
		asked_for | compiles "$header" clang
	done
}

@test "what is not offered is not found, and no macro stands for it" {
	for name in ibv_exp_create_srq ibv_exp_setenv ibv_exp_query_gid_attr ibv_exp_create_dct \
		IBV_EXP_CQ_MODERATION IBV_EXP_CQ_IGNORE_OVERRUN IBV_EXP_QPT_DC_INI; do
		run compiles verbs_exp.h gcc < <(declared "$name")
		[ "$status" -ne 0 ]
	done
	run compiles verbs_exp.h gcc < <(members ibv_exp_qp_init_attr.umr_caps)
	[ "$status" -ne 0 ]
	# the interface before its rework
	run compiles verbs_exp.h gcc < <(declared IBV_MR_NONCONTIG_MEM)
	[ "$status" -ne 0 ]
}

@test "the headers in both orders, and the ordinary calls by their names" {
	printf 'struct ibv_mr *m = 0; struct ibv_cq *c = 0; struct ibv_wc w;
		if (m) return ibv_dereg_mr(m) + ibv_poll_cq(c, 1, &w);\n' >body
	for first in verbs.h verbs_exp.h; do
		other=$([ "$first" = verbs.h ] && echo verbs_exp.h || echo verbs.h)
		{
			printf '#include <infiniband/%s>\n#include <infiniband/%s>\nint main(void)\n{\n' \
				"$first" "$other"
			cat body
			printf 'return 0;\n}\n'
		} >both.c
		# shellcheck disable=SC2086
		gcc $flags -Wall -Wextra -Werror -c -o both.o both.c
		nm both.o | grep -q 'U ibmr_exp_dereg_mr'
		nm both.o | grep -q 'U ibmr_exp_poll_cq'
		[ "$(nm both.o | grep -c 'U ibv_dereg_mr')" = 0 ]
		# shellcheck disable=SC2086
		gcc $flags -DIBMR_EXP_KEEP_VERBS -Wall -Wextra -Werror -c -o both.o both.c
		nm both.o | grep -q 'U ibv_dereg_mr'
	done
}
