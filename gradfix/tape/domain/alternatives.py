"""What differs by path: contents that are joined, told apart again, and narrowed to what a path leaves."""

from __future__ import annotations

from typing import Any, Final

from gradfix.tape.domain.graph import Node
from gradfix.tape.domain.paths import ALWAYS, Path, meet
from gradfix.tape.domain.values import UNDEFINED, Alt, Const, Undefined, Unknown, Value

MISSING: Final[Any] = object()
"""What a cell holds that isn't there."""
LIMIT = 4
"""How many alternatives are kept apart."""


def join(options: list[tuple[Path, Any]], limit: int = LIMIT) -> Any:
    """One content for a cell that holds different ones on different paths."""
    first = options[0][1]
    if all(value is first for _, value in options):
        return first
    values = [value for _, value in options]
    if any(isinstance(value, Value) for value in values):
        return alternatives([(path, UNDEFINED if v is MISSING else v) for path, v in options], limit)
    if any(isinstance(value, Node) for value in values):
        return phi(options)
    if any(isinstance(value, list) for value in values):
        return _join_lists(options)
    if any(isinstance(value, dict) for value in values):
        return _join_dicts(options)
    if any(isinstance(value, frozenset) for value in values):
        return frozenset().union(*(value for value in values if isinstance(value, frozenset)))
    if all(type(value) is type(first) and value == first for value in values):
        return first
    if all(type(value) is tuple for value in values):
        return first
    if all(type(value) is int for value in values):
        return min(values)  # a generation: the older one looks the base up again
    return "" if isinstance(first, str) else None


def alternatives(options: list[tuple[Path, Value]], limit: int = LIMIT) -> Value:
    """The value that is each option on its path, with nested alternatives flattened and equal ones merged."""
    flat: list[tuple[Path, Value]] = []
    for option in options:
        path, value = option
        if type(value) is not Alt:
            flat.append(option)
            continue
        for guard, inner in value.options:
            if (both := meet(path, guard)) is not None:
                flat.append((both, inner))
    first = flat[0][1] if flat else UNDEFINED
    for _, value in flat:
        if not same(value, first):
            break
    else:
        return first
    if len(flat) > limit and (limit > 1 or sum(type(value) is not Undefined for _, value in flat) > 1):
        return Unknown("too many alternatives", tuple(value for _, value in flat))
    return Alt(tuple(flat))


def same(one: Value, other: Value) -> bool:
    """Whether two values can't be told apart."""
    if one is other:
        return True
    if type(one) is Const and type(other) is Const:
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    return False


def phi(options: list[tuple[Path, Any]]) -> Node:
    """The node of a tensor whose history differs by path."""
    nodes = [(path, node) for path, node in options if isinstance(node, Node)]
    requires = {node.requires for _, node in nodes}
    if len(requires) > 1 or None in requires:
        nodes = _flat(nodes)
    merged = Node(
        "phi",
        nodes[0][1].place,
        tuple(node for _, node in nodes),
        requires.pop() if len(requires) == 1 else None,
    )
    merged.guards = tuple(path for path, _ in nodes)
    merged.lean = frozenset().union(*(node.lean for _, node in nodes))
    return merged


def _flat(nodes: list[tuple[Path, Node]]) -> list[tuple[Path, Node]]:
    """The nodes of an undecided history without joins among them, so that each path tells which one it is."""
    flat: list[tuple[Path, Node]] = []
    for path, node in nodes:
        if node.op != "phi" or node.requires is not None or node.guards is None:
            flat.append((path, node))
            continue
        for guard, parent in zip(node.guards, node.parents, strict=True):
            if (both := meet(path, guard)) is not None:
                flat.append((both, parent))
    return flat if len(flat) <= 2 * LIMIT else nodes


def _join_lists(options: list[tuple[Path, Any]]) -> list[Any]:
    lists = [(path, value if isinstance(value, list) else []) for path, value in options]
    length = max(len(items) for _, items in lists)
    return [
        join([(path, items[i] if i < len(items) else UNDEFINED) for path, items in lists])
        for i in range(length)
    ]


def _join_dicts(options: list[tuple[Path, Any]]) -> dict[Any, Any]:
    dicts = [(path, value if isinstance(value, dict) else {}) for path, value in options]
    keys = list(dict.fromkeys(key for _, items in dicts for key in items))
    return {key: join([(path, items.get(key, UNDEFINED)) for path, items in dicts]) for key in keys}


def varying(value: Alt) -> frozenset[Any]:
    """What the alternatives of a value depend on."""
    return frozenset([key for guard, _ in value.options for key, _ in guard])


def one_of(value: Value) -> Value:
    """A value whose alternatives are not followed one by one."""
    if type(value) is not Alt:
        return value
    return Unknown("one of several", tuple([option for _, option in value.options]))


def multiply(left: Value, right: Value) -> bool:
    """Whether two values have more alternatives together than are kept apart."""
    if type(left) is not Alt or type(right) is not Alt or len(left.options) * len(right.options) <= LIMIT:
        return False
    met = 0
    for guard, _ in left.options:
        for other, _ in right.options:
            met += meet(guard, other) is not None
    return met > LIMIT


def possible(value: Alt, path: Path) -> list[tuple[Path, Value]]:
    """The options that a value has on a path, each with both paths at once."""
    found: list[tuple[Path, Value]] = []
    for guard, option in value.options:
        if type(option) is not Undefined and (both := meet(path, guard)) is not None:
            found.append((both, option))
    return found


def narrowed(value: Value, path: Path) -> Value:
    """What a value can be on a path, without the options that can't hold there or that a name lacks there."""
    if type(value) is not Alt:
        return value
    feasible = possible(value, path)
    if len(feasible) == 1:
        return feasible[0][1]
    if not feasible:
        return UNDEFINED
    left = [(both - path if path else both, option) for both, option in feasible]
    return Alt(tuple(left)) if len(left) < len(value.options) or path is not ALWAYS else value
