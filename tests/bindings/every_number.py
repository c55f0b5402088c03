# SPDX-License-Identifier: Apache-2.0
"""The numbers and structs of the package hvd are those of the headers."""
import ctypes as C
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import hvd
from hvd import _constants, _library

API = os.path.join(os.path.dirname(__file__), "../tools/hvd-api.json")
with open(API, encoding="utf-8") as file:
    api = json.load(file)

of_type = {}
for constant in api["constants"]:
    of_type.setdefault(constant["type"], {})[constant["name"]] = constant["value"]


def same(table, ctype, prefix=""):
    want = {name[len("HVD_" + prefix):].lower(): value for name, value in of_type[ctype].items()
            if not name.startswith("HVD_NUM_")}
    assert table == want, (table, want)


same(_constants.DTYPES, "hvd_dtype")
same(hvd.OPS, "hvd_op")
statuses = {c["name"].replace("HVD_ERR_", "").replace("HVD_OK", "OK"): c["value"]
            for c in api["constants"] if c["name"].startswith(("HVD_ERR_", "HVD_OK"))}
assert statuses == {status.name: status for status in hvd.Status}, statuses
same(_constants.KINDS, "hvd_kind")
of_type["hvd_compression"].pop("HVD_COMPRESSION_REGISTERED")
same(hvd.COMPRESSIONS, "hvd_compression", "COMPRESSION_")
for name, value in hvd.OPTIMIZERS.items():
    assert _library.lib.hvd_optimizer_from_name(name.encode()) == value, name
assert len(hvd.OPTIMIZERS) == len(of_type["hvd_optimizer"]) - 1
constants = {c["name"]: c["value"] for c in api["constants"]}
assert constants["HVD_AVERAGE_CONTRIBUTORS"] == hvd.AVERAGE_CONTRIBUTORS

for struct in api["structs"]:
    name = struct["name"][len("hvd_"):].title().replace("_", "")
    ours = getattr(_library, name, None)
    if ours is None:
        continue
    assert C.sizeof(ours) == struct["size"], struct["name"]
    want = {field["name"]: field["offset"] for field in struct["fields"]}
    got = {field[0]: getattr(ours, field[0]).offset for field in ours._fields_}
    assert got == want, (struct["name"], got, want)
os.write(sys.stdout.fileno(), b"every number\n")
