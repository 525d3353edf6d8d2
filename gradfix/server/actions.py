"""What an editor offers to do about a finding: its rewrite, all safe rewrites, a comment that silences it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    CodeActionParams,
    Diagnostic,
    OptionalVersionedTextDocumentIdentifier,
    TextDocumentEdit,
    TextEdit,
    WorkspaceEdit,
)

from gradfix import suppressions
from gradfix.places import lines
from gradfix.report.wording import way_out
from gradfix.rule import Finding
from gradfix.server.documents import Document, encoded
from gradfix.server.positions import BOM, Ruler
from gradfix.source import Failure, parse

QUICK_FIX: str = CodeActionKind.QuickFix.value
FIX_ALL = f"{CodeActionKind.SourceFixAll.value}.gradfix"


@dataclass(frozen=True, slots=True)
class Offer:
    """The findings of a document with their diagnostics, and how edits of it are sent."""

    document: Document
    found: Sequence[tuple[Finding, Diagnostic]]
    ruler: Ruler
    versioned: bool
    """Whether the editor takes edits of a version."""

    def edit(self, edits: Sequence[TextEdit]) -> WorkspaceEdit:
        """Edits of the document."""
        if not self.versioned:
            return WorkspaceEdit(changes={self.document.uri: edits})
        name = OptionalVersionedTextDocumentIdentifier(uri=self.document.uri, version=self.document.version)
        return WorkspaceEdit(document_changes=[TextDocumentEdit(name, edits)])

    def rewritten(self, after: str) -> WorkspaceEdit:
        """What makes another text of the document's, which is given without a byte order mark."""
        before = self.document.text
        return self.edit(list(_changes(before, BOM * before.startswith(BOM) + after, self.ruler)))


def actions(offer: Offer, params: CodeActionParams) -> Iterator[CodeAction]:
    """All that can be done at a place, of the kinds that are asked for."""
    if _wanted(QUICK_FIX, params):
        at = [(finding, shown) for finding, shown in offer.found if _meant(shown, params)]
        for finding, shown in at:
            yield from _fixes(offer, finding, shown)
        for finding, shown in at:
            yield from _silencing(offer, finding, shown)
    if _wanted(FIX_ALL, params):
        yield from _fixing_all(offer)


def _wanted(kind: str, params: CodeActionParams) -> bool:
    """Whether a kind, or one that it is a part of, is asked for."""
    asked = params.context.only
    names = (one.value if isinstance(one, CodeActionKind) else one for one in asked or ())
    return asked is None or any(f"{kind}.".startswith(f"{name}.") for name in names)


def _meant(shown: Diagnostic, params: CodeActionParams) -> bool:
    """Whether a diagnostic is one that is asked about, or lies where is asked."""
    asked = params.context.diagnostics
    here, there = shown.range, params.range
    overlap = here.start <= there.end and there.start <= here.end
    return overlap or any((each.code, each.range) == (shown.code, here) for each in asked)


def _fixes(offer: Offer, finding: Finding, shown: Diagnostic) -> Iterator[CodeAction]:
    if finding.applicability in ("safe", "unsafe"):
        yield CodeAction(
            title=f"gradfix ({finding.code}): {way_out(finding)}",
            kind=CodeActionKind.QuickFix,
            diagnostics=[shown],
            is_preferred=finding.applicability == "safe",
            edit=offer.edit([TextEdit(offer.ruler.edited(edit), edit.text) for edit in finding.edits]),
        )


def _silencing(offer: Offer, finding: Finding, shown: Diagnostic) -> Iterator[CodeAction]:
    source = parse(offer.document.path, encoded(offer.document.text))
    if not isinstance(source, Failure):
        yield CodeAction(
            title=f"gradfix ({finding.code}): Suppress on this line",
            kind=CodeActionKind.QuickFix,
            diagnostics=[shown],
            is_preferred=False,
            edit=offer.rewritten(suppressions.added(source, {finding.span.line: [finding.code]})),
        )


def _fixing_all(offer: Offer) -> Iterator[CodeAction]:
    mended = offer.document.mended
    if mended is not None and mended.after is not None:
        yield CodeAction(
            title="gradfix: Apply all safe fixes",
            kind=FIX_ALL,
            edit=offer.rewritten(mended.after.decode(mended.encoding)),
        )


def _changes(before: str, after: str, ruler: Ruler) -> Iterator[TextEdit]:
    """The lines that differ."""
    old, new = lines(before), lines(after)
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag != "equal":
            yield TextEdit(ruler.between(start, end), "".join(new[new_start:new_end]))
