"""How path conditions are told: those that matter, each once, as a person would say them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from gradfix.source import expression
from gradfix.tape.domain.paths import Arm, Caught, Chain, Equals, Key, Path, follows_from, simplest, tested

FEW = 3
"""How many alternatives are told one by one."""
NOTHING_SAID = frozenset({"__name__", "__debug__", "TYPE_CHECKING"})
"""Names whose tests say how a file is run, not what it does."""
MACHINE = frozenset({"torch.cuda", "torch.backends", "torch.mps", "torch.xpu", "torch.version"})
"""What says on which machine it is run."""
CONTRARY: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


def told(texts: Mapping[Key, str], paths: Iterable[Path]) -> str:
    """The condition under which something happens that happens on each of these paths."""
    left = simplest([tested(path) for path in paths])
    said = {words for path in left if (words := _words(texts, path)) is not None}
    ways = sorted(said, key=lambda words: (len(words), words))
    if not ways or not ways[0]:
        return ""
    if 1 < len(ways) <= FEW and all(len(words) == 1 for words in ways):
        return " or ".join(_apart(words[0]) for words in ways)
    return " and ".join(_apart(word) if len(ways[0]) > 1 else word for word in ways[0])


def tellable(texts: Mapping[Key, str], *paths: Path) -> bool:
    """Whether there are words for when one of some paths is taken: not where all its tests come out one way
    and the other in turns."""
    left = simplest([tested(path) for path in paths])
    return not left or any(_words(texts, path) is not None for path in left)


def _words(texts: Mapping[Key, str], path: Path) -> tuple[str, ...] | None:
    """The tests of one path in words, without those that follow from others, or that came out either way;
    None where each of them did so: that is no path on which it always happens."""
    equal = {key.subject for key, holds in path if holds and type(key) is Equals}
    words: set[str] = set()
    for key, holds in path:
        if type(key) is Equals and not holds and key.subject in equal:
            continue
        if follows_from((key, holds), path):
            continue
        words.add(_word(texts, key, holds))
    words.discard("")
    once = tuple(sorted(word for word in words if contrary(word) not in words))
    return once if once or not words else None


def _word(texts: Mapping[Key, str], key: Key, holds: bool) -> str:
    """A test in words; empty where it has none, or says nothing of what the program does."""
    if isinstance(key, Arm):
        return _arms(key.chain, key.arms if holds else key.chain.all & ~key.arms)
    if isinstance(key, Caught):
        return texts.get(key, "") if holds else ""  # that nothing is raised goes without saying
    if not isinstance(key, Equals):
        text = texts.get(key, "")
        return (text if holds else contrary(text)) if _says_something(text) else ""
    subject = texts.get(key.subject, "")
    if not _says_something(subject):
        return ""
    same = ("is" if holds else "is not") if key.constant is None else "==" if holds else "!="
    return f"{subject} {same} {key.constant!r}"


def _arms(chain: Chain, taken: int) -> str:
    """That one of some arms of a chain is taken: their tests where they are few, the contrary of the others'
    where those are."""
    others = chain.live & ~taken
    if taken.bit_count() <= FEW:
        return " or ".join(map(_apart, _tests(chain, taken)))
    if others.bit_count() <= FEW and not others >> len(chain.texts):
        return " and ".join(_apart(contrary(test)) for test in _tests(chain, others))
    return f"in {taken.bit_count()} of the {chain.all.bit_count()} arms of `if {chain.texts[0]}`"


def _tests(chain: Chain, arms: int) -> list[str]:
    """The tests of some arms; the last, which has none, by where it is."""
    texts = [*chain.texts, f"in the else of `if {chain.texts[0]}`"]
    return [text for i, text in enumerate(texts) if arms >> i & 1]


def _says_something(text: str) -> bool:
    """Whether a test looks at anything that may be different in another run."""
    test = expression(text)
    if test is None:
        return text not in NOTHING_SAID
    parts = list(ast.walk(test))
    of_machine = {
        id(one.value) for one in parts if isinstance(one, ast.Attribute) and _dotted(one) in MACHINE
    }
    names = {one.id for one in parts if isinstance(one, ast.Name) and id(one) not in of_machine}
    return bool(names - NOTHING_SAID)


def _dotted(node: ast.Attribute) -> str:
    return f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""


def contrary(text: str) -> str:
    """What holds where a test fails."""
    test = expression(text)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _segment(text, test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = _segment(text, test.left), _segment(text, test.comparators[0])
        return f"{left} {CONTRARY[type(test.ops[0])]} {right}"
    if isinstance(test, ast.BoolOp):
        parts = list({ast.dump(part): _segment(text, part) for part in test.values}.values())
        word = " and " if isinstance(test.op, ast.And) else " or "
        return contrary(parts[0]) if len(parts) == 1 else f"not ({word.join(parts)})"
    simple = isinstance(test, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return f"not {text}" if simple else f"not ({text})"


def _apart(text: str) -> str:
    """A test as one of several: what binds looser than `and` stands in brackets."""
    loose = isinstance(expression(text), (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
    return f"({text})" if loose else text


def _segment(text: str, node: ast.expr) -> str:
    return ast.get_source_segment(text, node) or ast.unparse(node)
