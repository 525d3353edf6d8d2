"""What callers are taken to do with what they get from a module: backpropagate it (convention D)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import ALWAYS, meet
from gradfix.tape.domain.values import Alt, Map, Seq, Unknown

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.state import Strangers


def wish(strangers: Strangers, roots: list[Value]) -> None:
    """Backpropagate, as the callers of a module are taken to do; each alternative on its own path."""
    wishes: dict[Path, Backward] = {}
    machine = strangers.machine
    base = machine.here.path
    for guard, tensor in _tensors(strangers, roots):
        both = meet(base, guard)
        if both is not None:
            if guard not in wishes:
                wishes[guard] = Backward(None, both, True, virtual=True, lean=frozenset({Convention.D}))
            with machine.here.within(assumed=both - base):
                machine.backward.run(tensor, wishes[guard])


def _tensors(
    strangers: Strangers, values: list[Value], guard: Path = ALWAYS, depth: int = 0
) -> list[tuple[Path, Tensor]]:
    """The tensors that values hold, each under the path on which they do."""
    found: list[tuple[Path, Tensor]] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append((guard, value))
        elif isinstance(value, Alt):
            for path, option in value.options:
                if (both := meet(guard, path)) is not None:
                    found.extend(_tensors(strangers, [option], both, depth))
        elif depth < 4:
            found.extend(_tensors(strangers, _held(strangers, value), guard, depth + 1))
    return found


def _held(strangers: Strangers, value: Value) -> list[Value]:
    """What a value gives access to: what a call that isn't known returns needn't lead back to what it got."""
    if isinstance(value, Unknown):
        if value.tensor is not None:
            return [value.tensor]
        return [] if id(value) in strangers.results else list(value.holds)
    if isinstance(value, Seq):
        return value.items
    return list(value.items.values()) if isinstance(value, Map) else []
