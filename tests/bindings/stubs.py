# SPDX-License-Identifier: Apache-2.0
"""
The type stubs of the packages name what the packages have, and the signatures agree.

    stubs.py FOLDER_OF_THE_PACKAGES
"""
import ast
import enum
import importlib
import inspect
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
PACKAGES = pathlib.Path(sys.argv[1])
MODULES = {".".join(path.relative_to(PACKAGES).with_suffix("").parts).removesuffix(".__init__"):
           path for path in PACKAGES.glob("**/*.pyi")}
PACKAGE_NAMES = ("hvd", "ipu")
KINDS = inspect.Parameter
faults = []


def parameters(node):
    """Returns name, kind, and whether there is a default, of the parameters of a stub's
    function."""
    given = node.args
    plain = given.posonlyargs + given.args
    first = len(plain) - len(given.defaults)
    found = [(each.arg, KINDS.POSITIONAL_ONLY if i < len(given.posonlyargs) else
              KINDS.POSITIONAL_OR_KEYWORD, i >= first) for i, each in enumerate(plain)]
    if given.vararg:
        found.append((given.vararg.arg, KINDS.VAR_POSITIONAL, False))
    found += [(each.arg, KINDS.KEYWORD_ONLY, default is not None)
              for each, default in zip(given.kwonlyargs, given.kw_defaults)]
    if given.kwarg:
        found.append((given.kwarg.arg, KINDS.VAR_KEYWORD, False))
    return found


def check_function(where, node, function):
    """Compares a function of a stub with that of the package. Functions in C have no
    signature."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    ours = [(each.name, each.kind, each.default is not each.empty)
            for each in signature.parameters.values() if not each.name.startswith("_")]
    if parameters(node) != ours:
        faults.append(f"{where}: the stub has {ast.unparse(node.args)}, the package {signature}")
    untyped = [each.arg for each in ast.walk(node.args)
               if isinstance(each, ast.arg) and each.arg not in ("self", "cls")
               and each.annotation is None]
    if untyped or node.returns is None:
        faults.append(f"{where}: no type of {', '.join(untyped) or 'what it returns'}")


def names_of(body, folder=None):
    """Returns what a stub, or a module, defines, by name; of a function with several
    signatures the first one. A stub that imports all names of another one is in a folder."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
        elif isinstance(node, ast.Assign):
            targets = getattr(node.targets[0], "elts", node.targets)
            found.update((each.id, node) for each in targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            found.update(names_of_stub(folder / f"{node.module}.pyi"))
        elif isinstance(node, ast.ImportFrom):
            found.update((each.asname, node) for each in node.names if each.asname)
    return found


def names_of_stub(path):
    return names_of(ast.parse(path.read_text()).body, path.parent)


def names_of_module(module):
    """Returns the public names of a module: those that it lists, those that a package has,
    or those that a module defines."""
    if hasattr(module, "__all__"):
        return module.__all__
    names = vars(module)
    if not hasattr(module, "__path__"):
        defined = names_of(ast.parse(inspect.getsource(module)).body)
        names = [each for each, node in defined.items() if not isinstance(node, ast.ImportFrom)]
    return [each for each in names if not each.startswith("_")]


def is_public(name):
    return not name.startswith("_") or name in ("__init__", "__call__", "__enter__")


def is_typed_elsewhere(cls, name):
    """Returns whether a class of another package, from which cls derives, has the name, and
    so its type."""
    return name != "__init__" and any(
        hasattr(base, name) for base in cls.__mro__[1:]
        if base.__module__.partition(".")[0] not in PACKAGE_NAMES)


def check_class(where, node, cls):
    stub, ours = names_of(node.body), vars(cls)
    for name, member in ours.items():
        if not is_public(name) or isinstance(member, type(Slots.slot)) or \
                name == "kind" or issubclass(cls, tuple):
            continue
        if name not in stub:
            if not is_typed_elsewhere(cls, name):
                faults.append(f"{where}.{name} is not in the stub")
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            check_function(f"{where}.{name}", stub[name], getattr(member, "__func__", member))
    for name, member in stub.items():
        # By __getattr__ a stub says that attributes are a program's own.
        if not isinstance(member, ast.AnnAssign) and not hasattr(cls, name) and \
                name != "__getattr__":
            faults.append(f"{where}.{name} is only in the stub")
    if issubclass(cls, enum.Enum):
        if {name: ast.literal_eval(member.value) for name, member in stub.items()} != \
                {each.name: each.value for each in cls}:
            faults.append(f"{where}: other members or values")
    if [ast.unparse(base).partition("[")[0].split(".")[-1] for base in node.bases] != \
            [base.__name__ for base in cls.__bases__ if base is not object] and \
            not issubclass(cls, tuple):
        faults.append(f"{where}: other bases")


class Slots:
    __slots__ = ("slot",)


def check_module(name, path):
    module = importlib.import_module(name)
    stub, public = names_of_stub(path), names_of_module(module)
    for each in public:
        if each not in stub:
            faults.append(f"{name}.{each} is not in {path}")
    for each, node in stub.items():
        if each.startswith("_") and each != "__version__":
            continue
        if not hasattr(module, each):
            faults.append(f"{name}.{each} is only in {path}")
        elif isinstance(node, ast.FunctionDef):
            check_function(f"{name}.{each}", node, getattr(module, each))
        elif isinstance(node, ast.ClassDef):
            check_class(f"{name}.{each}", node, getattr(module, each))
    return len(public)


count = sum(check_module(*each) for each in MODULES.items())
for package in PACKAGE_NAMES:
    assert (PACKAGES / package / "py.typed").exists(), package
if faults:
    sys.exit("\n".join(faults))
print(f"{count} names have types")
