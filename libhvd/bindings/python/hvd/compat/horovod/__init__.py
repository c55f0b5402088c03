# SPDX-License-Identifier: Apache-2.0
"""
The module names of Horovod, for programs that say "import horovod.torch as hvd". They
lead to hvd.torch. mpi-launch.sh --horovod and horovodrun put the folder of this package
into PYTHONPATH; nothing else does, so that a real Horovod is not hidden unasked.

horovod.torch, horovod.common and what programs use of horovod.runner.util are there;
other frameworks, Spark and Ray are not.
"""
#: The version whose names and behaviour these are.
__version__ = "0.28.1"
