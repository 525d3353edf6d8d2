"""The rooms of the house: imports go down, nothing goes in circles, each thing is done in one place."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from gradfix.commands.words import COMMANDS

ROOT = Path(__file__).parent.parent
ROOMS = (
    ("spelling", "tape.effects.frameworks", "tape.effects.operations", "defects"),
    ("trace",),
    ("verify",),
    ("places", "gate", "garbage", "stack"),
    ("magics", "cell"),
    ("notebook",),
    ("source",),
    ("driver",),
    ("driver.search",),
    ("neighbours",),
    ("tape.domain",),
    ("tape.effects",),
    ("tape.machine",),
    ("tape.interpreter",),
    ("tape.torch",),
    ("tape.strangers",),
    ("tape.python",),
    ("tape.checks",),
    ("tape",),
    ("tree",),
    ("rule",),
    ("rewriting",),
    ("codemods",),
    ("edits", "patch"),
    ("outcome",),
    ("files", "patterns", "since"),
    ("config", "registry"),
    ("plan", "suppressions", "applied"),
    ("aftermath",),
    ("findings",),
    ("engine",),
    ("finder", "task"),
    ("crew", "cache"),
    ("pool", "fleet"),
    ("session", "progress", "explain", "process"),
    ("driven",),
    ("proof", "recorded", "repositories", "review", "watch"),
    ("run", "why", "health", "regression"),
    ("report",),
    ("server",),
    ("commands",),
    ("cli",),
    ("__main__", "pytest_plugin", "ipython"),
    ("",),
)
"""From the cellar up. A room may import those below it."""
HEIGHTS = {room: height for height, rooms in enumerate(ROOMS) for room in rooms}


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name below `gradfix`."""
    own = {_name(path, ROOT / "gradfix"): path for path in (ROOT / "gradfix").rglob("*.py")}
    rules = {f"codemods.{path.stem}": path for path in (ROOT / "codemods").glob("*.py")}
    return own | rules


def _name(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text("utf-8"))


def room(name: str) -> str:
    """The room that a module is in: the innermost that has a height of its own."""
    while name not in HEIGHTS and "." in name:
        name = name.rpartition(".")[0]
    return name


@cache
def imports(name: str, lazily: bool = True, typing: bool = False) -> tuple[str, ...]:
    """All that a module imports when it runs, or for type checkers too, by full names."""
    return tuple(_imports(name, lazily, typing))


def _imports(name: str, lazily: bool, typing: bool) -> Iterator[str]:
    for node in _running(parsed(name), lazily, typing):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _running(tree: ast.AST, lazily: bool, typing: bool) -> Iterator[ast.AST]:
    """The nodes that are not for type checkers only; those in functions run later."""
    for child in ast.iter_child_nodes(tree):
        typed = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if (typing or not typed) and (lazily or not later):
            yield child
            yield from _running(child, lazily, typing)


@cache
def own_imports(name: str, lazily: bool = True, typing: bool = False) -> frozenset[str]:
    """The modules of gradfix that a module imports."""
    every = imports(name, lazily, typing)
    found = {each.removeprefix("gradfix.") for each in every if each.startswith("gradfix.")}
    return frozenset(found & modules().keys()) - {name, ""}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name in modules():
        for node in ast.walk(parsed(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}.{node.name}", node


def test_imports_go_down() -> None:
    """Those for type checkers too: what a function takes is what it knows of."""
    upward = [
        f"{name} imports {other}"
        for name in modules()
        for other in own_imports(name, typing=True)
        if room(name) != room(other) and HEIGHTS[room(name)] <= HEIGHTS[room(other)]
    ]
    assert upward == []


def test_imports_never_go_in_circles() -> None:
    """Between rooms not even lazily; within a room, functions that need each other may meet when they run."""
    graph = {name: {other for other in own_imports(name) if _at_once(name, other)} for name in modules()}
    TopologicalSorter(graph).prepare()


def _at_once(name: str, other: str) -> bool:
    return room(name) != room(other) or other in own_imports(name, lazily=False)


def test_imports_within_the_tape_are_shallow() -> None:
    """As they run: who knows another module by its types only doesn't need it."""
    below = {name: at_once(name) for name in modules() if name.startswith("tape")}
    depth: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        depth[name] = 1 + max((depth[other] for other in below.get(name, ())), default=0)
    assert max(depth.values()) <= 10


def at_once(name: str) -> set[str]:
    """The modules of the tape that one of them imports before it runs."""
    return {other for other in own_imports(name, lazily=False) if other.startswith("tape")}


def test_parts_are_put_together_and_not_inherited() -> None:
    """A class of the machine or the interpreter has no class of the tape above it."""
    parts = [name for name in modules() if room(name) in ("tape.machine", "tape.interpreter")]
    classes = {
        node.name: [ast.unparse(base) for base in node.bases]
        for name in parts
        for node in parsed(name).body
        if isinstance(node, ast.ClassDef)
    }
    assert {"Machine", "Graph", "Interpreter"} <= classes.keys()
    assert [name for name, bases in classes.items() if classes.keys() & set(bases)] == []


@pytest.mark.parametrize("place", ["tape.domain", "tape.machine"])
def test_a_room_says_what_it_holds(place: str) -> None:
    """No `Any` in it: what a value, a node, a cell or a part of the machine can be is read there."""
    loose = [
        f"{name}:{node.lineno}"
        for name in modules()
        if room(name) == place
        for node in ast.walk(parsed(name))
        if (isinstance(node, ast.Name) and node.id == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        or (isinstance(node, ast.ImportFrom) and any(alias.name == "Any" for alias in node.names))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and "Any]" in node.value)
    ]
    assert loose == []


def test_the_package_itself_imports_nothing() -> None:
    """Until IPython asks it for its magics."""
    assert list(imports("", lazily=False)) == []
    assert set(own_imports("")) == {"ipython"}


def test_nobody_imports_a_rule_by_name() -> None:
    assert [
        name
        for name in modules()
        if any(each.startswith(("codemods.", "gradfix.codemods.")) for each in imports(name))
    ] == []


@pytest.mark.parametrize(
    ("library", "rooms"),
    [
        pytest.param("torch", {"trace", "verify", "driver.search"}, id="torch"),
        pytest.param("libcst", {"tree", "edits", "findings", "rewriting", "codemods"}, id="libcst"),
        pytest.param("unidiff", {"patch"}, id="unidiff"),
        pytest.param("pathspec", {"patterns"}, id="pathspec"),
        pytest.param("click", {"cli", "commands"}, id="click"),
        pytest.param("rich", {"progress", "report"}, id="rich"),
        pytest.param("pygls", {"server"}, id="pygls"),
        pytest.param("lsprotocol", {"server"}, id="lsprotocol"),
        pytest.param("dask", {"fleet"}, id="dask"),
        pytest.param("distributed", {"fleet"}, id="distributed"),
    ],
)
def test_a_library_stays_in_its_rooms(library: str, rooms: set[str]) -> None:
    users = {
        room(name) for name in modules() if any(each.partition(".")[0] == library for each in imports(name))
    }
    assert users <= rooms


def needed(name: str) -> set[str]:
    """A module with all that it imports before it runs, however far down."""
    found, waiting = set[str](), {name}
    while waiting:
        found |= waiting
        waiting = {other for each in waiting for other in own_imports(each, lazily=False)} - found
    return found


@pytest.mark.parametrize(
    ("name", "cheap"),
    [("cli", "ast"), *((f"commands.{each}", "click") for each in COMMANDS), ("session", "ast")],
)
def test_what_few_calls_need_is_imported_when_it_is_used(name: str, cheap: str) -> None:
    dear = {"libcst", "rich", "unidiff", "pathspec", "torch", "multiprocessing", "concurrent", "subprocess"}
    used = {each.partition(".")[0] for one in needed(name) for each in imports(one, lazily=False)}
    assert cheap in used
    assert used & dear == set()


def test_a_command_knows_no_other() -> None:
    """Each is imported when it is called; what two of them need stands beside them."""
    own = {f"commands.{name}" for name in COMMANDS}
    assert own <= modules().keys()
    assert {name: own & own_imports(name) for name in modules() if own & own_imports(name)} == {}


def test_what_plays_texts_for_an_editor_knows_nothing_of_the_protocol() -> None:
    used = {each.partition(".")[0] for one in needed("server.worker") for each in imports(one)}
    assert "pickle" in used
    assert used & {"pygls", "lsprotocol", "asyncio"} == set()


@cache
def calls(name: str) -> frozenset[str]:
    """What a module calls, as it is written there."""
    called = (node.func for node in ast.walk(parsed(name)) if isinstance(node, ast.Call))
    return frozenset(ast.unparse(each) for each in called)


@pytest.mark.parametrize(
    ("call", "room_"),
    [
        pytest.param("ast.parse", "source", id="parsing with ast"),
        pytest.param("cst.parse_module", "tree", id="parsing with libcst"),
        pytest.param("os.replace", "files", id="writing to users' files"),
        pytest.param("Plan", "plan", id="making a plan"),
    ],
)
def test_a_thing_is_done_in_one_place(call: str, room_: str) -> None:
    """Rewrites may parse what they have themselves put together, to compare it, and the search what lives."""
    parsing = {"rewriting", "driver.search"}
    assert {room(name) for name in modules() if call in calls(name)} - parsing == {room_}


def test_only_the_engine_catches_everything() -> None:
    """And the recorder and the search for a driver, which run other people's programs."""
    broad = {
        name
        for name in modules()
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or "Exception" in ast.unparse(node.type).split("."))
    }
    assert broad - {name for name in broad if room(name) in ("trace", "driver.search")} == {"engine"}


def test_only_reports_print() -> None:
    """And the recorder, which speaks from inside another program."""
    assert {room(name) for name in modules() if "print" in calls(name)} <= {"report", "trace"}


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name in modules() if not ast.get_docstring(parsed(name))] == []


def test_no_room_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
    assert [name for name in modules() if drawers & set(name.split("."))] == []


def test_functions_are_small() -> None:
    sizes = sorted((node.end_lineno or 0) - node.lineno + 1 for _, node in functions())
    assert statistics.median(sizes) <= 12
    assert sizes[len(sizes) * 95 // 100] <= 40


def test_functions_take_few_parameters() -> None:
    counts = sorted(
        len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) - _bound(node)
        for _, node in functions()
    )
    assert counts[len(counts) * 95 // 100] <= 5


def _bound(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.args.args[0].arg if node.args.args else ""
    return int(first in ("self", "cls"))


def test_files_are_small() -> None:
    lengths = sorted(len(path.read_text("utf-8").splitlines()) for path in modules().values())
    assert lengths[len(lengths) * 9 // 10] <= 300
