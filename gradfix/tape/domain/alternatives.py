"""What differs by path: contents that are joined, told apart again, and narrowed to what a path leaves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Node, Storage, Tensor
from gradfix.tape.domain.paths import ALWAYS, Path, meet
from gradfix.tape.domain.torch_values import Weights
from gradfix.tape.domain.values import NOTHING, UNDEFINED, Alt, Const, Join, Seq, Undefined, Unknown
from gradfix.tape.domain.why import Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradfix.tape.domain.paths import Key
    from gradfix.tape.domain.values import Lean, Value

LIMIT = 4
"""How many alternatives are kept apart."""
T = TypeVar("T")
Options: TypeAlias = Sequence[tuple[Path, T]]
"""What there is on each path."""


def join(how: Join, options: Options[object], limit: int = LIMIT) -> object:
    """One content for a cell that holds different ones on different paths."""
    first = options[0][1]
    for _, value in options:
        if value is not first:
            return JOINED[how](options, limit)
    return first


def _value(options: Options[Value | None], limit: int) -> Value:
    """An entry that isn't there has nothing bound it."""
    return alternatives([(path, UNDEFINED if value is None else value) for path, value in options], limit)


def _items(options: Options[list[Value]], limit: int) -> list[Value]:
    length = max(len(items) for _, items in options)
    columns = ([(p, items[i] if i < len(items) else None) for p, items in options] for i in range(length))
    return [_value(column, limit) for column in columns]


def _entries(options: Options[dict[Hashable, Value]], limit: int) -> dict[Hashable, Value]:
    keys = dict.fromkeys(key for _, items in options for key in items)
    return {key: _value([(path, items.get(key)) for path, items in options], limit) for key in keys}


def _agreed(options: Options[T], limit: int) -> T | None:
    first = options[0][1]
    return first if all(value == first for _, value in options) else None


def _name(options: Options[str], limit: int) -> str:
    names = {name for _, name in options if name}
    return names.pop() if len(names) == 1 else ""


def _all(options: Options[Iterable[T]], limit: int) -> list[T]:
    return list({id(one): one for _, held in options for one in held}.values())


def _leaves(options: Options[Weights], limit: int) -> Weights:
    return Weights(options[0][1].of, _all([(path, group.leaves) for path, group in options], limit), False)


JOINED: Final[Mapping[Join, Callable[..., object]]] = {
    Join.VALUE: _value,
    Join.ITEMS: _items,
    Join.ENTRIES: _entries,
    Join.NODE: lambda options, limit: phi(options),
    Join.TRUTH: _agreed,
    Join.SOME: lambda options, limit: any(value is not False for _, value in options),
    Join.EVERY: lambda options, limit: all(value is True for _, value in options),
    Join.OLDEST: lambda options, limit: min(value for _, value in options),
    Join.UNION: lambda options, limit: frozenset().union(*(value for _, value in options)),
    Join.AGREED: _agreed,
    Join.NAME: _name,
    Join.ALL: _all,
    Join.MEMORY: lambda options, limit: Storage(),
    Join.LEAVES: _leaves,
}
"""What each way of joining makes of contents that aren't one and the same."""


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
        return _too_many([value for _, value in flat])
    return Alt(tuple(flat))


def _too_many(values: list[Value]) -> Unknown:
    """What stands for all of them: it has their reasons, and is in a graph if each of them surely is."""
    known = [value for value in values if isinstance(value, (Tensor, Unknown)) and value.requires is True]
    together = len(known) == len(values) and not any(isinstance(one, Tensor) and one.leaf for one in known)
    lean: Lean = frozenset().union(*(one.lean for one in known)) if together else NOTHING
    why = Why(What.ALTERNATIVES, "too many alternatives")
    return Unknown(why, tuple(values), requires=together or None, lean=lean)


def same(one: Value, other: Value) -> bool:
    """Whether two values can't be told apart."""
    if one is other:
        return True
    if type(one) is Const and type(other) is Const:
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    return False


def phi(options: Options[Node]) -> Node:
    """The node of a tensor whose history differs by path."""
    nodes = list(options)
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


def paired(one: Value, other: Value) -> Value:
    """A pair, which lacks where the second of it does."""
    if not isinstance(other, Alt) or there(other):
        return Seq("tuple", [one, other])
    return Alt(tuple((path, value if type(value) is Undefined else Seq("tuple", [one, value]))
                     for path, value in other.options))  # fmt: skip


def or_else(value: Value, default: Value) -> Value:
    """A value, or another one on the paths that lack it."""
    if not isinstance(value, Alt) or there(value):
        return value
    return alternatives([(path, default if type(one) is Undefined else one) for path, one in value.options])


def spelt_out(items: Sequence[Value]) -> list[tuple[Path, list[Value]]]:
    """The lists that one is which lacks elements on some paths; none where these are too many."""
    ways: list[tuple[Path, list[Value]]] = [(ALWAYS, [])]
    for item in items:
        options = item.options if isinstance(item, Alt) and not there(item) else ((ALWAYS, item),)
        ways = [
            (both, listed if type(option) is Undefined else [*listed, option])
            for path, listed in ways
            for guard, option in options
            if (both := meet(path, guard)) is not None
        ]
        if len(ways) > LIMIT:
            return []
    return ways


def varying(value: Alt) -> frozenset[Key]:
    """What the alternatives of a value depend on."""
    return frozenset([key for guard, _ in value.options for key, _ in guard])


def there(value: Value) -> bool:
    """Whether an element or entry is there on every path."""
    if type(value) is not Alt:
        return type(value) is not Undefined
    return all(type(option) is not Undefined for _, option in value.options)


def one_of(value: Value) -> Value:
    """A value whose alternatives are not followed one by one."""
    if type(value) is not Alt:
        return value
    return Unknown(Why(What.ALTERNATIVES, "one of several"), tuple([option for _, option in value.options]))


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
