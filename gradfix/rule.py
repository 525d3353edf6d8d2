"""What a codemod is written in: a rule says a defect to the user and turns it into edits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import libcst as cst

    from gradfix.defects import Certainty, Defect, Evidence, Impact, Span
    from gradfix.defects.reasons import Reason
    from gradfix.tree import Tree


class Safety(Enum):
    """What `--apply` may do with a fix.

    Safe: every value that is read until the first backward is the same, the gradient that is reported missing
    arrives, and no other gradient and no other update of a parameter, a buffer or a state kept by hand
    changes, unless it is downstream of what was lost. In particular no other optimizer's parameters start
    to learn from this loss. Anything else is unsafe, and says in one phrase why: see docs/architecture.md.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"


Applicability: TypeAlias = Literal["safe", "unsafe", "suspect", "none"]
Reduction: TypeAlias = Literal["sum", "mean"]
Replacement: TypeAlias = "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel"


@dataclass(frozen=True, slots=True)
class Edit:
    """One node of the file's tree (found by identity) and what stands there instead."""

    old: cst.CSTNode
    new: Replacement


@dataclass(frozen=True, slots=True)
class Fix:
    """The edits that mend one defect: all of them or none."""

    edits: tuple[Edit, ...]
    says: str
    """The rewrite in one line of source text, as the listing shows it: `out = out + shortcut`."""
    unsafe: str = ""
    """Why it is unsafe, in one phrase: what else it changes, or what isn't known. Nothing: it is safe."""

    @property
    def safety(self) -> Safety:
        return Safety.UNSAFE if self.unsafe else Safety.SAFE


@dataclass(frozen=True, slots=True)
class Decline:
    """Seen, not rewritten: `reason` tells the user what to do by hand."""

    reason: str


@dataclass(frozen=True, slots=True)
class Options:
    """What the configuration tells the rewrites."""

    reduction: Reduction = "sum"


Rewrite: TypeAlias = "Callable[[Defect, Tree, Options], Fix | Decline]"


@dataclass(frozen=True, slots=True)
class Rule:
    """A codemod: its code, the sentence that a finding shows, and the rewrite.

    A rule module holds exactly one, named RULE and written out, so that it is known without importing the
    module: keywords with literal values, and a `rewrite`. The rule's name is the module's, its documentation
    the module's docstring; the defects it answers are those whose kind is that name. `message` is a format
    string over the defect's facts and `culprit` (its source text on one line).
    """

    code: str
    message: str
    rewrite: Rewrite
    safety: Safety | None = Safety.SAFE
    """The best that the rewrite can be; None: this rule never rewrites."""
    sometimes_unsafe: bool = False
    """Whether some fixes of a safe rule are unsafe; its documentation says which."""
    on_by_default: bool = True


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A stretch of the file and its new text, as machine formats carry it (lines and characters from 1)."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect as a user reads it."""

    code: str
    rule: str
    message: str
    span: Span
    """Lines from 1, columns in characters from 0."""
    evidence: tuple[Evidence, ...]
    """Columns in characters from 0."""
    certainty: Certainty
    impact: Impact
    conventions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What one would have to make sure of, where it is a suspect."""
    unknowns: tuple[Reason, ...] = ()
    """What isn't known that may supply what it says is missing. Columns in characters from 0."""
    condition: str = ""
    torch_says: str = ""
    safety: Safety | None = None
    """None: no fix; then `decline` says what to do."""
    says: str = ""
    unsafe: str = ""
    """Why the fix is unsafe."""
    edits: tuple[TextEdit, ...] = ()
    decline: str = ""

    @property
    def applicability(self) -> Applicability:
        """What may be done with its fix: that of a suspect is never applied."""
        if self.safety is None:
            return "none"
        return "suspect" if self.certainty == "suspect" else self.safety.value
