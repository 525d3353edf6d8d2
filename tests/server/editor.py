"""An editor without a screen: pygls' own client, with a server in a process of its own at the other end."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls import uris
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
PATIENCE = 60
"""Seconds to wait for what must come."""
MODERN = types.ClientCapabilities(
    general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf16]),
    text_document=types.TextDocumentClientCapabilities(
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True)
    ),
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
    ),
)
PLAIN = types.ClientCapabilities()
"""Those of an editor that can do as little as the protocol allows."""
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
NOWHERE = types.Range(types.Position(0, 0), types.Position(0, 0))


class Editor:
    """Opens, types, asks; and keeps what it is told."""

    def __init__(self, folder: Path, capabilities: types.ClientCapabilities = MODERN, *words: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("editor", "1")
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self.log: list[str] = []
        self.seen: list[str] = []
        """The messages that the user sees."""
        self.watched: list[types.Registration] = []
        self.versions: dict[str, int] = {}
        self._news = asyncio.Event()
        self._listen()
        self.capabilities = self.run(self._started(folder, capabilities, words))

    def _listen(self) -> None:
        for name, heard in (
            (types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, self._published),
            (types.WINDOW_LOG_MESSAGE, lambda told: self.log.append(told.message)),
            (types.WINDOW_SHOW_MESSAGE, lambda told: self.seen.append(told.message)),
            (types.CLIENT_REGISTER_CAPABILITY, lambda told: self.watched.extend(told.registrations)),
        ):
            self.client.feature(name)(partial(self._heard, heard))

    def _published(self, params: types.PublishDiagnosticsParams) -> None:
        self.published[params.uri] = params

    def _heard(self, heard: Callable[[Any], None], params: object) -> None:
        heard(params)
        self._news.set()

    async def _started(
        self, folder: Path, capabilities: types.ClientCapabilities, words: Sequence[str]
    ) -> types.ServerCapabilities:
        command = Path(sys.executable).with_name(
            "gradfix"
        )  # by its script, so that no module lies in the way
        await self.client.start_io(str(command), "server", *words, cwd=folder)
        params = types.InitializeParams(capabilities=capabilities, root_uri=folder.as_uri())
        answer = await self.client.initialize_async(params)
        self.client.initialized(types.InitializedParams())
        return answer.capabilities

    def run(self, work: Awaitable[T]) -> T:
        """Do something, as long as it takes and no longer than is reasonable."""
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE))

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for something to become so."""

        async def waiting() -> None:
            while not holds():
                self._news.clear()
                await self._news.wait()

        self.run(waiting())

    def open(self, path: Path | str, text: str, language: str = "python") -> str:
        """Open a text, which need not be what is on disk; its address."""
        uri = path if isinstance(path, str) else uris.from_fs_path(str(path))
        assert uri is not None
        self.versions[uri] = 1
        self.published.pop(uri, None)
        item = types.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def type(self, uri: str, text: str) -> None:
        """Change a text to another."""
        self.versions[uri] += 1
        name = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(name, [change]))

    def save(self, uri: str) -> None:
        """Say that a text was saved."""
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        """Close a text."""
        name = types.TextDocumentIdentifier(uri)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(name))

    def shown(self, uri: str) -> Sequence[types.Diagnostic]:
        """What is shown of the text as it stands, once it is."""
        version = self.versions[uri]
        self.until(lambda: uri in self.published and self.published[uri].version == version)
        return self.published[uri].diagnostics

    def again(self, uri: str) -> Sequence[types.Diagnostic]:
        """What is shown next."""
        before = self.published.get(uri)
        self.until(lambda: self.published.get(uri) is not before)
        return self.published[uri].diagnostics

    def offered(
        self,
        uri: str,
        range_: types.Range = NOWHERE,
        only: Sequence[types.CodeActionKind | str] | None = None,
    ) -> Sequence[types.CodeAction]:
        """What can be done there."""
        context = types.CodeActionContext([], only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), range_, context)
        answer = self.run(self.client.text_document_code_action_async(params))
        return [each for each in answer or () if isinstance(each, types.CodeAction)]

    def hover(self, uri: str, line: int, character: int) -> str:
        """What is shown where the pointer rests."""
        place = types.Position(line, character)
        params = types.HoverParams(types.TextDocumentIdentifier(uri), place)
        answer = self.run(self.client.text_document_hover_async(params))
        contents = answer.contents if answer is not None else None
        return contents.value if isinstance(contents, types.MarkupContent) else ""

    def changed_on_disk(self, *paths: Path) -> None:
        """Say that files were changed."""
        events = [types.FileEvent(path.as_uri(), types.FileChangeType.Changed) for path in paths]
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))

    def processes(self) -> list[int]:
        """The processes that the server has started."""
        assert self.client._server is not None
        return children(self.client._server.pid)

    def leave(self) -> int:
        """Shut the server down; what it exits with."""

        async def leaving() -> int:
            await self.client.shutdown_async(None)
            self.client.exit(None)
            await self.gone()
            assert self.client._server is not None and self.client._server.returncode is not None
            return self.client._server.returncode

        code = self.run(leaving())
        self.loop.close()
        return code

    async def gone(self) -> None:
        """Wait for the server's end."""
        stopped: Awaitable[None] = self.client.stop()  # type: ignore[no-untyped-call]
        await stopped


def children(pid: int) -> list[int]:
    """The processes that one has started and that still are."""
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(Path("/proc", each, "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent == pid:
            found.append(int(each))
    return found


def applied(text: str, edits: Sequence[types.TextEdit | types.AnnotatedTextEdit | object]) -> str:
    """A text after edits in UTF-16, as an editor applies them: all to the text as it was."""
    for edit in sorted(
        (each for each in edits if isinstance(each, types.TextEdit)),
        key=lambda each: each.range.start,
        reverse=True,
    ):
        start, end = (offset(text, place) for place in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    return text


def offset(text: str, place: types.Position) -> int:
    """Where a position in UTF-16 is, in characters."""
    lines = LINE.findall(text)
    before = sum(map(len, lines[: place.line]))
    line = lines[place.line] if place.line < len(lines) else ""
    return before + len(line.encode("utf-16-le")[: place.character * 2].decode("utf-16-le"))
