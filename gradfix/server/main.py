"""`gradfix server`: speaks the language server protocol on standard input and output."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

from lsprotocol import types
from pygls import uris
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer

from gradfix import files
from gradfix.finder import SUFFIXES
from gradfix.rule import Finding
from gradfix.server import hover
from gradfix.server.actions import FIX_ALL, QUICK_FIX, Offer, actions
from gradfix.server.desk import Desk
from gradfix.server.diagnostics import Texts, diagnostics, doubts
from gradfix.server.documents import Document
from gradfix.server.moved import Shift, moved
from gradfix.server.positions import Ruler

SCHEMES = ("file", "untitled")
"""What an editor has open besides, such as an earlier version of a file, nobody edits."""
WATCHED = ("**/*.py", "**/*.pyw", "**/pyproject.toml")


def serve(version: str, seconds: float) -> None:
    """Serve one editor until it leaves; no text is played for more than so many seconds."""
    Server(version, seconds).start_io()


class Server(LanguageServer):
    """The side that speaks the protocol: hands texts to the desk and tells the editor what it finds."""

    def __init__(self, version: str, seconds: float) -> None:
        # whole texts: pygls ends a line at a form feed, where neither editors nor Python do
        super().__init__("gradfix", version, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.desk = Desk(seconds, self)
        self.shown: dict[str, list[tuple[Finding, types.Diagnostic]]] = {}
        """By the address of a document, what the editor shows of it."""
        self._work: asyncio.Task[None] | None = None
        self._hear()

    def _hear(self) -> None:
        """Say which messages are heard, by partials: pygls notes a name on each, and a method takes none."""
        for name, answer in (
            (types.INITIALIZED, self.on_initialized),
            (types.SHUTDOWN, self.on_shutdown),
            (types.TEXT_DOCUMENT_DID_OPEN, self.on_open),
            (types.TEXT_DOCUMENT_DID_CHANGE, self.on_change),
            (types.TEXT_DOCUMENT_DID_SAVE, self.on_save),
            (types.TEXT_DOCUMENT_DID_CLOSE, self.on_close),
            (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, self.on_watched),
            (types.TEXT_DOCUMENT_HOVER, self.on_hover),
        ):
            self.feature(name)(partial(answer))
        kinds = types.CodeActionOptions(code_action_kinds=[QUICK_FIX, FIX_ALL])
        self.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(partial(self.on_code_action))

    def report_server_error(self, error: Exception, source: object) -> None:
        """A message that can't be served is a line in the log, and no window in the user's way."""
        if source is not FeatureRequestError:  # who asks is answered with the error
            self.log(f"{type(error).__name__}: {error}")

    def on_initialized(self, _: types.InitializedParams) -> None:
        """The editor is ready: begin to work, and ask to be told of files that change."""
        self._begin()
        if self._can("workspace", "did_change_watched_files", "dynamic_registration"):
            globs = [types.FileSystemWatcher(pattern) for pattern in WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(globs)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registration = types.Registration("watched", method, options)
            self.client_register_capability(types.RegistrationParams([registration]))

    async def on_shutdown(self, _: None) -> None:
        """The editor is about to leave."""
        if self._work is not None:
            work, self._work = self._work, None
            work.cancel()
            await asyncio.wait([work])

    def on_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """A text was opened."""
        document = self._document(params.text_document)
        if document is not None:
            self.desk.open(document)

    def on_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """A text was changed."""
        uri = params.text_document.uri
        text = params.content_changes[-1].text if params.content_changes else None
        if text is not None:
            self.desk.change(uri, text, params.text_document.version)

    def on_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """A text was saved; what it imports and the configuration may be others by now."""
        self.desk.look_again(params.text_document.uri)

    def on_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """A text was closed: nothing is shown of it any more."""
        uri = params.text_document.uri
        self.desk.close(uri)
        if self.shown.pop(uri, None) is not None:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def on_watched(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Files were changed on disk, made, renamed or deleted."""
        paths = [path for change in params.changes if (path := uris.to_fs_path(change.uri))]
        if any(os.path.basename(path) == "pyproject.toml" for path in paths):
            self.desk.look_again()
        self.desk.touch(paths)

    async def on_code_action(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done at a place."""
        uri = params.text_document.uri
        document = await self.desk.finished(uri)
        shown = self.shown.get(uri)
        if document is None or shown is None or document.found is None:
            return []
        mended = document.mended or document.found
        found = [(finding, each) for finding, (_, each) in zip(mended.findings, shown, strict=False)]
        versioned = self._can("workspace", "workspace_edit", "document_changes")
        offer = Offer(document, found, self._ruler(document.text), versioned)
        return await asyncio.to_thread(lambda: list(actions(offer, params)))

    def on_hover(self, params: types.HoverParams) -> types.Hover | None:
        """What there is to say about a place."""
        uri, place = params.text_document.uri, params.position
        document, shown = self.desk.documents.get(uri), self.shown.get(uri, [])
        if document is None:
            return None
        here = next((pair for pair in shown if _holds(pair[1].range, place)), None)
        if here is not None:
            mended = document.mended.findings if document.mended is not None else ()
            finding = next(
                (one for one in mended if (one.code, one.span) == (here[0].code, here[0].span)), here[0]
            )
            return _hovering(hover.about(finding), here[1].range)
        told = hover.at(*self._ruler(document.text).pointed(place))
        return _hovering(told, None) if told else None

    def show(self, document: Document) -> None:
        """Tell the editor what was found, on the lines where it stands by now."""
        if document.found is None:
            return
        texts = Texts(document.uri, self._ruler(document.basis), self._elsewhere)
        related = self._can("text_document", "publish_diagnostics", "related_information")
        made = diagnostics(document.found, texts, related)
        pairs = list(zip(document.found.findings, made, strict=True))
        beside = doubts(document.found, texts)
        if document.text != document.basis:
            shift, ruler = Shift(document.basis, document.text), self._ruler(document.text)
            then = partial(moved, shift=shift, ruler=ruler, uri=document.uri)
            pairs = [(one, after) for one, each in pairs for after in then([each])]
            beside = list(then(beside))
        self.shown[document.uri] = pairs
        found = [*(each for _, each in pairs), *beside]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(document.uri, found, document.version)
        )

    def log(self, message: str) -> None:
        """A line in the editor's log of this server."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Warning, message))

    def warn(self, message: str) -> None:
        """A message that the user sees."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"gradfix: {message}"))

    def _begin(self) -> None:
        self._work = asyncio.get_running_loop().create_task(self.desk.run())
        self._work.add_done_callback(self._ended)

    def _ended(self, work: asyncio.Task[None]) -> None:
        """What went wrong at the desk is told, and it is opened again."""
        if not work.cancelled() and (error := work.exception()) is not None:
            self.log(f"{type(error).__name__}: {error}")
            if self._work is work:
                self._begin()

    def _document(self, item: types.TextDocumentItem) -> Document | None:
        """A new document; None for what is not looked at."""
        scheme, _, path, *_ = uris.urlparse(item.uri)
        if scheme not in SCHEMES or not (item.language_id == "python" or path.endswith(SUFFIXES)):
            return None
        path = os.path.abspath(uris.to_fs_path(item.uri) or path) if scheme == "file" and path else ""
        folder = os.path.dirname(path) if path else self.workspace.root_path or os.getcwd()
        return Document(item.uri, path or item.uri, folder, bool(path), item.text, item.version)

    def _ruler(self, text: str) -> Ruler:
        return Ruler(text, self.workspace.position_encoding or types.PositionEncodingKind.Utf16)

    def _elsewhere(self, path: str) -> tuple[str, Ruler]:
        """Another file as it was played: as it is open, else as it is on disk."""
        for document in self.desk.documents.values():
            if document.named and document.path == path:
                return document.uri, self._ruler(document.text)
        content = files.read(path)
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
        return uris.from_fs_path(path) or Path(path).as_uri(), self._ruler(text)

    def _can(self, *names: str) -> bool:
        """Whether the editor says that it can do something."""
        said: object = self.client_capabilities
        for name in names:
            said = getattr(said, name, None)
        return said is True


def _holds(range_: types.Range, place: types.Position) -> bool:
    return range_.start <= place <= range_.end


def _hovering(text: str, range_: types.Range | None) -> types.Hover:
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), range_)
