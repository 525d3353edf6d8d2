"""What two backwards share: an earlier backward's graph, what is carried along, or made before a loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from gradfix.why.code import (
    COMPOUND,
    Scope,
    bound,
    called,
    class_at,
    covers,
    dotted,
    functions,
    loops_at,
    read,
    statements,
)
from gradfix.why.flow import fills
from gradfix.why.project import Spot
from gradfix.why.steps import may_be_weight
from gradfix.why.suspects import Agreement, Case, Suspect, is_backward
from gradfix.why.writes import counts, plain_names

CUT_OFF = re.compile(
    r"\.detach\(\)|\.detach_\(\)|\.data\b|\.item\(\)|\.numpy\(\)|\.clone\(\)\.detach|detach\(|repackage"
)
INNOCENT = re.compile(
    r"^(?:\s*(?:self\.)?\w*(?:model|net|loader|optim|sched|criterion|dataset|device|args|config|parser|logger|writer|path)\w*)$",
    re.I,
)
OF_MODULES = frozenset({"forward", "parameters", "train", "eval", "state_dict", "step", "zero_grad", "apply"})
SHARED = "assuming that it has a graph"


def freed_before(case: Case) -> Iterator[Suspect]:
    """Earlier backwards that walk what the failing one needs, and where what they share is used first."""
    spot = case.backward
    if spot is None:
        return
    for scope, other in _other_backwards(case, spot):
        own = scope is case.scope(spot)
        cls = class_at(case.tree(spot.path), spot.line)
        objects = _objects(case, cls) if cls is not None else set()
        later = {id(step.statement): step for step in case.way if not own or step.scope is scope}
        text = ast.unparse(other)
        if other.lineno > spot.line or "retain_graph=True" in text:
            continue
        back = case.flow.back(spot.path, scope, other)
        earlier = [step for step in back if not own or step.scope is scope]
        shared = [
            step.statement
            for step in earlier
            if id(step.statement) in later
            and _computes(step.statement)
            and (own or not (bound(step.statement) & objects or _making(step.scope)))
        ]
        if not shared:
            continue
        names = {name for each in shared for name in bound(each)}
        line = case.line(spot.path, spot.line)
        said = f"it walks what `{case.text(spot.path, shared[0])}` computed, and so does {line}"
        yield Suspect(
            spot.path, case.place(spot.path, other),
            f"`{case.text(spot.path, other)}` frees what this backward needs again",
            (Agreement(6, said),), (SHARED,),
            "detach what is shared where only one of them is to train it; else retain_graph=True here",
        )  # fmt: skip
        if not own:
            continue
        before = [step.statement for step in earlier if id(step.statement) not in later]
        behind = [step.statement for step in later.values() if step not in earlier]
        yield from _uses(case, spot.path, before, names, "first")
        yield from _uses(case, spot.path, behind, names, "then")


def _making(scope: Scope) -> bool:
    """Whether a function only makes what others compute with."""
    return isinstance(scope, ast.Module) or scope.name.startswith(("__init__", "init"))


def _uses(
    case: Case, path: str, statements_: Iterable[ast.stmt], names: set[str], when: str
) -> Iterator[Suspect]:
    """Where a loss takes up what both share."""
    for statement in statements_:
        taken = sorted(read(statement) & names)
        if taken and _computes(statement):
            says = f"`{case.text(path, statement)}` ties `{taken[0]}` into the loss that is walked {when}"
            advice = f"`{taken[0]}.detach()` here, if this loss is not to train what made it"
            agrees = (Agreement(5, f"the other loss is computed from `{taken[0]}` too"),)
            yield Suspect(path, case.place(path, statement), says, agrees, (SHARED,), advice)


def _computes(statement: ast.stmt) -> bool:
    """Whether a statement may make a part of a graph."""
    if isinstance(statement, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith):
        return False
    value = getattr(statement, "value", None)
    names = [called(node) for node in ast.walk(value) if isinstance(node, ast.Call)] if value else []
    makes = any(
        name and not name[:1].isupper() and name not in ("to", "cuda", "next", "iter") for name in names
    )
    arithmetic = value is not None and any(isinstance(node, ast.BinOp) for node in ast.walk(value))
    return (makes or arithmetic) and not CUT_OFF.search(ast.unparse(statement))


def _runs(statement: ast.stmt) -> bool:
    """Whether a statement gives a value to something that may be a network."""
    value = getattr(statement, "value", None)
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)] if value is not None else []
    given = any(not isinstance(word, ast.Constant) for call in calls for word in call.args)
    return given and _computes(statement)


def carried(case: Case) -> Iterator[Suspect]:
    """Values that keep the graph of the last iteration, of the last call, or of a time before the loop."""
    spot = case.backward or case.raised
    if spot is None or (case.said.message.name == "overwritten" and not may_be_weight(case)):
        return
    scope = case.scope(spot)
    around = loops_at(scope, spot.line)
    own = {name for step in case.way if step.scope is scope for name in read(step.statement)}
    if around:
        yield from _through_the_loop(case, scope, around[-1], own)
        yield from _through_a_container(case, around[-1], own)
        yield from _before_the_loop(case, scope, around[0], own)
    yield from _through_attributes(case)


def _through_the_loop(case: Case, scope: Scope, loop: ast.stmt, wanted: set[str]) -> Iterator[Suspect]:
    """What an iteration reads before it binds it anew."""
    inside = [
        each for each in statements(loop) if not isinstance(each, ast.If | ast.With | ast.For | ast.Try)
    ]
    for name in sorted(wanted - plain_names(scope) - bound(loop)):
        binding = [each for each in inside if name in bound(each)]
        reading = [each for each in inside if name in _reads(each)]
        if not binding or not reading or reading[0].lineno > binding[0].lineno:
            continue
        if any(CUT_OFF.search(ast.unparse(each)) for each in binding) or INNOCENT.match(name):
            continue
        if all(counts(each) or _of_a_setting(each) for each in binding):
            continue
        path = case.backward.path if case.backward else ""
        first = case.line(path, reading[0].lineno)
        yield Suspect(
            path, case.place(path, binding[-1]),
            f"`{case.text(path, binding[-1])}` carries `{name}` with its graph into the next iteration",
            (Agreement(5, f"the next iteration's loss hangs on it, from {first} on"),),
            (SHARED,), f"`{name} = {name}.detach()` once this iteration's backward has run",
        )  # fmt: skip


def _of_a_setting(statement: ast.stmt) -> bool:
    """Whether a statement adds an attribute of something else, as `opt.batch_size`."""
    value = statement.value if isinstance(statement, ast.AugAssign) else None
    return isinstance(value, ast.Attribute) and not dotted(value).startswith("self.")


def _through_a_container(case: Case, loop: ast.stmt, wanted: set[str]) -> Iterator[Suspect]:
    """What an iteration puts into something that outlives it, and that a later one reads."""
    path = case.backward.path if case.backward else ""
    rebound = {name for each in statements(loop) for name in bound(each)}
    for each in statements(loop):
        for name in sorted(wanted - rebound):
            if fills(each, name) and not CUT_OFF.search(ast.unparse(each)) and not INNOCENT.match(name):
                yield Suspect(
                    path, case.place(path, each),
                    f"`{case.text(path, each)}` keeps graphs in `{name}` for later iterations",
                    (Agreement(5, f"the loss hangs on `{name}`, which outlives an iteration"),),
                    (SHARED,), "put `.detach()` of it in, or compute it under `torch.no_grad()`",
                )  # fmt: skip


def _reads(statement: ast.stmt) -> set[str]:
    own = read(getattr(statement, "value", statement) or statement)
    return own | bound(statement) if isinstance(statement, ast.AugAssign) else own


def _before_the_loop(case: Case, scope: Scope, loop: ast.stmt, wanted: set[str]) -> Iterator[Suspect]:
    """What is computed once and used by the backward of every iteration."""
    inside = {name for each in statements(loop) for name in bound(each)}
    path = case.backward.path if case.backward else ""
    for each in statements(scope):
        names = bound(each) & wanted - inside
        if covers(loop, each.lineno) or not names or each.lineno > loop.lineno or not _runs(each):
            continue
        name = sorted(names)[0]
        if INNOCENT.match(name) or isinstance(each, ast.AugAssign):
            continue
        yield Suspect(
            path, case.place(path, each),
            f"`{case.text(path, each)}` is computed once, and every iteration walks its graph",
            (Agreement(3, f"the loss in the loop of {case.line(path, loop.lineno)} hangs on `{name}`"),),
            (SHARED,), "compute it inside the loop, or detach it",
        )  # fmt: skip


def _through_attributes(case: Case) -> Iterator[Suspect]:
    """What a module keeps from one call to the next."""
    touched = {(step.path, step.scope) for step in case.way if not isinstance(step.scope, ast.Module)}
    for path, scope in sorted(touched, key=lambda each: (each[0], getattr(each[1], "lineno", 0))):
        tree = case.tree(path)
        cls = class_at(tree, getattr(scope, "lineno", 0))
        if cls is None or getattr(scope, "name", "") == "__init__":
            continue
        others = [each for each in functions(tree) if class_at(tree, each.lineno) is cls]
        objects = _objects(case, cls)
        for statement in statements(scope):
            for name in sorted(each for each in bound(statement) - objects if each.startswith("self.")):
                if _kept(statement, name, others):
                    yield Suspect(
                        path, case.place(path, statement),
                        f"`{case.text(path, statement)}` keeps a graph in `{name}` from one call to the next",
                        (Agreement(4, f"what the loss hangs on sets `{name}` and reads it"),), (SHARED,),
                        f"keep `.detach()` of it in `{name}`",
                    )  # fmt: skip


def _objects(case: Case, cls: ast.ClassDef) -> set[str]:
    """The attributes of a class that hold modules and the like: they are called, or their methods are."""
    found = set()
    for node in (each for each in ast.walk(cls) if isinstance(each, ast.Call)):
        func = node.func
        if isinstance(func, ast.Attribute) and (func.attr in case.flow.named or func.attr in OF_MODULES):
            func = func.value
        if dotted(func).startswith("self."):
            found.add(dotted(func))
    return found


def _kept(statement: ast.stmt, name: str, methods: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> bool:
    """Whether an attribute is set to something computed and read before it is set again."""
    if not _computes(statement) or isinstance(statement, ast.If):
        return False
    for method in methods:
        if method.name == "__init__":
            continue
        own = [each for each in statements(method) if not isinstance(each, ast.If | ast.With | ast.For)]
        reading = next((each.lineno for each in own if name in _reads(each)), None)
        setting = next((each.lineno for each in own if name in bound(each)), None)
        if reading is not None and (setting is None or reading <= setting):
            return True
    return False


def _other_backwards(case: Case, spot: Spot) -> Iterator[tuple[Scope, ast.stmt]]:
    """The other statements that run backward: of the same function, and of the same class."""
    tree = case.tree(spot.path)
    cls = class_at(tree, spot.line)
    here = case.scope(spot)
    methods = [each for each in functions(tree) if cls is not None and class_at(tree, each.lineno) is cls]
    for scope in dict.fromkeys((here, *methods)):
        for each in statements(scope):
            walks = not isinstance(each, COMPOUND) and any(map(is_backward, ast.walk(each)))
            if walks and not covers(each, spot.line):
                yield scope, each
