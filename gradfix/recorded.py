"""Turns what the recorder saw into defects as the codemods know them: recorded places into `ast` nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradfix.defects import Defect, Evidence, Fact, Impact, Span
from gradfix.plan import Analyse, Plan, tape
from gradfix.source import Source
from gradfix.tape.analysis import Analysis
from gradfix.tape.checks.wanted_cuts import asked_for
from gradfix.verify.verdicts import STYLE, same_family

WRITES = {
    "inplace_on_graph_tensor", "inplace_overwrites_saved", "inplace_on_leaf",
    "inplace_on_view_of_many", "write_through_data",
}  # fmt: skip
STATEMENTS = {"leaf_rebound", "graph_leak", "requires_grad_on_result", "requires_grad_misspelt"}
ALWAYS_CRASH = ("inplace_module", "non_scalar_backward", "backward_twice", "no_leaf_requires_grad")
CRASHES = {*WRITES - {"write_through_data"}, *ALWAYS_CRASH}
SPANS = {
    "this step's backward": "step_backward",
    "used here": "step",
    "again here": "again",
    "backward here": "backward",
    "backward needs it here": "backward",
    "gradients from here": "backward",
    "step finds none": "step",
    "replaced here": "replacement",
    "cut here": "cut",
    "gradient read here": "read",
    "carried from here": "carried",
}
"""Which step of the evidence is which fact."""
WHOLE = ("replacement", "carried")
"""Facts that are statements."""
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
            if _wanted(event, path, source):
                continue
            for defect in confirmed(event, path, known) or [of_event(event, path, source)]:
                if defect.certainty == "certain" or (defect.kind, defect.culprit) not in found:
                    found[defect.kind, defect.culprit] = defect
        return Analysis(tuple(found.values()))

    return analyse


def _wanted(event: Mapping[str, Any], path: str, source: Source) -> bool:
    """Whether parameters were left unreached by a cut that the program asked for."""
    cuts = [step["place"] for step in event["evidence"] if SPANS.get(step["role"]) == "cut"]
    own = [place["line"] for place in cuts if place["file"] == path]
    return event["kind"] == "unreached_parameters" and any(asked_for(source.tree, line) for line in own)


def confirmed(event: Mapping[str, Any], path: str, known: Sequence[Defect]) -> list[Defect]:
    """The tape's defects that describe what the run met; the only one, or one in its place, is certain."""
    found = described(event, path, known)
    line = event["place"]["line"] if event["place"]["file"] == path else 0
    return [
        replace(one, certainty="certain", conventions=()) if len(found) == 1 or covers(one, line) else one
        for one in found
    ]


def covers(defect: Defect, line: int) -> bool:
    """Whether a defect's culprit stands on a line."""
    return defect.culprit.line <= line <= defect.culprit.end_line


def described(event: Mapping[str, Any], path: str, known: Sequence[Defect]) -> list[Defect]:
    """The tape's defects of the kind of an event, or of its family, that lie where the run met it."""
    places = [event["place"], *(step["place"] for step in event["evidence"])]
    lines = {place["line"] for place in places if place["file"] == path}
    family = [
        defect for defect in known if same_family(defect.kind, event["kind"]) and defect.kind not in STYLE
    ]
    if event["kind"] in STYLE:
        family = [defect for defect in known if defect.kind == event["kind"]]
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
    evidence = tuple(step_of(step, path, source) for step in event["evidence"])
    impact: Impact = "crashes" if event["torch_says"] or kind in CRASHES else "trains wrong"
    return Defect(
        kind, span, evidence, "certain", impact,
        torch_says=event["torch_says"].splitlines()[0] if event["torch_says"] else "",
        facts=facts_of(event, node, path, source),
    )  # fmt: skip


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
    if kind in WRITES:
        yield is_a(ast.AugAssign)
        yield stores_item
        yield is_a(ast.Call)
    elif kind in STATEMENTS:
        yield is_a(ast.AugAssign, ast.Assign)
        yield is_a(ast.Expr)
    elif kind == "forward_in_no_grad":
        yield is_a(ast.With)
    elif kind in ("detached_loss_path", "severed_term", "converted_loss_path"):
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


def step_of(step: Mapping[str, Any], path: str, source: Source) -> Evidence:
    """One step of the chain, in this file or another."""
    place = step["place"]
    if place["file"] != path:
        span = Span(place["line"], place["column"] or 0, place["end_line"], place["end_column"] or 0)
        return Evidence(span, step["role"], shown(place["file"]))
    node = next((node for node in ast.walk(source.tree) if same(node, place)), None)
    return Evidence(span_of(node) if node is not None else whole_line(place, source), step["role"])


def shown(path: str) -> str:
    """A path as the user will recognise it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def facts_of(event: Mapping[str, Any], node: ast.AST | None, path: str, source: Source) -> dict[str, Fact]:
    """What messages and rewrites ask for, as far as a run can tell."""
    found: dict[str, Fact] = {
        **dict.fromkeys(("zero", "later_step", "rewrap", "cut", "carried", "reduction")),
        **dict.fromkeys(("term", "state", "misspelt", "others", "target", "maker", "cut_kind", "op"), ""),
        **dict.fromkeys(("optimizer", "saver", "root", "scaler", "function", "attribute", "module"), ""),
        **{key: value for key, value in event["facts"].items() if isinstance(value, (str, bool, int))},
        "aliased": False, "promotes": False, "form": form_of(event, node), "pollutes": True,
        "parameters": (str(event["facts"].get("parameter", "")),),
    }  # fmt: skip
    found.update(spans_of(event, path, source))
    if event["kind"] == "non_differentiable_loss":
        found["op"] = str(found["form"]).strip("_") or "this call"
    if event["kind"] == "graph_leak":
        found["value"] = added(node)
    if event["kind"] == "non_scalar_backward" and isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node
        found["root"] = ast.unparse(owner)
    if isinstance(node, (ast.AugAssign, ast.Assign)):
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        found["target"] = ast.unparse(target)
    return found


def spans_of(event: Mapping[str, Any], path: str, source: Source) -> dict[str, Fact]:
    """The steps of the evidence that facts are made of, where they are in this file."""
    found: dict[str, Fact] = {"backward": None}
    for step in event["evidence"]:
        name = SPANS.get(step["role"])
        if name is None or step["place"]["file"] != path:
            continue
        span = step_of(step, path, source).span
        found[name] = statement_at(step["place"]["line"], source) if name in WHOLE else span
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
    if event["kind"] not in WRITES:
        return str(event["facts"].get("form", ""))
    if isinstance(node, ast.AugAssign):
        return "augassign"
    if isinstance(node, ast.Assign):
        return "setitem"
    names = [word.arg for word in node.keywords] if isinstance(node, ast.Call) else []
    return "out" if "out" in names else ("keyword" if "inplace" in names else "method")
