"""Reads the rules in the texts of their modules, and resolves which are selected.

A codemod is imported when it has something to rewrite, and libcst with it: whatever else is asked of a rule
stands written out in its module.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from operator import eq
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradfix.outcome import RuleCard
from gradfix.rule import Decline, Fix, Options, Rule, Safety
from gradfix.source import Failure, Source, parse

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree

PACKAGE = "gradfix.codemods"
SIBLING = Path(__file__).resolve().parent.parent / "codemods"
ALIKE = 0.75
"""How alike a slip and what was meant are: one sign of a code's five may be wrong."""
SENTENCE = re.compile(r".*?\.(?=\s|$)")


class RegistryError(Exception):
    """A rule module that is not one, or a selector that names no rule."""


@dataclass(frozen=True, slots=True)
class Codemod:
    """A rule with the name and the documentation of the module that holds it."""

    name: str
    rule: Rule
    docs: str

    @property
    def card(self) -> RuleCard:
        rule = self.rule
        summary, switches = self._summary(), (rule.on_by_default, rule.sometimes_unsafe)
        return RuleCard(rule.code, self.name, summary, self.docs, rule.safety, *switches)

    def _summary(self) -> str:
        """The first sentence of the documentation, on one line."""
        opening = " ".join(self.docs.partition("\n\n")[0].split())
        sentence = SENTENCE.match(opening)
        return sentence[0] if sentence else opening


@cache
def codemods() -> Mapping[str, Codemod]:
    """All codemods by name, in the order of their codes."""
    files = [file for folder in _package().__path__ for file in sorted(Path(folder).glob("*.py"))]
    return collect((file.stem, file.read_bytes()) for file in files if file.stem != "__init__")


def collect(modules: Iterable[tuple[str, bytes]]) -> Mapping[str, Codemod]:
    """The codemods of modules, given by name and text; in the order of their codes."""
    by_code: dict[str, Codemod] = {}
    for name, content in modules:
        codemod = _codemod(name, content)
        other = by_code.setdefault(codemod.rule.code, codemod)
        if other is not codemod:
            raise RegistryError(f"{other.name} and {codemod.name} both have the code {codemod.rule.code}")
    return {codemod.name: codemod for _, codemod in sorted(by_code.items())}


def resolve(
    rules: Mapping[str, Codemod],
    select: Iterable[str] | None,
    ignore: Iterable[str],
    extend: Iterable[str] = (),
) -> frozenset[str]:
    """The names of the selected rules: the longer selector wins, `ignore` where they are equally long."""
    wanted, unwanted = list(select or ()), list(ignore)
    extended = list(extend)
    return frozenset(
        name
        for name, codemod in rules.items()
        if max(
            _weight(wanted, codemod),
            _weight(extended, codemod),
            0 if select is None and codemod.rule.on_by_default else -1,
        )
        > _weight(unwanted, codemod)
    )


def unknown(rules: Mapping[str, Codemod], selectors: Iterable[str]) -> Iterator[str]:
    """The selectors that name no rule."""
    for selector in selectors:
        if not any(_weight((selector,), codemod) >= 0 for codemod in rules.values()):
            yield selector


def find(rules: Mapping[str, Codemod], name: str) -> Codemod | None:
    """The rule of a code or a name."""
    asked = name.lower()
    return next((each for each in rules.values() if asked in (each.name, each.rule.code.lower())), None)


def suggestion(rules: Mapping[str, Codemod], selector: str) -> str:
    """What to say after a selector that names no rule."""
    from difflib import get_close_matches

    words = {word.lower(): word for each in rules.values() for word in (each.rule.code, each.name)}
    slip = selector.lower()
    close = get_close_matches(slip, words, len(words) or 1, ALIKE)
    if not close:
        return "see --list-rules"
    closest = max(close, key=lambda word: sum(map(eq, word, slip)) if len(word) == len(slip) else 0)
    return f"did you mean {words[closest]}?"


def names(selector: str, code: str, name: str) -> bool:
    """Say whether a selector, in any case, names the rule of a code and a name."""
    return _closeness(selector, code, name) >= 0


def _weight(selectors: Iterable[str], codemod: Codemod) -> int:
    """How closely the closest selector names a rule; -1: none does."""
    code, name = codemod.rule.code, codemod.name
    return max((_closeness(selector, code, name) for selector in selectors), default=-1)


def _closeness(selector: str, code: str, name: str) -> int:
    if selector.upper() == "ALL":
        return 1
    if selector.lower() == name:
        return len(code) + 1
    return len(selector) + 1 if selector and code.startswith(selector.upper()) else -1


def _codemod(name: str, content: bytes) -> Codemod:
    source = parse(f"{name}.py", content)
    if isinstance(source, Failure):
        raise RegistryError(f"{name}: {source.reason}")
    docs = ast.get_docstring(source.tree)
    if not docs:
        raise RegistryError(f"{name} has no documentation")
    return Codemod(name, _rule(name, source), docs.strip())


def _rule(name: str, source: Source) -> Rule:
    """The rule that a module's text writes out."""
    values = [node.value for node in source.tree.body if isinstance(node, ast.Assign) if _names_rule(node)]
    if len(values) != 1 or not isinstance(values[0], ast.Call) or values[0].args:
        raise RegistryError(f"{name} must hold exactly one rule, named RULE, with its keywords")
    said = {each.arg: _said(name, each) for each in values[0].keywords if each.arg not in (None, "rewrite")}
    try:
        return Rule(rewrite=partial(_rewrite, name), **said)
    except TypeError as error:
        raise RegistryError(f"{name}: {error}") from error


def _names_rule(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "RULE" for target in node.targets)


def _said(name: str, keyword: ast.keyword) -> Any:
    """The value of a keyword of a rule: a literal, or a member of Safety."""
    value = keyword.value
    if isinstance(value, ast.Attribute) and value.attr in Safety.__members__:
        return Safety[value.attr]
    if isinstance(value, ast.Constant):
        return value.value
    raise RegistryError(f"{name}: {keyword.arg} must be written out")


def _rewrite(name: str, defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """A codemod's rewrite, by the codemod's name."""
    rule: Rule = import_module(f"{_package().__name__}.{name}").RULE
    return rule.rewrite(defect, tree, options)


def _package() -> ModuleType:
    """The package of the rules; in a checkout that was never installed, the sibling folder."""
    try:
        return import_module(PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != PACKAGE or not (SIBLING / "__init__.py").exists():
            raise
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        PACKAGE, SIBLING / "__init__.py", submodule_search_locations=[str(SIBLING)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)
    return package
