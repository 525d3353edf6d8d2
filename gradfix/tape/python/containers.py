"""What happens to lists, sets and dicts: what is put in, and what may be gone from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import one_of, or_else
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.narrowing import paired, there
from gradfix.tape.domain.values import NONE, UNDEFINED, Alt, Const, Map, Seq, Slice, Unknown, unknown_of
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.torch.elements import elements, part

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter

GROW = frozenset({"append", "extend", "insert"})
"""What makes a list longer."""
LOOKS = frozenset({"index", "count", "issubset", "issuperset", "isdisjoint", "union", "intersection",
                   "difference", "fromkeys", "most_common"})  # fmt: skip
"""What takes nothing out and puts nothing in."""
MOVED = Why(What.ELEMENT, "an element that may have been taken out")
MANY = 256
"""How many elements are kept apart."""
HELD = frozenset({Tensor, Unknown, Alt, Number, Seq, Map, Const})
"""What is doubted when it may be gone; objects and modules are what they are."""


def in_doubt(items: Iterable[Value]) -> list[Value]:
    """Elements of which each may be another by now, or gone."""
    return [_doubted(item) if type(item) in HELD else item for item in items]


def _doubted(item: Value) -> Unknown:
    if isinstance(item, Unknown) and item.why is MOVED:
        return item
    doubt = Unknown(MOVED, (item,))
    doubt.part = True
    return doubt


def may_lose(trail: Trail, owner: Seq | Map) -> None:
    """Something is done to a container that nobody knows: any element may be gone, and more be there."""
    if isinstance(owner, Seq):
        trail.set(owner, "items", in_doubt(owner.items))
    else:
        trail.set(owner, "items", dict(zip(owner.items, in_doubt(owner.items.values()), strict=True)))
    trail.set(owner, "open", True)


def sequence_method(vm: Interpreter, receiver: Seq, name: str, args: Args) -> Value:
    """A method of a list, a tuple or a set."""
    items = receiver.items
    if name in ("pop", "insert") and not all(map(there, items)):
        vm.trail.set(receiver, "items", [one_of(item) for item in items])
        vm.trail.set(receiver, "open", True)
    if name in GROW and receiver.born < vm.machine.tested.cut:
        vm.machine.tested.grown[id(receiver)] = receiver
    if name == "append" and args:
        if len(items) < MANY:
            vm.trail.set(receiver, "items", [*items, args[0]])
        else:
            vm.trail.set(receiver, "open", True)
        return NONE
    if name == "extend" and args:
        more, known = elements(vm, args[0], receiver.place) if receiver.place else (None, False)  # type: ignore[arg-type]
        if isinstance(args[0], Seq):
            more, known = args[0].items, not args[0].open
        vm.trail.set(receiver, "items", [*items, *(more if more is not None else [part(args[0])])])
        if not known:
            vm.trail.set(receiver, "open", True)
        return NONE
    if name == "insert" and len(args) > 1:
        place = args[0].value if isinstance(args[0], Const) and isinstance(args[0].value, int) else 0
        vm.trail.set(receiver, "items", [*items[:place], args[1], *items[place:]])
        if not isinstance(args[0], Const):
            vm.trail.set(receiver, "open", True)  # between any two of them
        return NONE
    if name == "clear":
        vm.trail.set(receiver, "items", [])
        vm.trail.set(receiver, "open", False)
        vm.machine.tested.grown.pop(id(receiver), None)
        return NONE
    if name == "copy":
        return Seq(receiver.kind, list(items), receiver.open, None, receiver.some)
    return _taken_out(vm.trail, receiver, name, args)


def _taken_out(trail: Trail, receiver: Seq, name: str, args: Args) -> Value:
    """Methods that take elements out of a list, move them, or only look."""
    items = receiver.items
    if name in ("pop", "popleft", "remove") and not receiver.open:
        at = _where(items, name, args)
        if at is not None:
            trail.set(receiver, "items", [*items[:at], *items[at:][1:]])
            return items[at] if name != "remove" else NONE
    if name in ("add", "appendleft") and args:
        trail.set(receiver, "items", [*items, args[0]])
        trail.set(receiver, "open", True)
        return NONE
    if name == "reverse" and not receiver.open:
        trail.set(receiver, "items", items[::-1])
        return NONE
    if name in ("sort", "reverse"):
        trail.set(receiver, "items", [Unknown(MOVED, tuple(items)) for _ in items])
    elif name not in LOOKS and receiver.kind != "tuple":
        may_lose(trail, receiver)
    if name in ("reverse", "sort", "remove", "discard"):
        return NONE
    return unknown_of(Why(What.ELEMENT, "an element or a fact of a list"), *items, *args)


def _where(items: list[Value], name: str, args: Args) -> int | None:
    """Which element is taken out."""
    if name == "remove":
        return next((i for i, item in enumerate(items) if args and item is args[0]), None)
    default = 0 if name == "popleft" else -1
    at = (args[0].value if isinstance(args[0], Const) else None) if args else default
    if isinstance(at, int) and -len(items) <= at < len(items):
        return at % len(items)
    return None


def store_in_sequence(trail: Trail, owner: Seq, key: Value, value: Value) -> None:
    """`xs[key] = value`."""
    items = owner.items
    at = key.value if isinstance(key, Const) else None
    if isinstance(at, int) and -len(items) <= at < len(items):
        listed = list(items)
        listed[at] = value
        trail.set(owner, "items", listed)
        return
    put = value.items if isinstance(key, Slice) and isinstance(value, Seq) else [value]
    if isinstance(key, Slice) and key.lower is NONE and key.upper is NONE and key.step is NONE:
        whole = isinstance(value, Seq) and not value.open
        trail.set(owner, "items", [*put] if whole else [part(value)])
        trail.set(owner, "open", not whole)
        return
    may_lose(trail, owner)
    trail.set(owner, "items", [*owner.items, *put])


def store_in_mapping(trail: Trail, owner: Map, key: Value, value: Value) -> None:
    """`entries[key] = value`."""
    if not isinstance(key, Const):
        may_lose(trail, owner)
    items = dict(owner.items)
    items[key.value if isinstance(key, Const) else ("unknown", len(items))] = value
    trail.set(owner, "items", items)


def mapping_method(trail: Trail, receiver: Map, name: str, args: Args, kwargs: Kwargs) -> Value:
    """A method of a dict."""
    items = receiver.items
    if name in ("get", "pop", "setdefault") and args:
        return _entry(trail, receiver, name, args[0], args[1] if len(args) > 1 else NONE)
    if name == "items":
        return Seq("list", [paired(_key(key), value) for key, value in items.items()], receiver.open)
    if name == "values":
        return Seq("list", list(items.values()), receiver.open)
    if name == "keys":
        return Seq("list", [_key(key) for key in items], receiver.open)
    if name == "update":
        _update(trail, receiver, args, kwargs)
        return NONE
    if name == "copy":
        return Map(dict(items), receiver.open)
    if name == "clear":
        trail.set(receiver, "items", {})
        trail.set(receiver, "open", False)
        return NONE
    if name not in LOOKS:
        may_lose(trail, receiver)
    return unknown_of(Why(What.ELEMENT, "an entry or a fact of a dict"), *items.values())


def _entry(trail: Trail, receiver: Map, name: str, key: Value, default: Value) -> Value:
    """What `get`, `pop` and `setdefault` find, and what they leave."""
    items, known = receiver.items, key.value if isinstance(key, Const) else UNDEFINED
    held = items.get(known) if isinstance(key, Const) else None
    if held is not None:
        found = or_else(held, default)
    elif isinstance(key, Const) and not receiver.open:
        found = default
    else:
        found = unknown_of(Why(What.ELEMENT, "an entry"), *items.values(), default)
    if name == "pop" and isinstance(key, Const):
        trail.set(receiver, "items", {one: value for one, value in items.items() if one != known})
    elif name == "pop":
        may_lose(trail, receiver)
    elif name == "setdefault":
        store_in_mapping(trail, receiver, key, found)
    return found


def _update(trail: Trail, receiver: Map, args: Args, kwargs: Kwargs) -> None:
    for arg in args:
        if not isinstance(arg, Map):
            may_lose(trail, receiver)
        elif arg.open:
            may_lose(trail, receiver)
            trail.set(receiver, "items", {**receiver.items, **arg.items})
        else:
            trail.set(receiver, "items", {**receiver.items, **arg.items})
    merged = dict(receiver.items)
    merged.update(kwargs)
    trail.set(receiver, "items", merged)


def _key(key: object) -> Value:
    return Unknown(fact("a key")) if isinstance(key, tuple) and key and key[0] == "unknown" else Const(key)
