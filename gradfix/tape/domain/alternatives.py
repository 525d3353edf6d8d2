"""What differs by path: contents that are joined, and kept apart as alternatives or made one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Node, Number, Storage, Tensor
from gradfix.tape.domain.narrowing import there
from gradfix.tape.domain.paths import ALWAYS, Path, meet, simplest
from gradfix.tape.domain.torch_values import Weights
from gradfix.tape.domain.values import NOTHING, UNDEFINED, Alt, Const, Join, Undefined, Unknown
from gradfix.tape.domain.why import Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradfix.tape.domain.values import Lean, Truth, Value

LIMIT = 4
"""How many alternatives are kept apart."""
WIDE = 64
"""How many values are looked at one by one of which one is, where these are of several in turn."""
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
    if len(flat) > limit > 1:
        flat = _reunited(flat)
    if len(flat) > limit and (limit > 1 or sum(type(value) is not Undefined for _, value in flat) > 1):
        return as_one(flat, Why(What.ALTERNATIVES, "too many alternatives"))
    return Alt(tuple(flat))


def _reunited(options: list[tuple[Path, Value]]) -> list[tuple[Path, Value]]:
    """Options with those as one that are the same value whichever way one test comes out."""
    found: list[tuple[Path, Value]] = []
    alike: dict[Hashable, list[int]] = {}
    for path, value in options:
        places = alike.setdefault(_alike(value), [])
        for place in places:
            other, known = found[place]
            differing = path ^ other
            if same(value, known) and len(differing) == 2 and len({key for key, _ in differing}) == 1:
                found[place] = (path & other, known)
                break
        else:
            places.append(len(found))
            found.append((path, value))
    return found


def _alike(value: Value) -> Hashable:
    """What two values have in common that are the same."""
    if type(value) is not Const:
        return id(value)
    held = value.value
    return type(held), held if isinstance(held, (str, int, float)) else None


def as_one(options: list[tuple[Path, Value]], why: Why) -> Value:
    """What is known of a value, whichever of its alternatives it is."""
    tensors = [(path, value) for path, value in options if type(value) is Tensor and _may_be_one(value)]
    if len(tensors) == len(options):
        return _one_for(tensors, phi([(path, tensor.node) for path, tensor in tensors]))
    values = [value for _, value in options]
    kinds = {_number(value) for value in values}
    if len(kinds) == 1 and (kind := kinds.pop()):
        origins = tuple([value.node for value in values if type(value) is Number])
        return Number(Node("number", None, origins, False), None, kind)
    one = Unknown(why, tuple(values))
    one.options = tuple([option for option in options if type(option[1]) is not Undefined])
    values = [value for _, value in one.options]
    one.requires = _in_a_graph(values)
    if one.requires is True:
        lean: Lean = NOTHING
        one.lean = lean.union(*(value.lean for value in values if isinstance(value, (Tensor, Unknown))))
    return one


def _number(value: Value) -> str:
    """What kind of number or array it is, where it counts as one only, and not as dimensions or turns."""
    if type(value) is Number:
        return value.kind
    return "number" if type(value) is Const and type(value.value) is float else ""


def _in_a_graph(values: Sequence[Value]) -> Truth:
    """Whether each of some values is in a graph, or none."""
    facts: set[Truth] = set()
    for value in values:
        if isinstance(value, Unknown) and value.tensor is not None:
            value = value.tensor
        facts.add(value.requires if isinstance(value, (Tensor, Unknown)) else None)
    return facts.pop() if len(facts) == 1 else None


def _may_be_one(value: Value) -> bool:
    """Whether nothing is asked of a tensor by which it is told from others, as of a leaf or a gradient."""
    if type(value) is not Tensor or value.grad_of is not None or value.slot is not None:
        return False
    if value.leaf is not False and (value.requires is not False or value.parameter):
        return False
    if value.counter is not None or value.data_of is not None or value.storage.inference is not None:
        return False
    whole = value.base is None or value.generation >= value.storage.generation
    return whole and (value.layout is True or value.view in ("", "loose"))


def _one_for(options: Sequence[tuple[Path, Tensor]], history: Node) -> Tensor:
    """One tensor in the place of several, whose histories are joined."""
    tensors = [tensor for _, tensor in options]
    storage = Storage(any(tensor.storage.argument for tensor in tensors))
    storage.parts = tuple(options)
    one = Tensor(history, storage, history.requires, _shared([tensor.leaf for tensor in tensors]))
    one.place = tensors[0].place
    one.shape = _shared([tensor.shape for tensor in tensors])
    one.dtype = _shared([tensor.dtype for tensor in tensors]) or ""
    one.layout = _shared([tensor.layout for tensor in tensors])
    one.name = _shared([tensor.name for tensor in tensors]) or ""
    one.retained = any(tensor.retained for tensor in tensors)
    return one


def _shared(facts: Sequence[T]) -> T | None:
    return facts[0] if all(fact == facts[0] for fact in facts) else None


def same(one: Value, other: Value) -> bool:
    """Whether two values can't be told apart."""
    if one is other:
        return True
    if type(one) is Const and type(other) is Const:
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    return False


def phi(options: Options[Node], value: Unknown | None = None) -> Node:
    """The node of a tensor whose history differs by path, or of a value that isn't known but for that."""
    nodes = list(options)
    requires = {node.requires for _, node in nodes}
    if len(requires) > 1 or None in requires:
        nodes = _sorted(_flat(nodes)) or nodes  # on no path at all, where the paths contradict each other
    merged = Node(
        "phi",
        nodes[0][1].place,
        tuple(node for _, node in nodes),
        requires.pop() if len(requires) == 1 else None,
    )
    merged.guards = tuple(path for path, _ in nodes)
    merged.lean = frozenset().union(*(node.lean for _, node in nodes))
    merged.facts = {"value": value} if value is not None else None
    return merged


def _sorted(nodes: list[tuple[Path, Node]]) -> list[tuple[Path, Node]]:
    """Of many nodes those that are in a graph as one, and those that aren't."""
    alike: dict[Truth, list[tuple[Path, Node]]] = {}
    for path, node in nodes:
        alike.setdefault(node.requires, []).append((path, node))
    if len(nodes) <= 2 * LIMIT or len(alike) < 2:
        return nodes
    joined = [(phi(options), simplest([path for path, _ in options])) for options in alike.values()]
    return [(path, node) for node, paths in joined for path in paths]


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


def one_of(value: Value) -> Value:
    """A value whose alternatives are not followed one by one."""
    if type(value) is not Alt:
        return value
    return as_one(list(value.options), Why(What.ALTERNATIVES, "one of several"))


def multiply(left: Value, right: Value) -> bool:
    """Whether two values have more alternatives together than are kept apart."""
    if type(left) is not Alt or type(right) is not Alt or len(left.options) * len(right.options) <= LIMIT:
        return False
    met = 0
    for guard, _ in left.options:
        for other, _ in right.options:
            met += meet(guard, other) is not None
    return met > LIMIT


def wide(value: Unknown) -> bool:
    """Whether a value is one of more than are looked at one by one, each way to it counted."""
    stack, met = [value], 0
    while stack:
        met += len(stack[-1].options)
        if met > WIDE:
            return True
        stack.extend([option for _, option in stack.pop().options if type(option) is Unknown])
    return False


def ways_of(value: Value) -> list[Value]:
    """The values of which one is, kept apart or not; itself, where it is no such thing."""
    if isinstance(value, Alt):
        return [one for _, option in value.options for one in ways_of(option)]
    return each_of(value) if isinstance(value, Unknown) and value.options else [value]


def each_of(value: Unknown) -> list[Value]:
    """The values of which one is, however many: each once, whatever the ways to it."""
    found: dict[int, Value] = {id(value): value}
    stack = [value]
    while stack:
        for _, option in stack.pop().options:
            if id(option) not in found:
                found[id(option)] = option
                if type(option) is Unknown:
                    stack.append(option)
    return list(found.values())
