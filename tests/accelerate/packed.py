# SPDX-License-Identifier: Apache-2.0
"""Large blocks that lie in order on all ranks, and, on a duplicate of the
communicator, with gaps on rank 0 alone, which calls MPI_Alltoall with a vector."""
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
BLOCK = 8192
pairs = MPI.DOUBLE.Create_vector(BLOCK // 2, 2, 4).Create_resized(0, 16 * BLOCK)
pairs.Commit()
wrong = 0

for comm in world, world.Dup():
    for turn in range(3):
        sent = numpy.arange(BLOCK * size, dtype=float) + 1e6 * rank + turn
        got = numpy.zeros(BLOCK * size)
        if rank == 0 and comm != world:
            gapped = numpy.zeros((BLOCK * size // 2, 4))
            gapped[:, :2] = sent.reshape(-1, 2)
            comm.Alltoall([gapped, 1, pairs], [got, MPI.DOUBLE])
        else:
            comm.Alltoall([sent, MPI.DOUBLE], [got, MPI.DOUBLE])
        block = numpy.arange(BLOCK) + BLOCK * rank + turn
        wrong += int((got.reshape(size, BLOCK) !=
                      block + 1e6 * numpy.arange(size)[:, None]).sum())
print(wrong, "wrong")
