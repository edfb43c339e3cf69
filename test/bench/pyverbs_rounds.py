#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The work of the benchmark's plan in pyverbs, as one would write it by hand: ROUNDS times create an
indirect key, fill it with a list of two entries, write and read through it, destroy it.

usage: pyverbs_rounds.py DEVICE ROUNDS
"""

import sys

import pyverbs.enums as e
import pyverbs.providers.mlx5.mlx5_enums as dve
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.providers.mlx5.mlx5dv import Mlx5Context, Mlx5DVContextAttr, Mlx5DVQPInitAttr, Mlx5QP
from pyverbs.providers.mlx5.mlx5dv_mkey import Mlx5Mkey
from pyverbs.qp import QPAttr, QPCap, QPInitAttrEx
from pyverbs.wr import SGE, SendWR

PORT = 1
LENGTH = 32
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ)


def wait(cq):
    while True:
        number, wcs = cq.poll(1)
        if number:
            if wcs[0].status != e.IBV_WC_SUCCESS:
                sys.exit("completion status %d" % wcs[0].status)
            return


def queue_pair(ctx, pd, cq):
    init = QPInitAttrEx(
        cap=QPCap(max_send_wr=16, max_recv_wr=1, max_inline_data=512), pd=pd, scq=cq, rcq=cq,
        qp_type=e.IBV_QPT_RC,
        send_ops_flags=e.IBV_QP_EX_WITH_RDMA_WRITE | e.IBV_QP_EX_WITH_RDMA_READ,
        comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
    )
    extra = Mlx5DVQPInitAttr(
        comp_mask=dve.MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS
        | dve.MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
        create_flags=dve.MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
        send_ops_flags=dve.MLX5DV_QP_EX_WITH_MR_LIST,
    )
    qp = Mlx5QP(ctx, init, extra)
    port = ctx.query_port(PORT)
    attr = QPAttr(port_num=PORT)
    attr.qp_access_flags = ACCESS
    attr.dest_qp_num = qp.qp_num
    attr.path_mtu = port.active_mtu
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer = 12
    attr.timeout = 14
    attr.retry_cnt = attr.rnr_retry = 7
    if port.link_layer == e.IBV_LINK_LAYER_ETHERNET:
        route = GlobalRoute(dgid=ctx.query_gid(PORT, 0), sgid_index=0)
        attr.ah_attr = AHAttr(port_num=PORT, is_global=1, gr=route)
    else:
        attr.ah_attr = AHAttr(port_num=PORT, is_global=0, dlid=port.lid)
    qp.to_rts(attr)
    return qp


def one_round(pd, cq, qp, pool, buf, number):
    data = bytes((number + k) % 256 for k in range(LENGTH))
    mkey = Mlx5Mkey(pd, dve.MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 4)

    qp.wr_start()
    qp.wr_flags = e.IBV_SEND_SIGNALED | e.IBV_SEND_INLINE
    qp.wr_mr_list(mkey, ACCESS, sge_list=[SGE(pool.buf + 4096, LENGTH // 2, pool.lkey),
                                          SGE(pool.buf + 64, LENGTH // 2, pool.lkey)])
    qp.wr_complete()
    wait(cq)

    buf.write(data, LENGTH)
    for opcode in (e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_READ):
        wr = SendWR(opcode=opcode, num_sge=1, sg=[SGE(buf.buf, LENGTH, buf.lkey)],
                    send_flags=e.IBV_SEND_SIGNALED)
        wr.set_wr_rdma(mkey.rkey, 0)
        qp.post_send(wr)
        wait(cq)
        if opcode == e.IBV_WR_RDMA_WRITE:
            buf.write(bytes(LENGTH), LENGTH)
    if buf.read(LENGTH, 0) != data:
        sys.exit("round %d: wrong bytes" % number)
    mkey.close()


def main():
    device, rounds = sys.argv[1], int(sys.argv[2])
    ctx = Mlx5Context(Mlx5DVContextAttr(), name=device)
    pd = PD(ctx)
    cq = CQ(ctx, 16)
    qp = queue_pair(ctx, pd, cq)
    pool = MR(pd, 65536, ACCESS)
    buf = MR(pd, 4096, ACCESS)
    for number in range(rounds):
        one_round(pd, cq, qp, pool, buf, number)


main()
