# SPDX-License-Identifier: Apache-2.0
"""The numbers of hvd.h, by name."""
import enum


class Op(enum.IntEnum):
    """How a reduction combines what the ranks give (HVD_AVERAGE and so on)."""
    AVERAGE = 0
    SUM = 1
    ADASUM = 2
    MIN = 3
    MAX = 4
    PRODUCT = 5


# Type checkers read these, too, and know no tuple that is made of an enumeration.
Average, Sum, Adasum = Op.AVERAGE, Op.SUM, Op.ADASUM
Min, Max, Product = Op.MIN, Op.MAX, Op.PRODUCT


class Status(enum.IntEnum):
    """What a call returns: 0, or why it failed (HVD_ERR_ARGUMENT and so on)."""
    OK = 0
    ARGUMENT = -1
    UNSUPPORTED = -2
    DUPLICATE = -3
    MISMATCH = -4
    PEER = -5
    HANDLE = -6
    MEMORY = -7
    JOINED = -8
    PROCESS_SET = -9
    INCONSISTENT = -10
    FILE = -11
    NOT_INITIALIZED = -20
    SHUTDOWN = -21
    CONFIG = -22
    LAUNCH = -23
    MPI = -24
    INTERNAL = -25
    LOST = -26
    STALLED = -27


OPS = {op.name.lower(): int(op) for op in Op}
COMPRESSIONS = {"none": 0, "fp16": 1, "bf16": 2, "topk": 3}
KINDS = {"allreduce": 0, "allgather": 1, "broadcast": 2, "join": 3, "alltoall": 5,
         "barrier": 6, "reducescatter": 7, "gather": 8, "reduce": 9}
DTYPES = {"uint8": 0, "int8": 1, "uint16": 2, "int16": 3, "int32": 4, "int64": 5,
          "float16": 6, "float32": 7, "float64": 8, "bool": 9, "bfloat16": 10}
OPTIMIZERS = {"sgd": 0, "momentum": 1, "adam": 2, "none": 3, "nesterov": 4, "adamw": 5,
              "lamb": 6, "lion": 7, "rmsprop": 8, "adagrad": 9, "adadelta": 10, "lars": 11}
AVERAGE_CONTRIBUTORS = 1
MAX_DIMS = 16
