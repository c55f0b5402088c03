# SPDX-License-Identifier: Apache-2.0
"""The numbers and structs of hvd.py are those of the headers."""
import ctypes as C
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import hvd

API = os.path.join(sys.argv[1], "../../tests/tools/hvd-api.json")
with open(API, encoding="utf-8") as file:
    api = json.load(file)

of_type = {}
for constant in api["constants"]:
    of_type.setdefault(constant["type"], {})[constant["name"]] = constant["value"]


def same(table, ctype, prefix=""):
    want = {name[len("HVD_" + prefix):].lower(): value for name, value in of_type[ctype].items()
            if not name.startswith("HVD_NUM_")}
    assert table == want, (table, want)


same(hvd._DTYPES, "hvd_dtype")
same(hvd.OPS, "hvd_op")
same(hvd._KINDS, "hvd_kind")
of_type["hvd_compression"].pop("HVD_COMPRESSION_REGISTERED")
same(hvd.COMPRESSIONS, "hvd_compression", "COMPRESSION_")
for name, value in hvd.OPTIMIZERS.items():
    assert hvd._lib.hvd_optimizer_from_name(name.encode()) == value, name
assert len(hvd.OPTIMIZERS) == len(of_type["hvd_optimizer"]) - 1
constants = {c["name"]: c["value"] for c in api["constants"]}
assert constants["HVD_AVERAGE_CONTRIBUTORS"] == hvd.AVERAGE_CONTRIBUTORS

for struct in api["structs"]:
    ours = getattr(hvd, "_" + struct["name"][len("hvd_"):].title(), None)
    if ours is None:
        continue
    assert C.sizeof(ours) == struct["size"], struct["name"]
    want = {field["name"]: field["offset"] for field in struct["fields"]}
    got = {field[0]: getattr(ours, field[0]).offset for field in ours._fields_}
    assert got == want, (struct["name"], got, want)
os.write(sys.stdout.fileno(), b"every number\n")
