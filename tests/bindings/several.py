# SPDX-License-Identifier: Apache-2.0
"""Runs every_NAME.py of this folder in one process, one after another, for each NAME of
PROGRAMS."""
import os
import runpy

for name in os.environ["PROGRAMS"].split():
    runpy.run_path(os.path.join(os.path.dirname(__file__), f"every_{name}.py"), run_name="__main__")
