"""A tape and rules small enough to foresee: augmented assignments are the only defects."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import libcst as cst

from gradfix import registry
from gradfix.config import Config
from gradfix.defects import NOTHING, Assumption, Convention, Defect, Evidence, Role, Span
from gradfix.defects.records import Rebound
from gradfix.plan import Plan
from gradfix.registry import Codemod
from gradfix.rule import Decline, Edit, Fix, Options, Rule, Safety
from gradfix.source import Source
from gradfix.tape.analysis import Analysis, Silence
from gradfix.tape.interpreter.limits import Resolver
from gradfix.tree import Tree

KINDS: Mapping[type[ast.operator], str] = {
    ast.Add: "safe_toy",
    ast.Sub: "unsafe_toy",
    ast.Mult: "declined_toy",
    ast.Div: "endless_toy",
    ast.Mod: "broken_toy",
    ast.BitOr: "crashing_toy",
    ast.Pow: "quiet_toy",
}
PLAIN: Mapping[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.PowerAssign: cst.Power,
}


def span_of(node: ast.stmt | ast.expr) -> Span:
    """The span that `ast` gives a node."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def analyse(source: Source, resolve: Resolver | None = None) -> Analysis:
    """Every augmented assignment is a defect: certain, likely where its value is a number, a suspect where it
    isn't known (`...`); `pass` is a silence."""
    if "# tape: crash" in source.text:
        raise KeyError("the tape tore")
    if "# tape: slow" in source.text:
        time.sleep(0.4)
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, ast.AugAssign)]
    passes = [node for node in ast.walk(source.tree) if isinstance(node, ast.Pass)]
    return Analysis(
        tuple(_defect(node) for node in nodes if type(node.op) in KINDS),
        tuple(Silence(span_of(node), "nothing happens here") for node in passes),
    )


def _defect(node: ast.AugAssign) -> Defect:
    value = node.value.value if isinstance(node.value, ast.Constant) else None
    by: Convention | Assumption = Assumption.NOBODY_ELSE_USES if value is ... else Convention.B
    lean = frozenset({by}) if isinstance(node.value, ast.Constant) else NOTHING
    evidence = (Evidence(span_of(node.value), Role.ADDS),)
    return Defect(
        KINDS[type(node.op)], span_of(node), evidence, Rebound(target=ast.unparse(node.target)), lean=lean
    )


def out_of_place(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """`x += y` as `x = x + y`."""
    node = tree.at(defect.culprit, cst.AugAssign)
    assert node is not None
    value = cst.BinaryOperation(
        cst.ensure_type(node.target, cst.Name), PLAIN[type(node.operator)](), node.value
    )
    new = cst.Assign([cst.AssignTarget(node.target)], value)
    return Fix((Edit(node, new),), says=tree.code(new))


def by_hand(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    return Decline("do it by hand")


def doubled(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """A rewrite that leaves the defect where it is."""
    node = tree.at(defect.culprit, cst.AugAssign)
    assert node is not None
    return Fix((Edit(node.value, cst.BinaryOperation(node.value, cst.Add(), cst.Integer("1"))),), says="")


def broken(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """A rewrite that is not Python."""
    node = tree.at(defect.culprit, cst.AugAssign)
    assert node is not None
    return Fix((Edit(node.target, cst.Name("class")),), says="")


def crash(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    raise ZeroDivisionError("a rewrite\nthat fails")


def _codemod(name: str, rule: Rule) -> Codemod:
    return Codemod(name, rule, f"What {name} is about.\n\nIn detail.")


SAFE = Rule("TOY1", "`{culprit}` writes `{target}`", out_of_place)
ALL = (
    _codemod("safe_toy", SAFE),
    _codemod("unsafe_toy", replace(SAFE, code="TOY2", safety=Safety.UNSAFE)),
    _codemod("declined_toy", replace(SAFE, code="TOY3", rewrite=by_hand, safety=None)),
    _codemod("quiet_toy", replace(SAFE, code="TOY4", on_by_default=False)),
    _codemod("endless_toy", replace(SAFE, code="TOY11", rewrite=doubled)),
    _codemod("broken_toy", replace(SAFE, code="TOY12", rewrite=broken)),
    _codemod("crashing_toy", replace(SAFE, code="TOY13", rewrite=crash)),
)
RULES: Mapping[str, Codemod] = {codemod.name: codemod for codemod in ALL}
PLAN = Plan(Config(Path(), select=("ALL",)))


def plan(**options: object) -> Plan:
    """The plan that has all rules of the toy, with other options."""
    return Plan(PLAN.config.with_options(**options))


def install(put: Callable[[object, str, object], None]) -> None:
    """Put the toy in the place of the tape and of the rules; processes that are forked inherit it."""
    import gradfix.tape.entries

    put(gradfix.tape.entries, "analyse", analyse)
    put(registry, "codemods", lambda: RULES)
