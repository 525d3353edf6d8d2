"""Paths: what a test is told by the others is the same, however little of them is looked at."""

from __future__ import annotations

import random
from itertools import product

import pytest

from gradfix.tape.domain.paths import WIDEST, Arm, Chain, Path, Settled, contradicts
from gradfix.tape.machine.telling import told


def _literal(name: str, holds: bool = True) -> Path:
    return frozenset({(name, holds)})


def _one_test_upon_another(rng: random.Random, names: str, tests: int) -> list[Settled]:
    """Tests that follow from paths over a few names and over the tests before them."""
    made: list[Settled] = []
    for i in range(tests):
        keys = [*names, *made]
        yes = [frozenset({(rng.choice(keys), rng.random() < 0.5)}) for _ in range(2)]
        made.append(Settled(f"test {i}", yes, [frozenset({(key, not on)}) for key, on in _each(yes)]))
    return made


def _each(paths: list[Path]) -> list[tuple[object, bool]]:
    return [literal for path in paths for literal in path]


@pytest.mark.parametrize("seed", range(20))
def test_a_test_is_asked_wherever_more_could_settle_it(seed: int) -> None:
    rng = random.Random(seed)
    for test in _one_test_upon_another(rng, "abc", 5):
        for values in product((True, False, None), repeat=3):
            said: Path = frozenset(
                (name, holds) for name, holds in zip("abc", values, strict=True) if holds is not None
            )
            told = test.refuted(True, said) or test.refuted(False, said)
            assert not told or test.concerned(said)


def test_what_settles_a_test_settles_what_hangs_on_it() -> None:
    inner = Settled("inner", [_literal("a")], [_literal("a", False)])
    outer = Settled("outer", [frozenset({(inner, True)})], [frozenset({(inner, False)})])
    assert contradicts(frozenset({(outer, True)}), _literal("a", False))
    assert not contradicts(frozenset({(outer, True)}), _literal("a"))
    assert not outer.concerned(_literal("b"))


def test_a_test_that_hangs_on_arms_is_asked_whatever_is_said() -> None:
    chain = Chain("if", [_literal("a"), _literal("b")], ["a", "b"])
    test = Settled("arm", [frozenset({(Arm(chain, 1), True)})], [frozenset({(Arm(chain, 2), True)})])
    assert test.concerned(_literal("c"))
    assert contradicts(frozenset({(test, True)}), frozenset({("a", False), ("b", True)}))


def test_what_settles_a_test_is_told_only_so_far() -> None:
    test = Settled(0, [_literal("a")], [_literal("a", False)])
    for i in range(1, 2 * WIDEST):
        test = Settled(i, [frozenset({(test, True)})], [frozenset({(test, False)})])
    assert len(test.told_by) <= WIDEST + 2
    assert test.concerned(_literal("elsewhere"))


@pytest.mark.parametrize(
    ("arms", "holds", "words"),
    [
        pytest.param(0b0101010101, True, "in 5 of the 11 arms of `if mode == 0`", id="half of them"),
        pytest.param(0b0101010101, False, "in 6 of the 11 arms of `if mode == 0`", id="none of half of them"),
        pytest.param(0b110, True, "mode == 1 or mode == 2", id="two"),
        pytest.param(0b110, False, "mode != 1 and mode != 2", id="none of two"),
        pytest.param(1 << 10, True, "in the else of `if mode == 0`", id="that without a test"),
        pytest.param(1 << 10, False, "in 10 of the 11 arms of `if mode == 0`", id="not that without a test"),
    ],
)
def test_arms_of_a_chain_are_never_told_as_always(arms: int, holds: bool, words: str) -> None:
    texts = [f"mode == {number}" for number in range(10)]
    chain = Chain(None, [frozenset({(text, True)}) for text in texts], texts)
    assert told({}, [frozenset({(Arm(chain, arms), holds)})]) == words


def test_arms_within_arms_of_a_chain_are_told_once() -> None:
    texts = [f"mode == {number}" for number in range(10)]
    chain = Chain(None, [frozenset({(text, True)}) for text in texts], texts)
    both = frozenset({(Arm(chain, 0b11100), True), (Arm(chain, 0b100), True)})
    assert told({}, [both]) == "mode == 2"
