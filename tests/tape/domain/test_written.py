"""What was gathered from modules is kept as long as nobody writes what it was read from, and no longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradfix.tape.domain.torch_values import Layer
from gradfix.tape.domain.trail import Trail
from gradfix.tape.domain.values import NONE, Unknown, unknown_of
from gradfix.tape.domain.why import fact
from gradfix.tape.domain.written import MOST, Gathered, Gatherings


def _part_goes(trail: Trail, net: Layer) -> None:
    trail.drop(net, net.attrs, "part")


def _part_comes_and_goes(trail: Trail, net: Layer) -> None:
    trail.open(net.born)
    trail.put(net, net.attrs, "part", NONE)
    trail.written.forget()
    found = _kept(trail, net)
    trail.undo()
    assert found.of(net) is None


def _is_joined(trail: Trail, net: Layer) -> None:
    trail.open(net.born)
    trail.set(net, "open", True)
    trail.merge([(frozenset(), trail.undo())])


def _stranger_is_a_module(trail: Trail, net: Layer) -> None:
    trail.learn(unknown_of(fact("a test")), "built", True)


def _part_is_met(trail: Trail, net: Layer) -> None:
    part = net.attrs["part"]
    assert isinstance(part, Unknown)
    trail.learn_part(part, "children", "inner", unknown_of(fact("a test")))


def _much_happens(trail: Trail, net: Layer) -> None:
    trail.written.note_all([NONE] * (MOST + 1))


def _kept(trail: Trail, net: Layer) -> Gatherings:
    known = Gatherings(trail.written)
    known.keep(Gathered(net, {}, True, {id(net), *map(id, net.attrs.values())}))
    return known


@pytest.mark.parametrize(
    "happens",
    [_part_goes, _part_comes_and_goes, _is_joined, _stranger_is_a_module, _part_is_met, _much_happens],
    ids=lambda one: one.__name__.strip("_").replace("_", " "),
)
def test_it_is_gathered_anew_where(happens: Callable[[Trail, Layer], None]) -> None:
    trail, net = Trail(), Layer("Sequential", None, {}, None)
    net.attrs["part"] = unknown_of(fact("a test"))
    known = _kept(trail, net)
    assert known.of(net) is not None
    happens(trail, net)
    assert known.of(net) is None


def test_what_is_written_elsewhere_leaves_it_as_it_is() -> None:
    trail, net, other = Trail(), Layer("Sequential", None, {}, None), Layer("Linear", None, {}, None)
    known = _kept(trail, net)
    trail.put(other, other.attrs, "part", NONE)
    trail.set(other, "open", True)
    trail.set(net, "training", True)
    assert known.of(net) is not None
