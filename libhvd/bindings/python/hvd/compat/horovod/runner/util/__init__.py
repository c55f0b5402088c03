# SPDX-License-Identifier: Apache-2.0
"""What programs use of horovod.runner.util."""
