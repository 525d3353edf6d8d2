"""Turns what the recorder saw into defects as the codemods know them: recorded places into `ast` nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any

from gradfix.defects import NOTHING, Defect, Evidence, Impact, Role, Span, kind_of, same_family
from gradfix.defects.facts import Facts
from gradfix.defects.records import Kept, NonScalar, record_of
from gradfix.defects.severed import NoGradient, Unrecorded
from gradfix.plan import Analyse, Plan, tape
from gradfix.source import Source
from gradfix.tape.analysis import Analysis
from gradfix.tape.checks.wanted_cuts import asked_for

FIELDS: Mapping[Role, str] = {
    Role.STEPS_BACKWARD: "step_backward",
    Role.USED: "step",
    Role.AGAIN: "again",
    Role.BACKWARD_HERE: "backward",
    Role.BACKWARD_NEEDS: "backward",
    Role.WITHOUT: "backward",
    Role.ASKED: "backward",
    Role.GIVEN: "backward",
    Role.FINDS_NONE: "step",
    Role.REPLACED: "replacement",
    Role.CUT: "cut",
    Role.FROZEN: "cut",
    Role.CARRIED: "carried",
}
"""Which step of the evidence is which field of the record."""
WHOLE = frozenset({Role.REPLACED, Role.CARRIED})
"""Steps that stand for the statement which they are in."""
Match = Callable[[ast.AST], bool]


def analysis_of(
    path: str, content: bytes, events: Sequence[Mapping[str, Any]], play: Analyse | None = tape
) -> Analyse:
    """An analysis of this very text: the tape's defects where the run confirms them, else the run's own.

    `play` None: leave the tape out, as for a file that it cannot read.
    """

    def analyse(source: Source, plan: Plan) -> Analysis:
        if source.content != content:
            return Analysis(())
        known = play(source, plan).defects if play else ()
        found: dict[tuple[str, Span], Defect] = {}
        for event in events:
            if wanted(event, path, source):
                continue
            for defect in confirmed(event, path, known) or [of_event(event, path, source)]:
                if defect.certainty == "certain" or (defect.kind, defect.culprit) not in found:
                    found[defect.kind, defect.culprit] = defect
        return Analysis(tuple(found.values()))

    return analyse


def wanted(event: Mapping[str, Any], path: str, source: Source) -> bool:
    """Whether parameters were left unreached by a cut that the program asked for."""
    cuts = [step["place"] for step in event["evidence"] if Role[step["role"]] is Role.CUT]
    own = [place["line"] for place in cuts if place["file"] == path]
    return kind_of(event["kind"]).effect and any(asked_for(source.tree, line) for line in own)


def confirmed(event: Mapping[str, Any], path: str, known: Sequence[Defect]) -> list[Defect]:
    """The tape's defects that describe what the run met; the only one, or one in its place, is certain."""
    found = described(event, path, known)
    line = event["place"]["line"] if event["place"]["file"] == path else 0
    return [replace(one, lean=NOTHING) if len(found) == 1 or covers(one, line) else one for one in found]


def covers(defect: Defect, line: int) -> bool:
    """Whether a defect's culprit stands on a line."""
    return defect.culprit.line <= line <= defect.culprit.end_line


def described(event: Mapping[str, Any], path: str, known: Sequence[Defect]) -> list[Defect]:
    """The tape's defects of the kind of an event, or of its family, that lie where the run met it."""
    places = [event["place"], *(step["place"] for step in event["evidence"])]
    lines = {place["line"] for place in places if place["file"] == path}
    style = kind_of(event["kind"]).style
    family = [
        defect
        for defect in known
        if same_family(defect.kind, event["kind"]) and kind_of(defect.kind).style is style
    ]
    own = [defect for defect in family if defect.kind == event["kind"]]
    near = [one for one in own if lines & {one.culprit.line, *(step.span.line for step in one.evidence)}]
    if near:
        return near
    line = event["place"]["line"]
    at = [one for one in family if covers(one, line)]
    touching = [one for one in family if lines & set(range(one.culprit.line, one.culprit.end_line + 1))]
    return at or touching or (own if len(own) == 1 else [])


def of_event(event: Mapping[str, Any], path: str, source: Source) -> Defect:
    """A defect from a recorded event alone."""
    kind, place = event["kind"], event["place"]
    held = str(event["facts"].get("held_by", ""))
    node = (appends(held, place["line"], source) if held else None) or culprit(kind, place, source)
    span = span_of(node) if node is not None else whole_line(place, source)
    subject = str(event["facts"].get("saver", ""))
    evidence = tuple(step_of(step, path, source, subject) for step in event["evidence"])
    says = event["torch_says"].splitlines()[0] if event["torch_says"] else ""
    return Defect(
        kind, span, evidence, facts_of(event, node, path, source), impact_of(kind, says), torch_says=says
    )


def impact_of(kind: str, says: str) -> Impact:
    """What a defect of a kind has done, where torch has said this."""
    traits = kind_of(kind)
    if traits.style:
        return "style"
    if says or traits.refused:
        return "crashes"
    return "trains wrong" if traits.impact == "crashes" else traits.impact


def culprit(kind: str, place: Mapping[str, Any], source: Source) -> ast.AST | None:
    """The node that has to change, by the recorded place."""
    inside = [node for node in ast.walk(source.tree) if at(node, place)]
    exact = [node for node in inside if same(node, place)]
    for wanted in preferences(kind):
        for nodes in (exact, inside):
            found = [node for node in nodes if wanted(node)]
            if found:
                return min(found, key=length)
    return None


def preferences(kind: str) -> Iterator[Match]:
    """Which nodes can be the culprit of a kind, the likeliest first."""
    wanted = kind_of(kind).culprit
    if wanted == "write":
        yield is_a(ast.AugAssign)
        yield stores_item
        yield is_a(ast.Call)
    elif wanted == "statement":
        yield is_a(ast.AugAssign, ast.Assign)
        yield is_a(ast.Expr)
    elif wanted == "with":
        yield is_a(ast.With)
    elif wanted == "expression":
        yield is_a(ast.Call, ast.Attribute)
    yield is_a(ast.Call)
    yield is_a(ast.stmt)


def is_a(*types: type[ast.AST]) -> Match:
    """A test of a node's type."""
    return lambda node: isinstance(node, types)


def stores_item(node: ast.AST) -> bool:
    """An assignment to an index."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute))


def at(node: ast.AST, place: Mapping[str, Any]) -> bool:
    """Whether a node with a position holds the place."""
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= place["line"] and place["end_line"] <= last


def same(node: ast.AST, place: Mapping[str, Any]) -> bool:
    """Whether a node is exactly where the interpreter said."""
    own = tuple(
        getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )
    return own == (place["line"], place["column"], place["end_line"], place["end_column"])


def length(node: Any) -> tuple[int, int]:
    """How much a node covers."""
    return node.end_lineno - node.lineno, node.end_col_offset - node.col_offset


def span_of(node: Any) -> Span:
    """A node's place."""
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def whole_line(place: Mapping[str, Any], source: Source) -> Span:
    """A line of which nothing more is known."""
    lines = source.text.splitlines()
    line = min(max(place["line"], 1), max(len(lines), 1))
    text = lines[line - 1] if lines else ""
    return Span(line, len(text) - len(text.lstrip()), line, len(text.encode()))


def step_of(step: Mapping[str, Any], path: str, source: Source, subject: str = "") -> Evidence:
    """One step of the chain, in this file or another."""
    place = step["place"]
    if place["file"] != path:
        span = Span(place["line"], place["column"] or 0, place["end_line"], place["end_column"] or 0)
        return Evidence(span, Role[step["role"]], shown(place["file"]), subject)
    node = next((node for node in ast.walk(source.tree) if same(node, place)), None)
    span = span_of(node) if node is not None else whole_line(place, source)
    return Evidence(span, Role[step["role"]], subject=subject)


def shown(path: str) -> str:
    """A path as the user will recognise it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def facts_of(event: Mapping[str, Any], node: ast.AST | None, path: str, source: Source) -> Facts:
    """What messages and rewrites ask for, as far as a run can tell."""
    record = record_of(event["kind"])
    plain = {name: fact for name, fact in event["facts"].items() if isinstance(fact, (str, bool, int))}
    found: dict[str, Any] = {**plain, **spans_of(event, path, source), "form": form_of(event, node)}
    if "parameter" in plain:
        found["parameters"] = (str(plain["parameter"]),)
    if isinstance(node, (ast.AugAssign, ast.Assign)):
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        found["target"] = ast.unparse(target)
    found.update(_own(record, str(found["form"]), node, event["torch_says"]))
    return record(**{each.name: found[each.name] for each in fields(record) if _fits(each, found)})


def _own(record: type[Facts], form: str, node: ast.AST | None, says: str) -> dict[str, Any]:
    """What is read off the culprit itself, by the record that asks for it."""
    if record is NoGradient:
        return {"op": form.strip("_") or "this call"}
    if record is Unrecorded:
        form, _, mode = form.partition(" ")
        return {"form": form, "mode": mode or "no_grad", "saved": "Inference tensors" in says}
    if record is Kept:
        return {"value": added(node)}
    if record is NonScalar and isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node
        return {"root": ast.unparse(owner)}
    return {}


def _fits(field: Field[Any], found: Mapping[str, Any]) -> bool:
    """Whether a run has something of a field's type to say."""
    kind = Span if field.default is None else type(field.default)
    return isinstance(found.get(field.name), kind)


def spans_of(event: Mapping[str, Any], path: str, source: Source) -> dict[str, Span | None]:
    """The steps of the evidence that facts are made of, where they are in this file."""
    found: dict[str, Span | None] = {}
    for step in event["evidence"]:
        role = Role[step["role"]]
        name = FIELDS.get(role)
        if name is None or step["place"]["file"] != path:
            continue
        span = step_of(step, path, source).span
        found[name] = statement_at(step["place"]["line"], source) if role in WHOLE else span
    return found


def statement_at(line: int, source: Source) -> Span | None:
    """The innermost statement on a line."""
    found = [
        n
        for n in ast.walk(source.tree)
        if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)
    ]
    return span_of(min(found, key=length)) if found else None


def appends(name: str, line: int, source: Source) -> ast.AST | None:
    """The statement that appends to a list: by the list's last name, else by what it appends."""
    last = name.partition("[")[0].rpartition(".")[2]
    nodes = list(ast.walk(source.tree))
    found: list[Any] = [node for node in nodes if isinstance(node, ast.Expr) and is_append(node)]
    made = [n for n in nodes if isinstance(n, ast.Assign) and n.lineno <= line <= (n.end_lineno or 0)]
    values = {ast.unparse(target) for one in made for target in one.targets}
    by_name = [node for node in found if last in ast.unparse(node.value.func.value)]
    by_value = [node for node in found if ast.unparse(node.value.args[0]) in values]
    return next(iter(by_name + by_value), None)


def is_append(node: Any) -> bool:
    """Whether a statement is `x.append(y)`."""
    call = node.value
    func = call.func if isinstance(call, ast.Call) and len(call.args) == 1 else None
    return isinstance(func, ast.Attribute) and func.attr == "append"


def added(node: ast.AST | None) -> Span | None:
    """What a statement adds to a total or a list."""
    if isinstance(node, ast.AugAssign):
        return span_of(node.value)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        target, sides = ast.unparse(node.targets[0]), (node.value.left, node.value.right)
        return next((span_of(side) for side in sides if ast.unparse(side) != target), None)
    call = node.value if isinstance(node, ast.Expr) else None
    return span_of(call.args[0]) if isinstance(call, ast.Call) and call.args else None


def form_of(event: Mapping[str, Any], node: ast.AST | None) -> str:
    """How the culprit is written."""
    if kind_of(event["kind"]).culprit != "write":
        return str(event["facts"].get("form", ""))
    if isinstance(node, ast.AugAssign):
        return "augassign"
    if isinstance(node, ast.Assign):
        return "setitem"
    names = [word.arg for word in node.keywords] if isinstance(node, ast.Call) else []
    return "out" if "out" in names else ("keyword" if "inplace" in names else "method")
