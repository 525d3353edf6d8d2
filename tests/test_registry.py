"""How rules are collected and selected."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from toy import RULES, SAFE

from gradfix.engine import fix
from gradfix.findings import Plan
from gradfix.registry import RegistryError, codemods, collect, find, resolve, suggestion, unknown
from gradfix.rule import Safety

FIXTURES = Path(__file__).parent.parent / "fixtures"

DEFAULT = {"safe_toy", "unsafe_toy", "declined_toy", "endless_toy", "broken_toy", "crashing_toy"}


@pytest.mark.parametrize(
    ("select", "ignore", "extend", "expected"),
    [
        pytest.param(None, [], [], DEFAULT, id="by default those that are on"),
        pytest.param(None, ["TOY1"], [], {"unsafe_toy", "declined_toy"}, id="without some"),
        pytest.param(None, [], ["TOY4"], DEFAULT | {"quiet_toy"}, id="with one besides"),
        pytest.param(["TOY2"], [], [], {"unsafe_toy"}, id="one by its code"),
        pytest.param(["unsafe_toy"], [], [], {"unsafe_toy"}, id="one by its name"),
        pytest.param(
            ["TOY1"], ["TOY11"], [], {"safe_toy", "broken_toy", "crashing_toy"}, id="ignore is closer"
        ),
        pytest.param(["TOY11"], ["TOY1"], [], {"endless_toy"}, id="select is closer"),
        pytest.param(["TOY11"], ["TOY11"], [], set(), id="ignore wins where both are as close"),
        pytest.param(["ALL"], [], [], set(RULES), id="all"),
        pytest.param(None, ["ALL"], ["TOY4"], {"quiet_toy"}, id="none but one"),
        pytest.param([], [], [], set(), id="none"),
    ],
)
def test_the_closest_selector_decides(
    select: list[str] | None, ignore: list[str], extend: list[str], expected: set[str]
) -> None:
    assert resolve(RULES, select, ignore, extend) == expected


def test_a_selector_that_names_no_rule_is_known() -> None:
    assert list(unknown(RULES, ["TOY", "all", "safe_Toy", "toy", "TOX", ""])) == ["TOX", ""]


def test_a_rule_is_found_by_code_and_by_name() -> None:
    assert find(RULES, "toy11") is find(RULES, "endless_toy") is RULES["endless_toy"]
    assert find(RULES, "TOY") is None


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        ("GF1O1", "did you mean GF101?"),
        ("gf 301", "did you mean GF301?"),
        ("inplace_modul", "did you mean inplace_module?"),
        ("graph-leak", "did you mean graph_leak?"),
        ("E501", "see --list-rules"),
        ("", "see --list-rules"),
    ],
)
def test_a_slip_is_answered_with_the_closest_rule(slip: str, words: str) -> None:
    assert suggestion(codemods(), slip) == words


def module(name: str, doc: str | None = "What it is about.", **names: object) -> ModuleType:
    made = ModuleType(f"gradfix.codemods.{name}", doc)
    vars(made).update(names)
    return made


def test_modules_become_codemods_in_the_order_of_their_codes() -> None:
    other = type(SAFE)("TOY0", "", SAFE.rewrite)
    collected = collect(
        [module("b", RULE=SAFE, Rule=type(SAFE)), module("a", "  One.\n\nTwo.\n", RULE=other)]
    )
    assert list(collected) == ["a", "b"]
    assert (collected["a"].docs, collected["a"].card.summary) == ("One.\n\nTwo.", "One.")


@pytest.mark.parametrize(
    ("docs", "summary"),
    [
        pytest.param("It runs\nover two lines.\n\nMore.", "It runs over two lines.", id="wrapped"),
        pytest.param("`.data` is read. Again.", "`.data` is read.", id="a dot that ends nothing"),
        pytest.param("No full stop\n\nMore.", "No full stop", id="no full stop"),
    ],
)
def test_the_summary_is_the_first_sentence(docs: str, summary: str) -> None:
    assert collect([module("a", docs, RULE=SAFE)])["a"].card.summary == summary


@pytest.mark.parametrize(
    ("modules", "error"),
    [
        pytest.param([module("a")], "a must hold exactly one rule", id="no rule"),
        pytest.param([module("a", OTHER=SAFE)], "named RULE", id="another name"),
        pytest.param(
            [module("a", RULE=SAFE, B=type(SAFE)("B", "", SAFE.rewrite))], "exactly one", id="two rules"
        ),
        pytest.param([module("a", None, RULE=SAFE)], "a has no documentation", id="no docs"),
        pytest.param(
            [module("a", RULE=SAFE), module("b", RULE=SAFE)], "a and b both have the code TOY1", id="twice"
        ),
    ],
)
def test_what_is_no_rule_is_refused(modules: list[ModuleType], error: str) -> None:
    with pytest.raises(RegistryError, match=error):
        collect(modules)


def test_the_projects_own_rules_are_collected() -> None:
    rules = codemods()
    assert rules
    assert all(codemod.rule.code.startswith("GF") and codemod.docs for codemod in rules.values())


def test_a_rule_that_is_sometimes_unsafe_says_when() -> None:
    told = {name for name, each in codemods().items() if each.rule.sometimes_unsafe}
    assert told and all("unsafe" in codemods()[name].docs for name in told)


@pytest.mark.parametrize("name", sorted(codemods()))
def test_a_rule_that_promises_safe_fixes_has_no_other_in_its_fixtures(name: str) -> None:
    rule = codemods()[name].rule
    cases = (FIXTURES / name).glob("*/before.py")
    plan = Plan({name: codemods()[name]})
    found = {f.safety for case in cases for f in fix(str(case), case.read_bytes(), plan).findings}
    assert rule.sometimes_unsafe or rule.safety is not Safety.SAFE or Safety.UNSAFE not in found
