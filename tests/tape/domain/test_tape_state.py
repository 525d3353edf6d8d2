"""State is kept in one way: journalled where it changes on a path, else written once, or scoped."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from gradfix.source import Source, parse
from gradfix.tape.domain import definitions, graph, torch_values, values
from gradfix.tape.domain.alternatives import join
from gradfix.tape.domain.graph import Node, Storage, Tensor
from gradfix.tape.domain.paths import Path as Condition
from gradfix.tape.domain.torch_values import Weights
from gradfix.tape.domain.trail import Trail
from gradfix.tape.domain.values import NONE, TRUE, UNDEFINED, Alt, Const, Join, Seq, Unknown
from gradfix.tape.domain.why import fact
from gradfix.tape.entries import analyse
from gradfix.tape.interpreter import budget, grad_switches, names, running
from gradfix.tape.machine import grad_mode, gradients, here, histories, raising, reports, tested

ROOT = Path(__file__).parent.parent.parent.parent
TAPE = ROOT / "gradfix" / "tape"
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"

HOLDERS = [
    kind
    for module in (values, graph, torch_values, definitions)
    for kind in vars(module).values()
    if isinstance(kind, type) and hasattr(kind, "JOINS") and kind.__module__ == module.__name__
] + [grad_mode.GradMode]
JOURNALLED = {name for kind in HOLDERS for name in kind.JOINS}
LEARNT = {name for kind in HOLDERS for name in getattr(kind, "LEARNT", ())}
PARTS = (
    grad_mode, gradients, here, histories, raising, reports, tested,
    budget, grad_switches, names, running,
)  # fmt: skip
SCOPED = {name for part in PARTS for name in part.Scoped.__annotations__}


MAKERS = {
    "_member", "_selected", "cut", "cut_tensor", "drawn", "harmless", "leaf", "new_leaf", "node", "number",
    "opaque", "operate", "output", "result", "unknown_of", "weights",
}  # fmt: skip
"""What hands out something new: who has just got it may say what it is."""

FINISHERS = {
    "look": "a result becomes a view of what it was made from",
    "_look": "the same, as far as that is known",
    "may_be": "the same, where it isn't",
    "looks": "and how its elements lie",
    "_unrecorded_view": "a view made without recording gets its node",
    "_look_at": "the result of an index becomes a view",
    "decorated": "a function that is being defined gets its decorators",
    "factory": "a tensor of numbers gets the dtype that it is told",
    "_named": "a tensor gets the name that it is first bound to",
    "_measure": "what a layer returns gets its shape",
    "_nested": "what a recurrent layer returns is put together",
    "keep": "a new node learns that it keeps something",
    "_wrap": "a function that is being defined learns what its decorators make of it",
    "_set_through": "a property that is being defined learns its setter",
    "_in_place": "the node of a write, of which only a constant may come",
    "_into": "the node of a write into what is given",
    "overwrite": "the node of a write, which may not be recorded",
    "run": "a new event learns what it starts from",
    "advance": "a write that has just been noted learns whose step it is",
    "describe": "and what a rewrite has to know of it",
    "_tell_module": "and which module it was done by",
    "make_class": "the functions of a class body learn whose they are",
    "watch": "an entry that is new gets what asks about its order",
}
"""Functions that finish something which is being made: nobody else has it yet."""

MARKS = {
    "clean": "the backward that walked a node last",
    "reach": "an answer about a node, with what it was true of",
    "joined": "an answer about alternatives, with what it was true of",
    "feasible": "an answer about alternatives, with what it was true of",
    "path": "a contribution that has arrived by a second way, of the backward that is running",
    "inference": "what memory is given `.data` of an inference tensor, with the path on which that is so",
    "inferred": "that path",
    "generation": "how often memory was written, on any path",
    "new": "what a cell held at the end of a branch",
    "live": "the arms of a chain that ran to their end, on any path",
    "changes": "what following calls has done",
    "as_of": "how many writes there were when what was gathered was last looked at",
}
"""Written where something happens, with what says on which path, or as of when: events aren't undone."""

COUNTERS = {
    "abroad", "clock", "deeds", "era", "frees", "inner", "last_touch", "late", "newest", "partings",
    "spoils", "spread", "times", "work",
}  # fmt: skip
"""Clocks and budgets, which run on whichever path it is, and what belongs to the running operation."""

FLAGS = {
    "anchored", "asked", "delivered", "doubted", "entered", "exported", "hooked", "inferred", "kept",
    "lent", "moved", "on", "on_behalf", "parameter", "raised", "recorded", "skipped", "strange", "thawed",
    "unfinished",
}  # fmt: skip
"""What has happened at least once: only ever set to True."""

FIRST_NEED = {"_mapping_item", "_missing", "instance_attribute", "layer_attribute", "load_attribute",
              "parameters_of"}  # fmt: skip
"""Functions that make an attribute when it is first asked for, the same for all paths."""


class Write(NamedTuple):
    """An assignment to an attribute of something, or to an entry of a dict of values."""

    where: str
    function: str
    target: ast.Attribute | ast.Subscript
    value: ast.expr | None
    fresh: bool
    once: bool

    @property
    def name(self) -> str:
        return self.target.attr if isinstance(self.target, ast.Attribute) else ast.unparse(self.target.value)


@cache
def functions() -> tuple[tuple[str, ast.FunctionDef], ...]:
    """The functions of the tape, without the journal and the block that do what all others may not."""
    own = {TAPE / "domain" / "trail.py", TAPE / "domain" / "within.py"}
    return tuple(
        (str(path.relative_to(TAPE)), node)
        for path in sorted(TAPE.rglob("*.py"))
        if path not in own
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    )


def writes() -> Iterator[Write]:
    for file, function in functions():
        new = set(_new(function))
        for statement, tests in _statements(function.body, ()):
            for target, value in _targets(statement):
                if function.name == "__init__" and ast.unparse(_root(target)) == "self":
                    continue
                text = ast.unparse(target)
                root = ast.unparse(_root(target))
                once = any(text in test for test in tests)
                where = f"{file}:{target.lineno} {text}"
                yield Write(where, function.name, target, value, root in new, once)


def _statements(body: list[ast.stmt], tests: tuple[str, ...]) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
    """The statements of a function, each with the tests that it stands under."""
    for statement in body:
        yield statement, tests
        if isinstance(statement, ast.FunctionDef):
            continue
        more = (*tests, ast.unparse(statement.test)) if isinstance(statement, ast.If) else tests
        arms = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
        for one in (statement, *arms):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(one, part, []), more)


def _targets(statement: ast.stmt) -> Iterator[tuple[ast.Attribute | ast.Subscript, ast.expr | None]]:
    if isinstance(statement, ast.AugAssign | ast.AnnAssign):
        pairs: list[tuple[ast.expr, ast.expr | None]] = [(statement.target, None)]
    elif isinstance(statement, ast.Assign):
        pairs = [(target, statement.value) for target in statement.targets]
    else:
        return
    for target, value in pairs:
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(one, ast.Attribute):
                yield one, None if isinstance(target, ast.Tuple) else value
            elif isinstance(one, ast.Subscript) and _dict_of_values(one):
                yield one, value


def _dict_of_values(target: ast.Subscript) -> bool:
    held = target.value
    return isinstance(held, ast.Attribute) and held.attr in ("attrs", "children", "items", "names")


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _new(function: ast.FunctionDef) -> Iterator[str]:
    """The names that a function binds to something that it has just made."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            if called[0].isupper() or called in MAKERS:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (ast.unparse(target) for target in targets)


def test_what_changes_on_a_path_is_journalled() -> None:
    """Nobody assigns such an attribute but who is making the thing; scoped ones nobody at all."""
    stray = [
        write.where
        for write in writes()
        if isinstance(write.target, ast.Attribute)
        and (write.name in JOURNALLED or (write.name in SCOPED and _of_machine(write)))
        and not write.fresh
        and write.function not in {*FINISHERS, "go_on", "lean_on"}
        and write.name not in MARKS
        and not (write.name in FLAGS and _is_true(write.value))
    ]
    assert stray == []


def _of_machine(write: Write) -> bool:
    return ast.unparse(_root(write.target)) in ("self", "vm") and ast.unparse(write.target).count(".") == 1


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def test_what_does_not_change_on_a_path_is_written_once() -> None:
    stray = [
        write.where
        for write in writes()
        if isinstance(write.target, ast.Attribute)
        and not (write.fresh or write.once)
        and write.function not in {*FINISHERS, "go_on", "lean_on"}
        and write.name not in MARKS.keys() | COUNTERS
        and not (write.name in FLAGS and _is_true(write.value))
    ]
    assert stray == []


def test_entries_of_dicts_are_journalled_or_made_at_first_need() -> None:
    stray = [
        write.where
        for write in writes()
        if isinstance(write.target, ast.Subscript)
        and not write.fresh
        and write.function not in FIRST_NEED | FINISHERS.keys()
    ]
    assert stray == []


def test_no_exception_is_left_over() -> None:
    """Each that is written down above is needed."""
    names = {write.name for write in writes()}
    assert (MARKS.keys() | COUNTERS | FLAGS) - names == set()
    assert (FINISHERS.keys() | FIRST_NEED) - {write.function for write in writes()} == set()


def _told(*methods: str) -> Iterator[tuple[str, ast.expr]]:
    for file, function in functions():
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                trail = ast.unparse(node.func.value).split(".")[-1] == "trail"
                if trail and node.func.attr in methods:
                    yield f"{file}:{node.lineno}", node.args[1]


def test_each_cell_says_how_it_joins() -> None:
    """What is written through the trail is declared where the class is, and nothing else is."""
    told = {where: ast.literal_eval(name) for where, name in _told("set")}
    assert {where: name for where, name in told.items() if name not in JOURNALLED} == {}
    assert JOURNALLED - set(told.values()) == set()


def test_each_thing_says_what_it_may_turn_out_to_be() -> None:
    told = {where: ast.literal_eval(name) for where, name in _told("learn", "learn_part")}
    assert {where: name for where, name in told.items() if name not in LEARNT} == {}
    assert LEARNT - set(told.values()) == set()


def test_cells_are_written_in_no_other_way() -> None:
    """No `setattr`, but on what is new, and no `__dict__`, by which the other tests would be blind."""
    used = {
        f"{file}:{node.lineno}"
        for file, function in functions()
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr", "vars")
        if ast.unparse(node.args[0]) not in set(_new(function))
    }
    assert used == set()
    assert not any(".__dict__" in path.read_text("utf-8") for path in TAPE.rglob("*.py"))


def test_all_programs_write_only_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the class of what is written, over all fixtures."""
    seen: set[tuple[type, str]] = set()
    original = Trail.set

    def noted(self: Trail, owner: object, name: str, value: object) -> None:
        seen.add((type(owner), name))
        original(self, owner, name, value)  # type: ignore[arg-type]

    monkeypatch.setattr(Trail, "set", noted)
    for path in sorted((ROOT / "fixtures").rglob("*.py")):
        source = parse(str(path), path.read_bytes())
        if isinstance(source, Source):
            analyse(source)
    assert len(seen) > 20
    assert {(kind.__name__, name) for kind, name in seen if name not in kind.JOINS} == set()  # type: ignore[attr-defined]


FLAG = ("flag", 1)
YES: Condition = frozenset({(FLAG, True)})
NO: Condition = frozenset({(FLAG, False)})
LEAF, OTHER = (Tensor(Node("leaf", None, (), True), Storage(), True, True) for _ in range(2))


def both(how: Join, one: object, other: object) -> object:
    return join(how, [(YES, one), (NO, other)])


@pytest.mark.parametrize(
    ("how", "one", "other", "joined"),
    [
        pytest.param(Join.TRUTH, True, False, None, id="a fact that holds on one path is unknown"),
        pytest.param(Join.TRUTH, None, True, None, id="a fact that is unknown on one path is unknown"),
        pytest.param(Join.SOME, True, False, True, id="a list that may hold more on one path may hold more"),
        pytest.param(Join.EVERY, True, False, False, id="an optimizer stepped on one path has not surely"),
        pytest.param(Join.OLDEST, 3, 5, 3, id="of two generations the older one looks the base up"),
        pytest.param(Join.UNION, frozenset("A"), frozenset("D"), frozenset("AD"), id="conventions add up"),
        pytest.param(Join.AGREED, (1, 2), (1, 3), None, id="of two backwards neither was the last"),
        pytest.param(Join.AGREED, (1, 2), (1, 2), (1, 2), id="what is equal is agreed on"),
        pytest.param(Join.NAME, "", "opt", "opt", id="a name that only one path gives"),
        pytest.param(Join.NAME, "a", "b", "", id="two names are none"),
        pytest.param(Join.ALL, [LEAF], [LEAF, OTHER], [LEAF, OTHER], id="an optimizer may hold what one has"),
    ],
)
def test_contents_join_as_their_cell_says(how: Join, one: object, other: object, joined: object) -> None:
    assert both(how, one, other) == joined
    swapped = both(how, other, one)
    assert swapped == joined or sorted(map(id, swapped)) == sorted(map(id, joined))  # type: ignore[call-overload]


def test_values_join_to_their_alternatives() -> None:
    one, other = Const(1), Unknown(fact("a value"))
    joined = both(Join.VALUE, one, other)
    assert isinstance(joined, Alt) and joined.options == ((YES, one), (NO, other))


def test_what_is_missing_on_a_path_is_not_bound_there() -> None:
    joined = both(Join.VALUE, TRUE, None)
    assert isinstance(joined, Alt) and joined.options == ((YES, TRUE), (NO, UNDEFINED))
    items = both(Join.ITEMS, [NONE, TRUE], [NONE])
    assert isinstance(items, list) and items[0] is NONE and isinstance(items[1], Alt)
    entries = both(Join.ENTRIES, {"a": TRUE}, {})
    assert isinstance(entries, dict) and isinstance(entries["a"], Alt)


def test_memory_that_differs_is_memory_that_nobody_knows() -> None:
    one, other = Storage(), Storage()
    joined = both(Join.MEMORY, one, other)
    assert isinstance(joined, Storage) and joined is not one and joined is not other


def test_a_group_of_parameters_may_hold_what_either_has() -> None:
    joined = both(Join.LEAVES, Weights(NONE, [LEAF], True), Weights(NONE, [OTHER], True))
    assert isinstance(joined, Weights) and joined.leaves == [LEAF, OTHER] and not joined.complete


def test_an_undeclared_cell_is_an_error() -> None:
    """In the branch that writes it, not where it is joined."""
    trail = Trail()
    trail.open(1 << 62)
    with pytest.raises(KeyError):
        trail.set(Seq("list", []), "kind", "tuple")


TRAINING = """
    for x, y in loader:
        {}
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
"""


def program(before: str, clears: str) -> str:
    start = "net, extra = nn.Linear(2, 2), nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    turn = textwrap.dedent(TRAINING).format(textwrap.indent(clears, "    ").strip())
    return HEAD + start + before + turn


def kinds(text: str) -> set[str]:
    source = parse("case.py", text.encode())
    assert isinstance(source, Source)
    return {defect.kind for defect in analyse(source).defects}


GROUP = """
for group in opt.param_groups:
    group['lr'] = 0.1
    for p in group['params']:
        p.grad = None
"""
OPEN = "options = {'lr': 1}\nif read():\n    options.update(read())\n"


@pytest.mark.parametrize(
    ("before", "clears"),
    [
        pytest.param(OPEN, "if 'clear' in options:\n    opt.zero_grad()", id="a dict that may hold more"),
        pytest.param(
            "d = {}\nif read():\n    d['own'] = 1\n",
            "if 'own' not in d:\n    opt.zero_grad()",
            id="an entry that is there on one path",
        ),
        pytest.param(
            "d = []\nif read():\n    d.append(1)\n",
            "if not d:\n    opt.zero_grad()",
            id="a list that is empty on one path",
        ),
        pytest.param(
            "d = []\nif read():\n    d.append(1)\n",
            "if len(d) == 0:\n    opt.zero_grad()",
            id="a list whose length differs",
        ),
        pytest.param(
            "if read():\n    opt.add_param_group({'params': extra.parameters()})\n",
            "opt.zero_grad()",
            id="a group that is added on one path",
        ),
        pytest.param(
            "if read():\n    opt.add_param_group({'params': extra.parameters()})\n",
            GROUP,
            id="a group that is added on one path and gone through",
        ),
        pytest.param(
            "if read():\n    opt.param_groups[0]['params'] = list(extra.parameters())\n",
            GROUP,
            id="a group that holds others on one path",
        ),
    ],
)
def test_training_is_left_alone_where_state_differs_by_path(before: str, clears: str) -> None:
    assert kinds(program(before, clears)) == set()


def test_training_that_never_clears_is_found() -> None:
    """So the programs above say something."""
    assert kinds(program("", "pass")) == {"missing_zero_grad"}


RETAINED = """
def work(flag):
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    if flag:
        y.retain_grad()
    y.sum().backward()
    if flag:
        print(y.grad.norm())
"""


def test_a_gradient_retained_on_one_path_is_there() -> None:
    assert kinds(HEAD + RETAINED) == set()
    assert kinds(HEAD + RETAINED.replace("y.retain_grad()", "pass")) == {"grad_of_non_leaf"}


DATA = """
w = torch.ones(3, requires_grad=True)
v = w.detach()
with torch.inference_mode():
    d = torch.ones(3)
if read():
    v.data = d
y = w * v
v.add_(1)
y.sum().backward()
"""


def test_memory_given_on_one_path_is_followed() -> None:
    """On both paths the product has kept what is written."""
    assert kinds(HEAD + DATA) == {"inplace_overwrites_saved"}


SWITCHED = """
def off():
    print("off")
    return False
w = torch.ones(3, requires_grad=True)
torch.set_grad_enabled(off())
y = w * 2
y.sum().backward()
"""


def test_a_statement_is_still_one_after_the_calls_inside_it() -> None:
    assert kinds(HEAD + SWITCHED) == {"forward_in_no_grad"}
