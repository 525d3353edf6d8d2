"""What values come from that nobody can compute: of what they are facts, or which parts."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Node, Number, Storage, Tensor, upstream
from gradfix.tape.domain.torch_values import Opaque
from gradfix.tape.domain.values import Alt, External, Seq, Unknown, Value
from gradfix.tape.machine.terms import asked

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from gradfix.tape.machine.terms import Terms

MOST = 4
"""Of how many values that went into one it is asked whether they went into another."""
DEEP = 5
"""How many steps back something is followed to what it comes from."""
NEAR = 6
"""How many operations before a tensor are looked at for what it was made of."""
FACTS = frozenset(
    {"device", "dim", "dtype", "is_cuda", "is_leaf", "layout", "ndim", "requires_grad", "shape"}
)
"""What tensors have: one such fact of a tensor may say something of another."""
SELF = ""
"""The way from something to itself."""
FACT = "a fact"
"""The way from a tensor to one of these."""
COUNT = "how many"
"""The way from a list to its length, of which only those entries say nothing that are asked for by number."""
ANY = "?"
"""How a part begins of which nobody knows which one it is."""
Source: TypeAlias = "Value | Storage | Node"
Lineage: TypeAlias = "dict[Hashable, set[str | None]]"
"""What something comes from, by identity, and by what part of that; None where nobody knows how."""


def origins(terms: Terms, value: Source) -> Iterator[tuple[Source, str | None]]:
    """What a value was computed of that nobody knows how, or is a fact or a part of; and which part."""
    if isinstance(value, (Seq, Alt)) and id(value) not in terms.of:
        yield from ((one, None) for one in asked(terms, value).leaves.values())
    if isinstance(value, (Tensor, Number)):
        near = islice(upstream([value.node]), NEAR)
        yield from ((node, None) for node in near if not _changes(node))
    if isinstance(value, Unknown):
        yield from ((one, None) for one in (value.tensor, value.about) if one is not None)
        if id(value) in terms.values:
            yield from ((one, None) for one in terms.values[id(value)][1].operands if isinstance(one, Value))
            return
    if isinstance(value, (Unknown, Seq, Number, External)):
        part = _part(terms, value)
        for held in terms.of.get(id(value), ()) or (value.holds[:MOST] if isinstance(value, Unknown) else ()):
            if isinstance(held, External):
                yield terms.one(held), part
            elif isinstance(held, (Tensor, Unknown, Opaque, Seq, Alt)):
                yield terms.first(held), part


def _changes(node: Node) -> bool:
    """Whether each turn has another value there: of a parameter, or its gradient."""
    return node.op == "grad" or (node.leaf is not None and node.leaf.parameter)


def _part(terms: Terms, value: Unknown | Seq | Number | External) -> str | None:
    """Which part of its owner a value is: others of its parts say nothing of it."""
    if id(value) in terms.parts or not isinstance(value, Unknown):
        return terms.parts.get(id(value))
    name = name_of(value)
    if name.startswith("["):
        return name[1:-1].strip("'")
    if not name and value.why.what is What.ELEMENT:
        return f"{ANY}{id(value)}"
    if name in FACTS:
        return FACT
    return None if not name or name.startswith((ANY, "__")) or name.endswith(")") else name


def name_of(leaf: Value) -> str:
    """The name by which its owner has it, if any: what else that has mostly says nothing of it."""
    owner = leaf.holds[0] if isinstance(leaf, Unknown) and leaf.holds else None
    held = owner.children if isinstance(owner, (Unknown, Opaque)) and owner.children else {}
    return next((name for name, one in held.items() if one is leaf), "")


def lineage(terms: Terms, leaf: Value, part: str = SELF) -> Lineage:
    """All that a leaf comes from, or a part of it."""
    found: Lineage = {mark(leaf): {part}}
    stack: list[tuple[Source, int]] = [(leaf, DEEP)]
    while stack:
        one, left = stack.pop()
        for above, way in origins(terms, one) if left else ():
            if mark(above) not in found:
                stack.append((above, left - 1))
            found.setdefault(mark(above), set()).add(way)
    return found


def mark(value: Source) -> Hashable:
    """By what a source is known: a tensor by its memory."""
    return id(value.storage) if isinstance(value, Tensor) else id(value)


def tied(terms: Terms, one: Value, part: str, other: Lineage) -> bool:
    """Whether two values say something of each other that nobody knows: what comes from one thing, unless
    they are different parts of it."""
    stack: list[tuple[Source, str | None, int]] = [(one, part, DEEP)]
    seen = set[object]()
    while stack:
        value, way, left = stack.pop()
        if (parts := other.get(mark(value))) is not None:
            if any(_say_something(way, part) for part in parts):
                return True
        elif left:
            for above, onward in origins(terms, value):
                if (mark(above), onward) not in seen:
                    seen.add((mark(above), onward))
                    stack.append((above, onward, left - 1))
    return False


def _say_something(one: str | None, other: str | None) -> bool:
    """Whether two parts of a thing say something of each other."""
    if COUNT in (one, other) and one and other:
        return one == other or not (one.isdigit() or other.isdigit())
    return one == other or not (one and other)
