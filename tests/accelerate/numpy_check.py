# SPDX-License-Identifier: Apache-2.0
"""mpi4py's collectives, compared with what numpy computes from the ranks."""
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
n, rank = comm.size, comm.rank
wrong = 0


def values(count, dtype, of):
    """Small numbers that rank `of` contributes."""
    return ((numpy.arange(count) * 7 + of * 3) % 5 + 1).astype(dtype)


def expect(got, wanted, what):
    global wrong
    if not numpy.array_equal(got, wanted):
        wrong += 1
        print(f"rank {rank}: {what} differs", flush=True)


OPS = ((MPI.SUM, numpy.add), (MPI.PROD, numpy.multiply),
       (MPI.MIN, numpy.minimum), (MPI.MAX, numpy.maximum))
TYPES = "bBhHiIlLfdFD"
for code in TYPES:
    for count in 1, 6 * n, 1200 * n:
        every = [values(count, code, i) for i in range(n)]
        for op, ufunc in OPS[:1] if code in "FD" else OPS:
            what = f"{code} {count} {ufunc.__name__}"
            wanted = ufunc.reduce(every, dtype=code)
            out = numpy.empty(count, code)
            comm.Allreduce(every[rank], out, op)
            expect(out, wanted, "Allreduce " + what)
            out = every[rank].copy()
            comm.Iallreduce(MPI.IN_PLACE, out, op).Wait()
            expect(out, wanted, "Iallreduce " + what)
            out = numpy.empty(count, code)
            comm.Reduce(every[rank], out, op, root=n - 1)
            if rank == n - 1:
                expect(out, wanted, "Reduce " + what)
            if count % n == 0:
                part = numpy.empty(count // n, code)
                comm.Reduce_scatter_block(every[rank], part, op)
                expect(part, wanted[rank * len(part):][:len(part)],
                       "Reduce_scatter_block " + what)
        out = every[rank].copy()
        comm.Bcast(out, root=0)
        expect(out, every[0], f"Bcast {code} {count}")
        out = numpy.empty((n, count), code)
        comm.Allgather(every[rank], out)
        expect(out, numpy.stack(every), f"Allgather {code} {count}")
        if count % n == 0:
            out = numpy.empty(count, code)
            comm.Alltoall(every[rank], out)
            block = count // n
            expect(out, numpy.concatenate(
                [e[rank * block:][:block] for e in every]),
                f"Alltoall {code} {count}")
wrong = comm.allreduce(wrong)
if rank == 0:
    print(wrong, "wrong")
raise SystemExit(wrong != 0)
