"""How rules are collected and selected."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

import pytest
from toy import RULES

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.registry import RegistryError, codemods, collect, find, resolve, suggestion, unknown
from gradfix.rule import Finding, Rule, Safety

FIXTURES = Path(__file__).parent.parent / "fixtures"
Text: TypeAlias = tuple[str, bytes]

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


PLAIN = 'RULE = Rule(code="TOY1", message="it breaks")'


def module(name: str, rule: str = PLAIN, docs: str = "Why.") -> Text:
    """A module's name and text, with its documentation and what stands in it."""
    return name, f'"""{docs}"""\n{rule}\n'.encode()


def test_modules_become_codemods_in_the_order_of_their_codes() -> None:
    other = 'RULE = Rule(code="TOY0", message="a" "b", rewrite=f, safety=Safety.UNSAFE, on_by_default=False)'
    collected = collect([module("b"), module("a", other, "One.\n\nTwo.\n")])
    assert list(collected) == ["a", "b"]
    assert (collected["a"].docs, collected["a"].card.summary) == ("One.\n\nTwo.", "One.")
    rule = collected["a"].rule
    assert (rule.message, rule.safety, rule.on_by_default) == ("ab", Safety.UNSAFE, False)


@pytest.mark.parametrize(
    ("docs", "summary"),
    [
        pytest.param("It runs\nover two lines.\n\nMore.", "It runs over two lines.", id="wrapped"),
        pytest.param("`.data` is read. Again.", "`.data` is read.", id="a dot that ends nothing"),
        pytest.param("No full stop\n\nMore.", "No full stop", id="no full stop"),
    ],
)
def test_the_summary_is_the_first_sentence(docs: str, summary: str) -> None:
    assert collect([module("a", docs=docs)])["a"].card.summary == summary


@pytest.mark.parametrize(
    ("modules", "error"),
    [
        pytest.param([module("a", "")], "a must hold exactly one rule", id="no rule"),
        pytest.param([module("a", "OTHER = Rule()")], "named RULE", id="another name"),
        pytest.param([module("a", "RULE = Rule()\nRULE = Rule()")], "exactly one", id="two rules"),
        pytest.param([module("a", 'RULE = Rule("TOY1", "it breaks", f)')], "keywords", id="no keywords"),
        pytest.param([module("a", "RULE = Rule(code=CODE)")], "a: code must be written out", id="a name"),
        pytest.param([module("a", 'RULE = Rule(code="TOY1")')], "a: .*'message'", id="no message"),
        pytest.param([module("a", docs="")], "a has no documentation", id="no docs"),
        pytest.param([module("a", "RULE = (")], "a: .* never closed", id="no Python"),
        pytest.param([module("a"), module("b")], "a and b both have the code TOY1", id="twice"),
    ],
)
def test_what_is_no_rule_is_refused(modules: list[Text], error: str) -> None:
    with pytest.raises(RegistryError, match=error):
        collect(modules)


def test_the_projects_own_rules_are_collected() -> None:
    rules = codemods()
    assert rules
    assert all(codemod.rule.code.startswith("GF") and codemod.docs for codemod in rules.values())


@pytest.mark.parametrize("name", sorted(codemods()))
def test_what_is_read_of_a_rule_is_what_its_module_holds(name: str) -> None:
    module = import_module(f"gradfix.codemods.{name}")
    held = [value for value in vars(module).values() if isinstance(value, Rule)]
    read = codemods()[name]
    assert held == [module.RULE] == [replace(read.rule, rewrite=module.RULE.rewrite)]
    assert read.docs == (module.__doc__ or "").strip()


def test_a_rule_that_is_sometimes_unsafe_says_when() -> None:
    told = {name for name, each in codemods().items() if each.rule.sometimes_unsafe}
    assert told and all("unsafe" in codemods()[name].docs for name in told)


@cache
def found(name: str) -> list[Finding]:
    """What is found of a rule in its fixtures."""
    cases = (FIXTURES / name).glob("*/before.py")
    plan = Plan(Config(FIXTURES, select=(name,)))
    return [each for case in cases for each in fix(str(case), case.read_bytes(), plan).findings]


@pytest.mark.parametrize("name", sorted(codemods()))
def test_a_rule_that_promises_safe_fixes_has_no_other_in_its_fixtures(name: str) -> None:
    rule = codemods()[name].rule
    safeties = {each.safety for each in found(name)}
    assert rule.sometimes_unsafe or rule.safety is not Safety.SAFE or Safety.UNSAFE not in safeties


@pytest.mark.parametrize("name", sorted(codemods()))
def test_an_unsafe_fix_says_why_and_a_safe_one_has_nothing_to_say(name: str) -> None:
    assert [f.message for f in found(name) if bool(f.unsafe) != (f.safety is Safety.UNSAFE)] == []
