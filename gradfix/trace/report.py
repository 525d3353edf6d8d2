"""What a recording is made of: plain JSON values, shared by the recorder and the judge. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from gradfix.defects import Role

CALLS, BACKWARD, STEPS, BOOKS = "calls of torch", "backward", "steps of optimizers", "what it records"
ESSENTIAL = frozenset({CALLS, BACKWARD, STEPS, BOOKS})
"""The parts of the recorder without which nothing can be said of a run."""
CONFINED = "no namespaces here: the kernel refuses what would change files, and connections to others"
BY_CALLS = "no namespaces here, nor Landlock: writes and connections are held back call by call"


class Place(TypedDict):
    """Where in a file: lines from 1, columns in UTF-8 bytes from 0 (None before Python 3.11)."""

    file: str
    line: int
    end_line: int
    column: int | None
    end_column: int | None


class Chained(TypedDict):
    """One step of the evidence of a recorded defect."""

    role: str
    """The name of a `defects.Role`."""
    place: Place


def sentence(step: Chained, facts: Mapping[str, Any]) -> str:
    """What a user reads at a step of the evidence."""
    return Role[step["role"]].says(str(facts.get("saver", "")))


class RecordedDefect(TypedDict):
    """A broken rule as the run met it: `kind` is the rule's name."""

    event: Literal["defect"]
    kind: str
    place: Place
    evidence: list[Chained]
    torch_says: str
    facts: dict[str, Any]


class WriteEvent(TypedDict):
    """An in-place write on a tensor of the graph, told once per place."""

    event: Literal["write"]
    place: Place
    operation: str


class Root(TypedDict):
    """What backward started from."""

    shape: list[int]
    grad_fn: str
    requires_grad: bool
    value: float | None
    """The loss itself, where it is one number."""


class BackwardEvent(TypedDict):
    """One call of backward (or autograd.grad)."""

    event: Literal["backward"]
    place: Place | None
    root: Root
    error: str
    reached: dict[str, float | None]
    """Leaf -> norm of its gradient afterwards; None: not finite or not readable."""


class ParameterAtStep(TypedDict):
    """What a step found in one parameter's gradient."""

    grad: Literal["none", "zero", "finite", "not finite"]
    norm: float | None
    state: Literal["", "fresh", "stale"]


class StepEvent(TypedDict):
    """One step of an optimizer, or one update by hand (optimizer "")."""

    event: Literal["step"]
    place: Place | None
    optimizer: str
    parameters: dict[str, ParameterAtStep]


class UpdateEvent(TypedDict):
    """What the first step of an optimizer has left: what the next one starts from."""

    event: Literal["update"]
    optimizer: str
    weights: dict[str, float]
    """Parameter -> its norm."""
    options: dict[str, dict[str, float]]
    """Parameter -> the numbers by which it is stepped: learning rate, decay and the like."""
    buffers: dict[str, float]
    learned: dict[str, list[Place]]
    """Parameter -> the backwards whose gradients the step has used."""


class ReturnedEvent(TypedDict):
    """What the program's own modules have returned before the first backward."""

    event: Literal["returned"]
    values: list[tuple[str, float]]
    """Class of the module, and the norm of what it returned, in order."""


class ProcessEvent(TypedDict):
    """Which of the processes of a program speaks here; told again as more of it is known."""

    event: Literal["process"]
    pid: int
    rank: int
    """-1: it has none."""
    world: int
    """How many ranks there are; 0: it is in no group."""
    name: str
    at: float
    """When, by the clock that all processes share."""


class Failure(TypedDict):
    """The exception that ended the program."""

    type: str
    message: str
    place: Place | None


class Ending(TypedDict):
    """How the run ended, and what can only be said then."""

    event: Literal["end"]
    how: Literal["finished", "stopped", "error", "exit", "killed"]
    error: Failure | None
    reasons: dict[str, str]
    """Parameter without a gradient -> why."""
    lines: dict[str, list[int]]
    """File -> lines on which torch was called."""
    held_back: list[str]
    notes: list[str]
    blind: dict[str, str]
    """Part of the recorder that was off -> what went wrong there."""
    torch: str
    """Its version."""
    compiler: bool
    """Whether the program has imported torch's compiler, which the next one had better find."""
    steps: dict[str, int]
    """Optimizer -> how many steps of it were seen; 0: it trains what no other one does, and never stepped."""


class Recording(TypedDict):
    """Everything that one run said."""

    events: list[Any]
    how: str
    """As Ending.how, or "time", "memory", "signal", "no torch", "broken", "garbled", "spent"."""
    error: Failure | None
    reasons: dict[str, str]
    lines: dict[str, list[int]]
    held_back: list[str]
    notes: list[str]
    blind: dict[str, str]
    torch: str
    steps: dict[str, int]
    apart: list[str]
    """In what the processes of one program differ."""
    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
