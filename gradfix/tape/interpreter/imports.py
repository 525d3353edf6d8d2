"""Imports: names of torch by their dotted path, first-party modules parsed and executed on the tape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Package, Scope
from gradfix.tape.domain.paths import ALWAYS
from gradfix.tape.domain.values import External, Undefined
from gradfix.tape.domain.within import Within
from gradfix.tape.effects import table
from gradfix.tape.interpreter.frames import Frame
from gradfix.tape.machine.grad_mode import UNSET

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.program import Program

FOREIGN_LIMIT = 24
"""How many other files are read for one."""
FOREIGN_WORK = 3000
TORCH_STARS = ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.autograd")


def canonical(path: str) -> str:
    """One dotted path for each name of torch.nn, wherever it is imported from."""
    if path.startswith("torch.nn.modules.") and path.count(".") >= 4:
        return "torch.nn." + path.rpartition(".")[2]
    if path.startswith("torch.functional."):
        return "torch." + path.rpartition(".")[2]
    return path


def module_value(names: Names, module: str, level: int) -> Value:
    """What `import module` binds."""
    path = "." * level + module
    if not module.startswith("torch"):
        names.program.import_files.setdefault(path, names.here.file)
    return External(path)


def imported(names: Names, module: str, level: int, name: str) -> Value:
    """What `from module import name` binds."""
    path = "." * level + (f"{module}.{name}" if module else name)
    if level or not module.startswith("torch"):
        names.program.import_files.setdefault(path, names.here.file)
    return External(canonical(path))


def star_names(vm: Interpreter, module: str, level: int) -> Iterator[tuple[str, Value]]:
    """What `from module import *` binds, where the module can be read."""
    if not level and module in TORCH_STARS:
        vm.program.stars.append(module)
        return
    package = _package(vm, vm.here.file, module, level)
    if package is not None:
        for name, value in package.scope.names.items():
            if not name.startswith("_"):
                yield name, value


STARRED = frozenset({"nn", "optim", "autograd", "tensor", "no_grad", "Tensor"})
STARRED_NN = frozenset({"Module", "Parameter", "functional", "Sequential", "ModuleList", "ModuleDict"})


def from_star(program: Program, name: str) -> Value | None:
    """A name that `from torch... import *` binds."""
    for module in program.stars:
        if module == "torch" and (table.function(name) or name in STARRED):
            return External(f"torch.{name}")
        if module == "torch.nn" and (table.module(name) is not None or name in STARRED_NN):
            return External(f"torch.nn.{name}")
        if module == "torch.nn.functional" and table.functional(name):
            return External(f"torch.nn.functional.{name}")
        if module == "torch.optim" and name[:1].isupper():
            return External(f"torch.optim.{name}")
        if module == "torch.autograd" and name == "Variable":
            return External("torch.autograd.Variable")
    return None


def first_party(vm: Interpreter, path: str) -> Value | None:
    """The value of a dotted name of the user's own project, if its file can be read."""
    if vm.program.resolve is None:
        return None
    if path in vm.program.resolved:
        return vm.program.resolved[path]
    vm.program.resolved[path] = None
    prefix = path
    rest: list[str] = []
    while prefix.strip("."):
        importer = vm.program.import_files.get(prefix)
        level = len(prefix) - len(prefix.lstrip("."))
        if importer is not None or rest:
            package = _package(
                vm,
                importer or vm.program.import_files.get(path, vm.reports.findings.main),
                prefix.lstrip("."),
                level,
            )
            if package is not None:
                vm.program.resolved[path] = _member(package, rest)
                return vm.program.resolved[path]
        head, _, last = prefix.rpartition(".")
        rest.insert(0, last)
        if importer is not None:
            vm.program.import_files.setdefault(head or "." * level, importer)
        prefix = head
    return None


def _member(package: Package, names: list[str]) -> Value | None:
    value: Value = package
    for name in names:
        if not isinstance(value, Package):
            return None
        found = value.scope.names.get(name)
        if found is None or isinstance(found, Undefined):
            return None
        value = found
    return value


def _package(vm: Interpreter, importer: str, module: str, level: int) -> Package | None:
    if vm.program.resolve is None or len(vm.program.packages) >= FOREIGN_LIMIT:
        return None
    source = vm.program.resolve(importer, module, level)
    if source is None:
        return None
    if source.path not in vm.program.packages:
        package = Package(Scope({}, None, None))
        vm.program.packages[source.path] = package
        _execute(vm, source.path, source.tree, source.content, package)
    return vm.program.packages[source.path]


def _execute(vm: Interpreter, path: str, tree: ast.Module, content: bytes, package: Package) -> None:
    """Run another file: what it defines stays, whichever path asked for it first."""
    vm.reports.findings.sources[path] = content.splitlines()
    vm.budget.work += FOREIGN_WORK
    frame = Frame(package.scope, None, ALWAYS)
    with (
        vm.names.within(frame=frame),
        vm.here.within(file=path, path=ALWAYS),
        vm.running.within(later_turn=False),
        vm.reports.within(repeat=vm.reports.repeat),
        vm.grad_mode.within(grad=True, mode=UNSET, inference=False),
        Within(vm.trail, vm.trail, {"frames": []}),
    ):
        vm.run([statement for statement in tree.body if isinstance(statement, DEFINING)])


DEFINING = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.If,
    ast.Try,
)
"""Statements of another file that define what it exports; the rest is its own business."""
