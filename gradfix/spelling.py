"""Names that were meant to be `requires_grad`: how many slips lie between, and which are another word."""

from __future__ import annotations

from functools import lru_cache

SWITCH = "requires_grad"
HEAD, TAIL = SWITCH.split("_")
WRITTEN_OUT = ("gradient", "gradients")
SLIPS = 2


@lru_cache(1 << 12)
def misspelt(name: str) -> bool:
    """Whether a name is `requires_grad` but for a slip or two: in its letters, its case or its underscores.

    >>> [misspelt(name) for name in ("requiers_grad", "require_gradient", "requires_grad", "requires_graph")]
    [True, True, False, False]
    >>> misspelt("require_W_grad"), misspelt("requires_g_rad")
    (False, True)
    """
    words = [word for word in name.lower().split("_") if word]
    slips = _fewest("".join(words))
    if name == SWITCH or slips > SLIPS:
        return False
    without = ("".join(words[:at] + words[at + 1 :]) for at in range(len(words)))
    return all(_fewest(rest) > slips for rest in without)  # else a word of its own stands between


def _fewest(bare: str) -> int:
    """How many slips lie between a name without underscores and the one that was meant."""
    if not bare.startswith(HEAD[0]) or abs(len(bare) - len(HEAD + TAIL)) > 2 * SLIPS + 1:
        return SLIPS + 1
    return min(_slips(bare[:at], bare[at:]) for at in range(len(bare)))


def _slips(head: str, tail: str) -> int:
    """How many slips lie between two words and those that were meant.

    The second one is so short that another letter makes another word of it: graph, grid, grade.
    """
    if tail in WRITTEN_OUT:
        return distance(head, HEAD) + 1
    short = distance(tail, TAIL)
    same_letters = set(tail.removesuffix("s")) <= set(TAIL)
    return distance(head, HEAD) + short if same_letters and short <= 1 else SLIPS + 1


def distance(one: str, other: str) -> int:
    """How many letters have to be put in, left out, replaced, or swapped with the next, to make one of the
    other.

    >>> distance("gard", "grad"), distance("require", "requires"), distance("", "grad")
    (1, 1, 4)
    """
    before, row = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(one):
        above, before = before, row
        row = [i + 1]
        for j, wanted in enumerate(other):
            best = min(row[j] + 1, before[j + 1] + 1, before[j] + (letter != wanted))
            if i and j and letter == other[j - 1] and one[i - 1] == wanted:
                best = min(best, above[j - 1] + 1)
            row.append(best)
    return row[-1]
