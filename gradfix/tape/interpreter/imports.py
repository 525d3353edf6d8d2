"""Imports: names of torch by their dotted path, first-party modules parsed and executed on the tape."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Package, Scope
from gradfix.tape.domain.paths import ALWAYS
from gradfix.tape.domain.unread import Stated, Unread, filled_later, stated
from gradfix.tape.domain.values import External, Map, Seq, Undefined
from gradfix.tape.domain.within import Within
from gradfix.tape.effects import table
from gradfix.tape.effects.libraries import SAME_AS
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
NOTHING_STATED = Stated(ast.Module([], []))
TORCH_STARS = ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.autograd")
FILES = {
    "torch": ("functional",),
    "torch.amp": ("autocast_mode", "grad_scaler"),
    "torch.autograd": ("function", "grad_mode", "variable"),
    "torch.cuda.amp": ("autocast_mode", "grad_scaler"),
    "torch.nn": ("parameter",),
    "torch.nn.parallel": ("data_parallel", "distributed"),
    "torch.nn.utils": ("clip_grad", "spectral_norm", "weight_norm"),
}
"""The files in which the packages of torch define what they hand out under a name of their own."""
HANDED_OUT = {f"{package}.{file}": package for package, files in FILES.items() for file in files}


def canonical(path: str) -> str:
    """One dotted path for each name of torch, wherever it is taken from."""
    if not path.startswith("torch."):
        return SAME_AS.get(path, path)
    file, _, name = path.rpartition(".")
    if (package := HANDED_OUT.get(file)) is not None:
        return f"{package}.{name}"
    return f"torch.nn.{name}" if file.startswith("torch.nn.modules.") else path


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


def _of_torch(module: str, level: int) -> bool:
    return not level and module in TORCH_STARS


def star_import(vm: Interpreter, module: str, level: int) -> None:
    """`from module import *`: what it binds is looked up when somebody asks for it."""
    if _of_torch(module, level):
        vm.program.stars.append(module)
        return
    scope = vm.names.frame.scope.globals
    if scope.unread is None:
        scope.unread = Unread(vm.here.file, NOTHING_STATED)
    scope.unread.stars.append((module, level))
    scope.unread.missing.clear()
    for name in sorted(_exported(vm, scope.unread.path, module, level) & scope.names.keys()):
        if (value := _from(vm, scope.unread.path, (module, level), name)) is not None:
            vm.names.store(name, value)


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
                vm.program.resolved[path] = _member(vm, package, rest)
                return vm.program.resolved[path]
        head, _, last = prefix.rpartition(".")
        rest.insert(0, last)
        if importer is not None:
            vm.program.import_files.setdefault(head or "." * level, importer)
        prefix = head
    return None


def _member(vm: Interpreter, package: Package, names: list[str]) -> Value | None:
    value: Value = package
    for name in names:
        if not isinstance(value, Package):
            return None
        found = member(vm, value, name)
        if found is None or isinstance(found, Undefined):
            return None
        value = found
    return value


def member(vm: Interpreter, package: Package, name: str) -> Value | None:
    """What another file binds to a name, if anything."""
    value = package.scope.names.get(name)
    return asked_for(vm, package.scope, name) if value is None else value


def _package(vm: Interpreter, importer: str, module: str, level: int) -> Package | None:
    if vm.program.resolve is None or len(vm.program.packages) >= FOREIGN_LIMIT:
        return None
    source = vm.program.resolve(importer, module, level)
    if source is None:
        return None
    if source.path not in vm.program.packages:
        package = Package(Scope({}, None, None))
        package.scope.unread = unread = Unread(source.path, stated(source.tree))
        vm.program.stars.extend(module for module, level in unread.stars if _of_torch(module, level))
        vm.program.packages[source.path] = package
        vm.program.contents[source.path] = source.content
        vm.reports.findings.sources[source.path] = source.lines
        vm.reports.findings.handled.trees[source.path] = source.tree
        vm.budget.work += FOREIGN_WORK
    return vm.program.packages[source.path]


def asked_for(vm: Interpreter, scope: Scope, name: str) -> Value | None:
    """What a name of a module is bound to by what of it wasn't executed yet: that is done now."""
    unread = scope.unread
    if unread is None or name in unread.missing:
        return None
    unread.missing.add(name)
    if name in unread.stated.binding:
        _execute(vm, scope, unread, name)
    if name not in scope.names and (value := _from_stars(vm, unread, name)) is not None:
        scope.names.setdefault(name, value)
    return scope.names.get(name)


def _from_stars(vm: Interpreter, unread: Unread, name: str) -> Value | None:
    for star in reversed(unread.stars):
        if not name.startswith("_") and (value := _from(vm, unread.path, star, name)) is not None:
            return value
    return None


def _from(vm: Interpreter, importer: str, star: tuple[str, int], name: str) -> Value | None:
    """A name of a module of which everything was imported."""
    package = _package(vm, importer, *star)
    return member(vm, package, name) if package is not None else None


def _exported(vm: Interpreter, importer: str, module: str, level: int) -> set[str]:
    """The names that a module says it binds itself."""
    package = _package(vm, importer, module, level)
    unread = package.scope.unread if package is not None else None
    return {name for name in unread.stated.binding if not name.startswith("_")} if unread else set()


def _execute(vm: Interpreter, scope: Scope, unread: Unread, name: str) -> None:
    """Run what of another file binds a name: that stays, whichever path asked for it first."""
    with (
        vm.names.within(frame=Frame(scope, None, ALWAYS)),
        vm.here.within(file=unread.path, path=ALWAYS),
        vm.running.within(later_turn=False),
        vm.reports.within(repeat=vm.reports.repeat),
        vm.grad_mode.within(grad=True, mode=UNSET, inference=False),
        Within(vm.trail, vm.trail, {"frames": []}),
    ):
        for statement, names in unread.due(name):
            vm.run([statement])
            for one in names:
                _may_be_filled(vm, scope.names.get(one), vm.program.contents[unread.path], one)


def _may_be_filled(vm: Interpreter, value: Value | None, content: bytes, name: str) -> None:
    """A container that functions of its file fill may hold more by the time it is read."""
    if isinstance(value, (Map, Seq)) and not value.open and filled_later(content, name):
        vm.trail.set(value, "open", True)
