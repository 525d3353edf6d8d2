"""Whether a loss may be of data alone: of what was told, or may have been told, to require grad.

`x.requires_grad_(); x.sigmoid().sum().backward()` is there for the gradient of `x`. What brings gradients to
an optimizer that isn't known is something else behind a loss: what an argument has returned, say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects.reasons import BY_A_RUN, What
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.values import Alt, Const, External, Map, Seq, Unknown, Value

if TYPE_CHECKING:
    from gradfix.tape.interpreter.state import Strangers

DEEP = 200
"""How many values are looked through."""
ONE_OF = 2
"""How often it is looked through which of several values one is."""
MADE_OF = 4
"""Through how many values what is told something may be one of those that it was made of."""


def may_be_told(strangers: Strangers, values: Iterable[Value]) -> None:
    """Note what may require grad from here on: told so, or given to what isn't known for its effect."""
    ahead = [*values]
    for _ in range(MADE_OF):
        held = [one for one in ahead if isinstance(one, Unknown)]
        strangers.told.update((id(one), one) for one in held)
        ahead = [inner for one in held for inner in one.holds]


def of_data_alone(strangers: Strangers, below: Sequence[Node | Value], deep: int = ONE_OF) -> bool:
    """Whether all that a root was made of is data, numbers, and what other packages have made of these, or
    may be on some path."""
    seen: dict[int, Value | Node] = {}
    stack: list[Value | Node] = [*below]
    while stack and len(seen) < DEEP:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, Node):
            if one.leaf is not None or one.op == "module":
                return False
            stack.extend([*one.parents, *_unknown(one)])
        elif isinstance(one, Alt):
            if not deep or not any(of_data_alone(strangers, [each], deep - 1) for _, each in one.options):
                return False
        elif not _is_data(strangers, one):
            if not _of_package(strangers, one):
                return False
            stack.extend([one.node] if isinstance(one, Tensor) else inside(one))
    return len(seen) < DEEP and any(isinstance(one, Value) for one in seen.values())


def _unknown(node: Node) -> Iterator[Value]:
    """The value that a node was made of where it isn't known."""
    value = node.facts.get("value") if node.facts else None
    if isinstance(value, Unknown):
        yield value


def inside(value: Value) -> Iterable[Value]:
    """What a value was made of, or holds."""
    if isinstance(value, Unknown):
        return value.holds
    return value.items.values() if isinstance(value, Map) else value.items if isinstance(value, Seq) else ()


def _is_data(strangers: Strangers, value: Value) -> bool:
    """Whether a value is a batch, or may be a leaf by what it was told: nothing that has parts of its own."""
    if isinstance(value, Unknown) and id(value) in strangers.told:
        return id(value) not in strangers.results and not value.children
    return is_element(strangers, value) or _is_drawn(strangers, value)


def _is_drawn(strangers: Strangers, value: Value) -> bool:
    """Whether it was taken out of what a function from elsewhere has made of an argument, of a loader say."""
    source = value
    for _ in range(8):
        known = id(source) in strangers.results
        if known or not isinstance(source, Unknown) or not source.part or len(source.holds) != 1:
            break
        source = source.holds[0]
    made = strangers.results.get(id(source))
    if source is value or made is None or not isinstance(source, Unknown):
        return False
    return from_elsewhere(made[2]) and len(source.holds) == 1 and _came_in(source.holds[0])


def _came_in(value: Value, depth: int = 0) -> bool:
    """Whether a value is an argument, or what was made of one alone: counted, put into a list."""
    if isinstance(value, Const):
        return True
    if isinstance(value, Seq):
        return depth < MADE_OF and all(_came_in(one, depth + 1) for one in value.items)
    if not isinstance(value, Unknown) or depth > MADE_OF:
        return False
    if value.why.what in {What.ARGUMENT, *BY_A_RUN}:  # the number of a turn is decided by a run
        return True
    return len(value.holds) == 1 and _came_in(value.holds[0], depth + 1)


def _of_package(strangers: Strangers, value: Value) -> bool:
    """Whether a value is a number, or what a package has made, or was made of what is looked at too."""
    if isinstance(value, (Const, Seq, Tensor)):
        return True
    made = strangers.results.get(id(value))
    callee = made[2] if made is not None else value
    if id(callee) in strangers.results and made is not None:
        return False  # what was built to be called may have parameters
    return from_elsewhere(callee) or (isinstance(callee, Unknown) and bool(callee.holds))


def is_element(strangers: Strangers, value: Value) -> bool:
    """Whether a value was taken out of a loader, or is a part of what was."""
    for _ in range(8):
        if id(value) in strangers.elements:
            return True
        if not isinstance(value, Unknown) or len(value.holds) != 1:
            return False
        if not value.part or id(value) in strangers.results:
            return False
        value = value.holds[0]
    return False


def from_elsewhere(callee: Value) -> bool:
    """Whether what is called was imported, or is bound by nobody: a function, that holds nothing which
    learns."""
    while isinstance(callee, Unknown) and len(callee.holds) == 1:
        callee = callee.holds[0]
    unbound = isinstance(callee, Unknown) and callee.why.what in BY_A_RUN
    return unbound or isinstance(callee, External)
