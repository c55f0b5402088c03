# SPDX-License-Identifier: Apache-2.0
"""
The collective operations on arrays. Those whose names end in _async return a
Handle, whose wait() gives what the others return.
"""
import numpy as np

from ._arrays import (NUMPY, array_of, places, same_dtype, says, source,
                      target)
from ._constants import DTYPES, Average, Op
from ._engine import engine
from ._errors import code, integer
from ._library import check, lib
from ._requests import (COMPRESSIONS, KINDS, OPS, fields, op_number, run, submit,
                        submit_group)

_ALLREDUCE = KINDS["allreduce"]


def _members(process_set):
    """Returns the size of a process set, of which this rank must be a member."""
    return check(lib.hvd_process_set_size(integer(process_set, "process_set")))


# ------------------------------------------------------------------ reductions

def _reduction(kind, array, out, dtype, options):
    """Returns a request whose output is as large as its input, and what makes its
    result."""
    view, output, result = places(array, out, dtype)
    return fields(kind, view, output, **options), lambda _: result


def allreduce(array, out=None, *, op=Average, name=None, dtype=None, prescale=1.0,
              postscale=1.0, process_set=0, priority=0, flags=0, compression=None):
    """
    Combines the arrays of all ranks, element by element, and returns the result.

    array: a C-contiguous numpy array, or whatever exports a buffer, has __dlpack__,
        or makes an array (numbers, lists). All ranks give the same shape and dtype.
    out: where the result goes; array itself is allowed. Without it a new numpy array
        is made.
    op: hvd.Average, Sum, Min, Max, Product or Adasum, or such a name in a string.
    name: matches the requests of the ranks, which may then come in any order.
        Requests without a name are matched by their order.
    dtype: "bfloat16" if array holds the bits of bfloat16 as uint16.
    prescale, postscale: what inputs and the result are multiplied by.
    process_set: a ProcessSet, or its id, whose ranks take part; by default all do.
    priority: of requests that are ready, those with larger numbers go first.
    flags: AVERAGE_CONTRIBUTORS: divide by the number of ranks that have not joined.
    compression: "fp16", "bf16", "topk", or a number of register_compressor: how the
        data travels.
    """
    view, output, result = places(array, out, dtype)
    engine.run(_ALLREDUCE, op if type(op) is Op else code(op, OPS, "op"), 0, view, output,
               name, prescale, postscale, process_set, priority, flags,
               0 if compression is None else code(compression, COMPRESSIONS, "compression"),
               0, None, None)
    return result


def allreduce_async(array, out=None, *, op=Average, name=None, dtype=None, prescale=1.0,
                    postscale=1.0, process_set=0, priority=0, flags=0, compression=None):
    """Begins what allreduce does, and returns a Handle."""
    view, output, result = places(array, out, dtype)
    return submit((_ALLREDUCE, op if type(op) is Op else code(op, OPS, "op"), 0, view, output,
                   name, prescale, postscale, process_set, priority, flags,
                   0 if compression is None else code(compression, COMPRESSIONS,
                                                      "compression"),
                   0, None, None), lambda _: result)


def grouped_allreduce_async(arrays, name=None, outs=None, *, op=Average, dtype=None,
                            prescale=1.0, postscale=1.0, process_set=0, priority=0, flags=0,
                            compression=None):
    """Begins what grouped_allreduce does, and returns a Group."""
    arrays = list(arrays)
    outs = [None] * len(arrays) if outs is None else list(outs)
    if len(outs) != len(arrays):
        raise ValueError(f"{len(outs)} outs for {len(arrays)} arrays")
    options = dict(op=op, prescale=prescale, postscale=postscale, process_set=process_set,
                   priority=priority, flags=flags, compression=compression)
    return submit_group(name, [_reduction("allreduce", array, out, dtype, options)
                               for array, out in zip(arrays, outs)])


def grouped_allreduce(arrays, name=None, outs=None, *, op=Average, dtype=None, prescale=1.0,
                      postscale=1.0, process_set=0, priority=0, flags=0, compression=None):
    """
    Does what allreduce does to several arrays, all or nothing, and returns a list.

    name: of the group; outs: an array, or None, for each result. The other options
    are those of allreduce, for all arrays.
    """
    return grouped_allreduce_async(
        arrays, name, outs, op=op, dtype=dtype, prescale=prescale, postscale=postscale,
        process_set=process_set, priority=priority, flags=flags,
        compression=compression).wait()


def reduce_async(array, root=0, out=None, *, op=Average, name=None, dtype=None, prescale=1.0,
                 postscale=1.0, process_set=0, priority=0, flags=0):
    """Begins what reduce does, and returns a Handle."""
    request, build = _reduction("reduce", array, out, dtype, dict(
        op=op, root=root, name=name, prescale=prescale, postscale=postscale,
        process_set=process_set, priority=priority, flags=flags))
    is_root = check(lib.hvd_rank()) == root
    return submit(request, build if is_root else lambda _: None)


def reduce(array, root=0, out=None, *, op=Average, name=None, dtype=None, prescale=1.0,
           postscale=1.0, process_set=0, priority=0, flags=0):
    """
    Does what allreduce does, but only rank root gets the result; others get None.

    root: a rank of the world, also on a process set. The other options are those of
    allreduce.
    """
    return reduce_async(array, root, out, op=op, name=name, dtype=dtype, prescale=prescale,
                        postscale=postscale, process_set=process_set, priority=priority,
                        flags=flags).wait()


def _share(view, out, dtype, process_set):
    """Returns a View of out, which must be this rank's share of the rows of a view."""
    if out is None:
        return None
    found = target(out, "out", dtype)
    n, rank = _members(process_set), check(lib.hvd_process_set_rank(
        integer(process_set, "process_set")))
    rows = view.shape[0] if view.shape else 0
    share = (rows // n + (rank < rows % n), *view.shape[1:])
    if found.shape != share or not same_dtype(found, view):
        raise ValueError(f"out is {says(found)}, this rank's share of the input "
                         f"{says(view)} has the shape {list(share)}")
    return found


def _reducescatter(array, out, dtype, process_set, options):
    view = source(array, "the input", dtype)
    request = fields("reducescatter", view, _share(view, out, dtype, process_set),
                     process_set=process_set, **options)
    return request, array_of if out is None else lambda _: out


def reducescatter_async(array, out=None, *, op=Average, name=None, dtype=None, prescale=1.0,
                        postscale=1.0, process_set=0, priority=0, flags=0):
    """Begins what reducescatter does, and returns a Handle."""
    return submit(*_reducescatter(array, out, dtype, process_set, dict(
        op=op, name=name, prescale=prescale, postscale=postscale, priority=priority,
        flags=flags)))


def reducescatter(array, out=None, *, op=Average, name=None, dtype=None, prescale=1.0,
                  postscale=1.0, process_set=0, priority=0, flags=0):
    """
    Does what allreduce does, and returns this rank's share of the result: of its rows
    as many as of any other rank, in their order; the first ranks get one row more if
    they cannot be divided. The options are those of allreduce.
    """
    return run(*_reducescatter(array, out, dtype, process_set, dict(
        op=op, name=name, prescale=prescale, postscale=postscale, priority=priority,
        flags=flags)))


def grouped_reducescatter_async(arrays, name=None, *, op=Average, dtype=None, prescale=1.0,
                                postscale=1.0, process_set=0, priority=0, flags=0):
    """Begins what grouped_reducescatter does, and returns a Group."""
    options = dict(op=op, prescale=prescale, postscale=postscale, priority=priority,
                   flags=flags)
    return submit_group(name, [_reducescatter(array, None, dtype, process_set, options)
                               for array in arrays])


def grouped_reducescatter(arrays, name=None, *, op=Average, dtype=None, prescale=1.0,
                          postscale=1.0, process_set=0, priority=0, flags=0):
    """Does what reducescatter does to several arrays, all or nothing, and returns a
    list. name is that of the group."""
    return grouped_reducescatter_async(
        arrays, name, op=op, dtype=dtype, prescale=prescale, postscale=postscale,
        process_set=process_set, priority=priority, flags=flags).wait()


# ------------------------------------------------------------------- broadcasts

def _broadcast(array, root, out, dtype, options):
    if out is None:
        view, result = target(array, "the array", dtype), array
    else:
        view, result = target(out, "out", dtype), out
        if check(lib.hvd_rank()) == root:
            given = source(array, "the input", dtype)
            if given.shape != view.shape or not same_dtype(given, view):
                raise ValueError(f"out is {says(view)}, the input {says(given)}")
            np.copyto(_writable(view), _writable(given))
    return fields("broadcast", None, view, root=root, **options), lambda _: result


def _writable(view):
    """Returns an array of the elements of any View."""
    return np.asarray(view).view(NUMPY[view.dtype])


def broadcast_async(array, root=0, out=None, *, name=None, dtype=None, process_set=0,
                    priority=0):
    """Begins what broadcast does, and returns a Handle."""
    return submit(*_broadcast(array, root, out, dtype, dict(
        name=name, process_set=process_set, priority=priority)))


def broadcast(array, root=0, out=None, *, name=None, dtype=None, process_set=0, priority=0):
    """
    Gives all ranks the array of rank root, and returns it.

    array: is overwritten on all other ranks, unless there is out.
    root: a rank of the world, also on a process set.
    out: where the array of root goes, on root too; array is then only read, and only
        on root: elsewhere it may be None.
    name, dtype, process_set, priority: as for allreduce.
    """
    return run(*_broadcast(array, root, out, dtype, dict(
        name=name, process_set=process_set, priority=priority)))


# ---------------------------------------------------------------------- gathers

def _counts(process_set):
    """Returns an array for the rows of each rank, and a View of it."""
    counts = np.zeros(_members(process_set), np.int64)
    return counts, engine.view(counts, True)


def _room(view, out, dtype):
    """Returns a View of out, which holds rows like those of a view, and how many
    elements it has room for."""
    if out is None:
        return None, 0
    found = target(out, "out", dtype)
    if not found.shape or found.shape[1:] != view.shape[1:] or not same_dtype(found, view):
        raise ValueError(f"out is {says(found)}, which holds no rows of the input {says(view)}")
    return found, int(np.prod(found.shape, dtype=np.int64))


def _rows(kind, array, out, dtype, process_set, options, capacity=0):
    """Returns a request whose output has rows of all ranks, and what makes its
    result."""
    view = source(array, "the input", dtype)
    output, room = _room(view, out, dtype)
    if out is not None and room == 0:  # a capacity of 0 is none
        output, out = None, None
    counts, numbers = _counts(process_set)
    request = fields(kind, view, output, process_set=process_set, counts=numbers,
                     capacity=room or capacity, **options)
    if out is not None:
        filled = out if isinstance(out, np.ndarray) else _writable(output)
        return request, lambda _: (filled[:int(counts.sum())], counts)
    return request, lambda made: (None if made is None else array_of(made), counts)


def allgather_async(array, out=None, *, name=None, dtype=None, process_set=0, priority=0):
    """Begins what allgather does, and returns a Handle."""
    return submit(*_rows("allgather", array, out, dtype, process_set,
                         dict(name=name, priority=priority)))


def allgather(array, out=None, *, name=None, dtype=None, process_set=0, priority=0):
    """
    Returns the rows of all ranks, in the order of the ranks, and the number of rows of
    each rank, as two arrays. Ranks may give different numbers of rows.

    out: holds the rows; those that were gathered are returned. It may have room for
        more. Without it a new array is made.
    name, dtype, process_set, priority: as for allreduce.
    """
    return run(*_rows("allgather", array, out, dtype, process_set,
                      dict(name=name, priority=priority)))


def grouped_allgather_async(arrays, name=None, *, dtype=None, process_set=0, priority=0):
    """Begins what grouped_allgather does, and returns a Group."""
    return submit_group(name, [_rows("allgather", array, None, dtype, process_set,
                                     dict(priority=priority)) for array in arrays])


def grouped_allgather(arrays, name=None, *, dtype=None, process_set=0, priority=0):
    """Does what allgather does to several arrays, all or nothing, and returns a list of
    pairs. name is that of the group."""
    return grouped_allgather_async(arrays, name, dtype=dtype, process_set=process_set,
                                   priority=priority).wait()


def gather_async(array, root=0, *, name=None, dtype=None, process_set=0, priority=0):
    """Begins what gather does, and returns a Handle."""
    return submit(*_rows("gather", array, None, dtype, process_set, dict(
        root=root, name=name, priority=priority), capacity=2**62))


def gather(array, root=0, *, name=None, dtype=None, process_set=0, priority=0):
    """Does what allgather does, but only rank root gets the rows: others get None, and
    the number of rows of each rank."""
    return gather_async(array, root, name=name, dtype=dtype, process_set=process_set,
                        priority=priority).wait()


def _splits(splits, process_set):
    if splits is None:
        return None
    rows = [integer(split, "a split", 64) for split in splits]
    members = _members(process_set)
    if len(rows) != members:
        raise ValueError(f"{len(rows)} splits for {members} ranks")
    return engine.view(np.array(rows, np.int64), False)


def _alltoall(array, splits, out, dtype, process_set, options):
    return _rows("alltoall", array, out, dtype, process_set, dict(
        options, splits=_splits(splits, process_set)))


def alltoall_async(array, splits=None, out=None, *, name=None, dtype=None, process_set=0,
                   priority=0):
    """Begins what alltoall does, and returns a Handle."""
    return submit(*_alltoall(array, splits, out, dtype, process_set,
                             dict(name=name, priority=priority)))


def alltoall(array, splits=None, out=None, *, name=None, dtype=None, process_set=0,
             priority=0):
    """
    Sends some rows to each rank. Returns the rows that came, in the order of the ranks,
    and the number of rows from each rank, as two arrays.

    splits: how many rows go to each rank; by default all get equally many.
    out: as for allgather. name, dtype, process_set, priority: as for allreduce.
    """
    return run(*_alltoall(array, splits, out, dtype, process_set,
                          dict(name=name, priority=priority)))


# ----------------------------------------------------------------------- sparse

def _divided(rows, n):
    """Divides as the library does: integers truncate toward zero."""
    if rows.dtype.kind not in "iu":
        return rows / n
    quotient = rows // n
    return quotient + ((rows < 0) & (quotient * n != rows)).astype(rows.dtype)


def row_numbers(indices):
    """Returns a list or an array of integers as int64."""
    indices = np.asarray(indices)
    if indices.size and indices.dtype.kind not in "iu":
        raise TypeError(f"indices are {indices.dtype}, not integers")
    return np.ascontiguousarray(indices, np.int64)


def sparse_allreduce_async(indices, rows, op=Average, name=None, *, dtype=None,
                           process_set=0, priority=0):
    """Begins what sparse_allreduce does, and returns a Group."""
    indices, view = row_numbers(indices), source(rows, "rows", dtype)
    if indices.shape != view.shape[:1]:
        raise ValueError(f"{indices.size} indices for rows {list(view.shape)}")
    number = op_number(op)
    if number not in (Op.AVERAGE, Op.SUM):
        raise ValueError(f"a sparse allreduce sums or averages: op is {op!r}")
    average = number == Op.AVERAGE
    if average and view.dtype in (DTYPES["bfloat16"], DTYPES["bool"]):
        raise TypeError(f"numpy cannot average {dtype or 'bool'}: take op='sum'")
    n, options = _members(process_set), dict(priority=priority)

    def build(results):
        (indices, _), (rows, _) = results
        return indices, _divided(rows, n) if average else rows

    return submit_group(name, [
        _rows("allgather", indices, None, None, process_set, dict(options, name="indices")),
        _rows("allgather", rows, None, dtype, process_set, dict(options, name="rows"))], build)


def sparse_allreduce(indices, rows, op=Average, name=None, *, dtype=None, process_set=0,
                     priority=0):
    """
    Returns the indices and the rows of all ranks; rows of one index are to be added up.

    indices: which row of a table each of rows stands for; whole numbers.
    op: hvd.Average, which divides the rows by the number of ranks, or hvd.Sum.
    name, dtype, process_set, priority: as for allreduce.
    """
    return sparse_allreduce_async(indices, rows, op, name, dtype=dtype,
                                  process_set=process_set, priority=priority).wait()


# ---------------------------------------------------------------- without arrays

def barrier_async(process_set=0):
    """Begins what barrier does, and returns a Handle, whose wait() returns None."""
    return submit(fields("barrier", process_set=process_set), lambda _: None)


def barrier(process_set=0):
    """Returns when every rank has called it."""
    run(fields("barrier", process_set=process_set), lambda _: None)


def join_async(process_set=0):
    """Begins what join does, and returns a Handle. This rank can submit nothing else
    until it has been waited for."""
    last = np.full(1, -1, np.int32)
    return submit(fields("join", output=engine.view(last, True), process_set=process_set),
                  lambda _: int(last[0]))


def join(process_set=0):
    """Says that this rank has no more data. It takes part in the reductions of others
    until all have joined. Returns the rank that joined last."""
    return join_async(process_set).wait()
