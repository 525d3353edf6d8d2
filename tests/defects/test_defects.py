"""What a defect is made of: every kind has its traits, its record and its rule, and all keep to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from by_hand import defect_of

from gradfix.defects import KINDS, NOTHING, Assumption, Convention, Defect, Role, certainty_of
from gradfix.defects.facts import Facts
from gradfix.defects.records import RECORDS
from gradfix.recorded import FIELDS, WHOLE
from gradfix.registry import codemods
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

ROOT = Path(__file__).parent.parent.parent
BEFORES = sorted((ROOT / "fixtures").glob("*/*/before.py"))
SOURCES = ROOT / "gradfix" / "trace" / "sources.py"
EXPLAINED = (ROOT / "gradfix" / "why" / "messages.py", ROOT / "gradfix" / "why" / "symptoms.py")
"""The tables of what torch and people say, with the kinds that explain it."""
SELF_CHECK = ROOT / "gradfix" / "trace" / "selfcheck.py"
"""Says what each of its known programs breaks."""
"""Where the recorder says what each kind of source is like: not every one of them is a defect."""
NAMED = re.compile(r"{(\w+)}")


def fits(value: Any, declared: Any) -> bool:
    """Whether a value is of a declared type."""
    if get_origin(declared) in (Union, UnionType):
        return any(fits(value, one) for one in get_args(declared))
    if get_origin(declared) is Literal:
        return value in get_args(declared)
    if get_origin(declared) is tuple:
        return isinstance(value, tuple) and all(fits(one, get_args(declared)[0]) for one in value)
    return isinstance(value, NoneType if declared is None else declared)


def misfits(defect: Defect) -> list[str]:
    """The facts of a defect that aren't what its record declares."""
    declared = get_type_hints(type(defect.facts))
    named = defect.facts.named()
    wrong = [name for name, value in named.items() if not fits(value, declared[name])]
    return wrong if type(defect.facts) is RECORDS[defect.kind] else [type(defect.facts).__name__, *wrong]


def test_every_kind_has_its_record_and_its_rule() -> None:
    assert RECORDS.keys() == KINDS.keys() == codemods().keys()


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_quotes_what_its_record_has(kind: str) -> None:
    known = {"culprit", *(each.name for each in fields(RECORDS[kind]))}
    assert {*NAMED.findall(codemods()[kind].rule.message)} <= known


@pytest.mark.parametrize("record", sorted({*RECORDS.values()}, key=str))
def test_a_record_says_what_it_is_about(record: type[Facts]) -> None:
    assert record.__doc__ and not record.__doc__.startswith(f"{record.__name__}(")


@pytest.mark.parametrize(
    "before", [pytest.param(one, id=" ".join(one.parts[-3:-1]).replace("_", " ")) for one in BEFORES]
)
def test_the_tape_fills_records_with_what_they_declare(before: Path) -> None:
    source = parse(before.name, before.read_bytes())
    assert isinstance(source, Source)
    defects = analyse(source).defects
    assert [misfits(one) for one in defects if misfits(one)] == []


READERS = [ROOT / "codemods", *(ROOT / "gradfix" / room for room in ("rewriting", "verify", "findings.py"))]


def _words(places: Iterable[Path], kind: type[ast.AST], name: str) -> set[str]:
    """What nodes of a kind say under a name, in all files here."""
    files = [file for one in places for file in (one.rglob("*.py") if one.is_dir() else [one])]
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8"))))
    return {str(getattr(node, name)) for node in nodes if isinstance(node, kind)}


def test_each_fact_is_filled_by_somebody_and_read_by_somebody() -> None:
    facts = {each.name for record in RECORDS.values() for each in fields(record)}
    messages = {name for kind in KINDS for name in NAMED.findall(codemods()[kind].rule.message)}
    told = _words([ROOT / "gradfix" / "tape"], ast.keyword, "arg") | {*FIELDS.values()}
    assert facts - told == set()
    assert facts - _words(READERS, ast.Attribute, "attr") - messages == set()


def test_a_misfit_is_seen() -> None:
    defect = analyse(_parsed("import torch\ntorch.ones(3).sum().backward()\n")).defects[0]
    object.__setattr__(defect.facts, "target", 3)
    assert misfits(defect) == ["target"]


def _parsed(text: str) -> Source:
    source = parse("main.py", text.encode())
    assert isinstance(source, Source)
    return source


def test_what_the_recorder_sends_lands_in_fields_that_some_record_has() -> None:
    known = {each.name for record in RECORDS.values() for each in fields(record)}
    assert {*FIELDS.values()} <= known
    assert FIELDS.keys() >= WHOLE


def test_certainty_follows_from_what_a_claim_leans_on() -> None:
    assert certainty_of(NOTHING) == "certain"
    assert {certainty_of(frozenset({one})) for one in Convention} == {"likely"}
    assert {certainty_of(frozenset({Convention.B, one})) for one in Assumption} == {"suspect"}


def test_only_one_role_leaves_its_subject_open() -> None:
    assert [role for role in Role if role.says("relu") != role.says("exp")] == [Role.SAVED_BY]


def modules() -> Iterator[Path]:
    for folder in ("gradfix", "codemods"):
        yield from (path for path in (ROOT / folder).rglob("*.py") if "defects" not in path.parts)


def literals(node: ast.AST) -> list[str]:
    """The kinds that are written out directly below a node."""
    below = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.Constant))
    return [str(one.value) for one in below if one.value in KINDS]


def test_kinds_are_listed_and_told_apart_in_one_place() -> None:
    """Elsewhere they are named where a defect is made, which is a call, and nowhere else."""
    lists = (ast.List, ast.Set, ast.Tuple, ast.Dict, ast.Compare)
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {', '.join(literals(node))}"
        for path in modules()
        if path not in (SOURCES, SELF_CHECK, *EXPLAINED)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, lists) and literals(node)
    ]
    assert found == []


def test_roles_are_never_written_out() -> None:
    sentences = {role.value for role in Role if " " in role.value}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value in sentences
    ]
    assert found == []


def test_a_defect_written_by_hand_has_the_facts_that_the_tape_sees() -> None:
    source = "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()\n"
    (seen,) = analyse(_parsed(source)).defects
    fed = defect_of(seen.kind, source, seen.culprit, {"target": "other"})
    assert fed.facts == seen.facts
    fragment = defect_of(seen.kind, "y += 1\n", seen.culprit, {"target": "other"})
    assert fragment.facts.named()["target"] == "other"
    with pytest.raises(TypeError, match="optimizer"):
        defect_of(seen.kind, source, seen.culprit, {"optimizer": "opt"})
