"""Which message of torch a paste holds, with the facts that stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gradfix.why.messages import MESSAGES, Message
from gradfix.why.traces import Trace


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it was found in a paste."""

    message: Message
    trace: Trace
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def operation(self) -> str:
        """The operation that the message names, without its suffixes: `relu` for ReluBackward0."""
        return plain(self.facts.get("operation") or self.facts.get("operation2") or "")


def plain(node: str) -> str:
    """An operation by the name of its node, in all versions of torch: `relu` for ReluBackward1 and Relu."""
    return re.sub(r"Backward\d*$|\d+$", "", node.rpartition("::")[2]).replace("_", "").lower()


def said_in(found: Iterable[Trace], text: str) -> Said | None:
    """The first failure that is about gradients; of a cut paste, the message that stands in its text."""
    every = list(found)
    told = [said for said in map(_read, every) if said]
    for said in told:
        if said.message.name != "no gradient" or _about_gradients(said.trace):
            return said
    bare = _matched(" ".join(text.split()), Trace((), ()))
    if bare is None or bare.message.name == "no gradient":
        return None
    frames = next((trace for trace in every if trace.frames), bare.trace)
    return Said(bare.message, frames, bare.facts)


def _read(trace: Trace) -> Said | None:
    return _matched(trace.said, trace)


def _matched(text: str, trace: Trace) -> Said | None:
    for message in MESSAGES:
        for pattern in message.patterns:
            if found := re.search(pattern, text):
                facts = {name: value for name, value in found.groupdict().items() if value}
                return Said(message, trace, facts)
    return None


def _about_gradients(trace: Trace) -> bool:
    """Whether a None that failed was a gradient, as far as the quoted lines can tell."""
    quoted = " ".join(frame.code for frame in trace.frames)
    return re.search(r"grad|backward|clip|hook|\.step\(", quoted) is not None
