"""Where a culprit could be: the lines that look like one, and the definitions that lead to them."""

from __future__ import annotations

import ast
import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias, TypeVar

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
T = TypeVar("T")
Definition: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef"
Mark: TypeAlias = "tuple[object, bool]"
"""A definition's identity or a name, and whether it is met while something is built rather than run."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
RUN, BUILT = False, True
DOES = tuple(map(re.compile, (
    rb"[-+*/%@&|^]=(?!\s*(?:\[|f?['\"]))", rb"\](?<!['\"]\])\s*=(?!=)", rb"_\((?<=[A-Za-z0-9]_\()",
    rb"out(?<=\bout)\s*=(?!=)", rb"backward", rb"autograd", rb"\.(?:step\(|grad\b)",
    rb"\.data\b(?<!utils\.data)", rb"zero_grad", rb"requires?_?[gG]rad", rb"\.re\w+[gG][rad]{2,}\w*\s*=(?!=)",
)))  # fmt: skip
"""What does something when its line runs: no tensor is added to a list or a text, or looked up by a text."""
SETS = (re.compile(rb"inplace"), re.compile(rb"True\s*\)"))
"""What decides, where a module is built, what its calls will do."""
KEEPS = re.compile(rb"=\s*[\[{]")
"""What a constructor may put where no optimizer finds it."""
ON_SELF = re.compile(rb"\s*self(\.\w+)\s*=\s*[\[{]")
INITIALISER = re.compile(
    rb"(?:\binit\.\w+|\b(?:(?:kaiming|xavier)_\w+|trunc_normal|orthogonal|constant|zeros|ones))_\Z"
)
"""What torch.nn.init has: it writes what no graph has saved yet."""


class Culprits:
    """The lines of a file on which a culprit could be; what doesn't lead to one need not be entered."""

    def __init__(self, content: bytes, tree: ast.Module) -> None:
        self.content = content
        self.tree = tree
        self.starts = [0, *accumulate(map(len, content.splitlines(keepends=True)))]
        self.set = self._lines(SETS)
        self.kept = list(self._keeping())
        self.done = self._lines(DOES)
        self.lines = sorted({*self.done, *self.set})
        """Without those on which something is only kept."""
        self.whole: set[int] = set()
        """Classes whose methods may be called from other files, by the identity of their nodes."""

    def _lines(self, patterns: Iterable[re.Pattern[bytes]]) -> list[int]:
        found = {
            bisect.bisect_right(self.starts, match.end() - 1)
            for pattern in patterns
            for match in pattern.finditer(self.content)
            if self._meant(match.group(), match.start())
        }
        return sorted(found)

    def _meant(self, found: bytes, at: int) -> bool:
        """Whether a match is what it looks like: an argument, a method of tensors."""
        if found == b"_(":
            return INITIALISER.search(self.content, max(at - 40, 0), at + 1) is None
        if found == b"out=" or not found.startswith((b"out", b"True")):
            return True
        return self.content[max(at - 80, 0) : at].rstrip().endswith((b"(", b","))

    def _keeping(self) -> Iterator[tuple[int, bytes]]:
        """The lines that keep a list or dict on self, and the attribute."""
        for match in KEEPS.finditer(self.content):
            line = bisect.bisect_right(self.starts, match.start())
            found = ON_SELF.match(self.content, self.starts[line - 1])
            if found is not None and found.end() == match.end():
                yield line, found[1]

    def within(self, node: ast.stmt | ast.Lambda) -> bool:
        """Whether a culprit could be in a definition."""
        return _met(self.lines, node)

    def suspects(self, node: ast.ClassDef) -> bool:
        """Whether a culprit could be in a class or behind its calls, or what it ought to register."""
        return _met(self.lines, node) or self._keeps(node) or self.leads(node)

    def builds(self, node: ast.ClassDef) -> bool:
        """Whether building an object is enough to meet a culprit."""
        inits = (part for part in node.body if isinstance(part, FUNCTIONS) and part.name == "__init__")
        return self._keeps(node) or any(_met(self.done, init) for init in inits)

    def _keeps(self, node: ast.ClassDef) -> bool:
        """Whether a list or dict is kept on self, and read in some method as well."""
        end = node.end_lineno or node.lineno
        for i in range(bisect.bisect_left(self.kept, (node.lineno, b"")), len(self.kept)):
            line, attribute = self.kept[i]
            if line > end:
                break
            if len(re.findall(rb"\bself%s\b" % re.escape(attribute), self._text(node))) > 1:
                return True
        return False

    def size(self, node: ast.stmt | ast.expr) -> int:
        """How many bytes a definition's lines have."""
        return len(self._text(node))

    def leads(self, node: ast.ClassDef) -> bool:
        """Whether calling an object of a class may come to a culprit."""
        return (id(node), RUN) in self._leading

    @cached_property
    def _leading(self) -> set[Mark]:
        """All that leads to a culprit, found backwards from the culprits."""
        before: dict[Mark, list[Mark]] = defaultdict(list)
        found: list[Mark] = []
        for mark, after in self._links():
            if after is None:
                found.append(mark)
            else:
                before[after].append(mark)
        leading = set(found)
        while found:
            for mark in before[found.pop()]:
                if mark not in leading:
                    leading.add(mark)
                    found.append(mark)
        return leading

    def _links(self) -> Iterator[tuple[Mark, Mark | None]]:
        """What leads to what; None is a culprit."""
        for statement in _statements(self.tree.body):
            if isinstance(statement, ast.ClassDef):
                yield from self._class_links(statement)
            elif isinstance(statement, FUNCTIONS):
                yield from self._function_links(statement, {})
            else:
                for target in _targets(statement):
                    name = target.id.encode()
                    yield (name, RUN), (id(statement), BUILT)
                    yield (name, BUILT), (id(statement), BUILT)
                yield from self._text_links(statement, BUILT)

    def _function_links(
        self, node: Function, siblings: dict[bytes, Function]
    ) -> Iterator[tuple[Mark, Mark | None]]:
        yield from self._text_links(node, RUN, BUILT)
        for mode in (RUN, BUILT):
            if not node.name.startswith("__") and node.name != "forward":
                yield (node.name.encode(), mode), (id(node), mode)
            if siblings and b"getattr" in self._text(node):
                yield from (((id(node), mode), (id(other), mode)) for other in siblings.values())

    def _class_links(self, node: ast.ClassDef) -> Iterator[tuple[Mark, Mark | None]]:
        own: Mark = (id(node), RUN)
        yield (node.name.encode(), RUN), own
        yield (node.name.encode(), BUILT), own
        methods = {part.name.encode(): part for part in node.body if isinstance(part, FUNCTIONS)}
        for name, method in methods.items():
            yield from self._function_links(method, methods)
            if name == b"__init__":
                yield own, (id(method), BUILT)
            elif name == b"forward" or name.startswith(b"__") or id(node) in self.whole:
                yield own, (id(method), RUN)
        for part in node.body:
            if not isinstance(part, FUNCTIONS):
                yield own, (id(part), BUILT)
                yield from self._text_links(part, BUILT)
        for base in node.bases:
            yield from ((own, (word, BUILT)) for word in self._words(base))

    def _text_links(self, node: ast.stmt, *modes: bool) -> Iterator[tuple[Mark, Mark | None]]:
        words: set[bytes] | None = None
        for mode in modes:
            own: Mark = (id(node), mode)
            if _met(self.set if mode is BUILT else self.lines, node):
                yield own, None
            else:
                words = self._words(node) & self._names if words is None else words
                yield from ((own, (word, mode)) for word in words)

    def _words(self, node: ast.stmt | ast.expr) -> set[bytes]:
        return _words(self._text(node), ASCII)

    def _text(self, node: ast.stmt | ast.expr) -> bytes:
        end = node.end_lineno or node.lineno
        stop = self.starts[end] if end < len(self.starts) else len(self.content)
        return self.content[self.starts[node.lineno - 1] : stop]

    @cached_property
    def _names(self) -> set[bytes]:
        """What the file defines."""
        names: set[bytes] = {b"getattr"}
        for statement in _statements(self.tree.body):
            if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                names.add(statement.name.encode())
            else:
                names.update(target.id.encode() for target in _targets(statement))
            if isinstance(statement, ast.ClassDef):
                names.update(part.name.encode() for part in statement.body if isinstance(part, FUNCTIONS))
        return names


def _met(lines: list[int], node: ast.stmt | ast.Lambda) -> bool:
    """Whether a definition has one of some lines: not in a signature, though annotations look like one."""
    if isinstance(node, ast.ClassDef):
        return any(_met(lines, statement) for statement in node.body)
    first = node.body[0] if isinstance(node, FUNCTIONS) else node
    at = bisect.bisect_left(lines, first.lineno)
    return at < len(lines) and lines[at] <= (node.end_lineno or node.lineno)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under its conditions too."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _statements(handler.body)
        elif not isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement


def _targets(statement: ast.stmt) -> list[ast.Name]:
    """The names that a statement of a module binds."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target for target in targets if isinstance(target, ast.Name)]


def callers_first(defined: Mapping[str, tuple[T, Definition]], lines: Sequence[bytes]) -> Iterator[T]:
    """Definitions by name, those first that mention others; in whatever order they are written."""
    names = {name.encode(): name for name in defined}
    mentioned = {
        name: sorted([names[word] for word in _mentioned(node, lines) & names.keys()])
        for name, (_, node) in defined.items()
    }
    done: dict[str, None] = {}
    for name in sorted(defined):
        stack = [(name, iter(mentioned[name]))]
        open_ = {name}
        while stack:
            name, inner = stack[-1]
            following = next((one for one in inner if one not in done and one not in open_), None)
            if following is None:
                stack.pop()
                done[name] = None
            else:
                open_.add(following)
                stack.append((following, iter(mentioned[following])))
    return (defined[name][0] for name in reversed(done))


def _mentioned(node: Definition, lines: Sequence[bytes]) -> set[bytes]:
    """The words in the text of a definition: its names, and more, which only orders what is entered."""
    return _words(b"\n".join(lines[node.lineno - 1 : node.end_lineno]), UNICODE)


DIGITS = b"0123456789"
ASCII = bytes(i if i < 128 and (chr(i).isalnum() or i == ord("_")) else ord(" ") for i in range(256))
"""What each byte is in the midst of names: itself, or a space."""
UNICODE = ASCII[:128] + bytes(range(128, 256))


def _words(text: bytes, letters: bytes) -> set[bytes]:
    """The names in a text, and what looks like one: what a translation leaves between spaces."""
    found = set(text.translate(letters).split())
    numbered = [word for word in found if word[0] in DIGITS]
    return found.difference(numbered).union([word.lstrip(DIGITS) for word in numbered]) - {b""}
