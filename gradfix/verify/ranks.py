"""One recording from those of all processes of a program: what is the same said once, what differs named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gradfix.trace.report import Recording

EXIT = "SystemExit"
TRAINS = frozenset({"backward", "step", "update"})


@dataclass(frozen=True, slots=True)
class Process:
    """One of them, as far as it was heard."""

    events: Sequence[Any]
    first: bool = False
    """Whether it is the one that was started for the program."""
    stands: str = ""
    """Where it was when its time was up."""

    def told(self, kind: str) -> list[Any]:
        """Its events of one kind."""
        return [event for event in self.events if event["event"] == kind]

    @property
    def itself(self) -> Mapping[str, Any]:
        """The latest that it said about itself."""
        said = self.told("process")
        return said[-1] if said else {"rank": -1, "world": 0, "name": "MainProcess", "at": 0.0, "pid": 0}

    @property
    def rank(self) -> int:
        return int(self.itself["rank"])

    @property
    def name(self) -> str:
        """What a user calls it."""
        if self.rank >= 0:
            return f"rank {self.rank}"
        named = self.itself["name"] not in ("MainProcess", "")
        return str(self.itself["name"]) if named else f"process {self.itself['pid']}"

    @property
    def place(self) -> tuple[bool, int, str]:
        """Where it comes among those without ranks, whichever was the quickest: 2 before 10."""
        return not self.first, len(self.name), self.name

    @property
    def trains(self) -> bool:
        """Whether it came to a backward or a step."""
        return any(event["event"] in TRAINS for event in self.events)

    @property
    def end(self) -> Mapping[str, Any]:
        """Its last words; those that it did not come to."""
        said = self.told("end")
        nothing: dict[str, Any] = {"how": "", "error": None, "reasons": {}, "lines": {}, "held_back": []}
        return said[-1] if said else {**nothing, "notes": [], "blind": {}, "torch": "", "steps": {}}

    @property
    def steps(self) -> dict[str, int]:
        """How often each optimizer has stepped, also where the end was not heard."""
        seen: dict[str, int] = dict(self.end["steps"])
        if not seen:
            for event in self.told("step"):
                seen[event["optimizer"]] = seen.get(event["optimizer"], 0) + 1
        return seen

    @property
    def reached(self) -> set[str]:
        """The parameters at which a gradient has arrived."""
        return {name for event in self.told("backward") for name, norm in event["reached"].items() if norm}


def merged(recording: Recording, others: Sequence[Sequence[Any]], stand: Sequence[str] = ()) -> Recording:
    """The recording of the first process with those that it has started; `stand`: where they were."""
    main = Process([*recording["events"], *_ending(recording)], first=True)
    every = [main, *(Process(events, stands=at) for events, at in zip(others, stand, strict=True))]
    heard = sorted(every, key=lambda one: (not one.trains, one.rank < 0, one.rank, *one.place))
    training = [one for one in heard if one.trains]
    if len(every) == 1:
        return {**recording, "events": _without_itself(recording["events"])}
    chosen = training[0] if training else main
    ends = [one.end for one in heard]
    error = _error(recording, every)
    return {
        **recording,
        "events": list(_events(chosen, heard)),
        "how": _how(recording, chosen, error),
        "error": error,
        "reasons": {
            name: why for one in [*reversed(heard), chosen] for name, why in one.end["reasons"].items()
        },
        "lines": _together(end["lines"] for end in ends),
        "held_back": sorted({held for end in ends for held in end["held_back"]}),
        "notes": [*dict.fromkeys(note for end in ends for note in end["notes"]), *_where(training)],
        "blind": {part: why for end in ends for part, why in end["blind"].items()},
        "torch": recording["torch"] or chosen.end["torch"],
        "steps": chosen.steps,
        "apart": list(_apart(heard, training, recording)),
    }


def _ending(recording: Recording) -> list[Any]:
    keys = ("how", "error", "reasons", "lines", "held_back", "notes", "blind", "torch", "steps")
    return [{"event": "end", **{key: recording[key] for key in keys}}] if recording["torch"] else []  # type: ignore[literal-required]


def _without_itself(events: Sequence[Any]) -> list[Any]:
    return [event for event in events if event["event"] not in ("process", "end")]


def _events(chosen: Process, heard: Sequence[Process]) -> Iterator[Any]:
    """All of one process; of the others what is new: a broken rule elsewhere, parameters of their own."""
    own, said = set(_named(chosen.events)), {key for event in chosen.events if (key := _place(event))}
    yield from _without_itself(chosen.events)
    for one in heard:
        if one is chosen:
            continue
        theirs = not own & set(_named(one.events))
        for event in _without_itself(one.events):
            key = _place(event)
            if (key and key not in said) or (not key and theirs):
                yield event
            said.add(key)


def _place(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two processes say the same; empty for what is not said by place."""
    if event["event"] not in ("defect", "write"):
        return ()
    place = event["place"]
    return event["event"], event.get("kind", ""), place["file"], place["line"], place["column"]


def _named(events: Sequence[Any]) -> Iterator[str]:
    """The parameters that backward or a step has met."""
    for event in events:
        yield from event["reached"] if event["event"] == "backward" else ()
        yield from event["parameters"] if event["event"] == "step" else ()


def _error(recording: Recording, every: Sequence[Process]) -> Any:
    """What went wrong first: who starts others tells only that one of them has failed."""
    if recording["how"] in ("finished", "stopped"):
        return recording["error"]
    failed = [one for one in every if not one.first and one.end["error"] is not None]
    first = min(failed, key=lambda one: float(one.itself["at"]), default=None)
    return first.end["error"] if first is not None else recording["error"]


def _how(recording: Recording, chosen: Process, error: Any) -> str:
    if error is not None and recording["how"] in ("exit", "error"):
        return "error"
    return recording["how"]


def _together(many: Any) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for lines in many:
        for file, numbers in lines.items():
            found.setdefault(file, set()).update(numbers)
    return {file: sorted(numbers) for file, numbers in found.items()}


def _where(training: Sequence[Process]) -> Iterator[str]:
    """On which processes each broken rule has shown, where there are several."""
    if len(training) < 2:
        return
    shown: dict[tuple[Any, ...], list[Process]] = {}
    for one in training:
        for event in one.told("defect"):
            holders = shown.setdefault(_place(event), [])
            if one not in holders:
                holders.append(one)
    for (_, kind, _, line, _), holders in shown.items():
        yield f"{kind} in line {line}: on {names(holders)}"
    yield f"recorded on {names(training)}"


def _apart(heard: Sequence[Process], training: Sequence[Process], recording: Recording) -> Iterator[str]:
    world = max((int(one.itself["world"]) for one in heard), default=0)
    how = recording["how"]
    if world > 1 and (training or how == "time"):
        unheard = sorted(set(range(world)) - {one.rank for one in heard})
        if unheard:
            yield f"nothing was heard of {spans(unheard)}"
        idle = [one for one in heard if one.rank >= 0 and not one.trains]
        if idle:
            yield f"no backward on {names(idle)}"
    if standing := [f"{one.name} stood in {one.stands}" for one in heard if one.stands]:
        yield ", ".join(standing)
    yield from _steps(training)
    yield from _gradients(training)
    yield from _failed(heard, how in ("finished", "stopped"))
    yield from (_silent(heard) if how in ("finished", "error", "exit") else ())


def _steps(training: Sequence[Process]) -> Iterator[str]:
    """Who never steps what others do."""
    for optimizer in sorted({name for one in training for name, count in one.steps.items() if count}):
        still = [one for one in training if not one.steps.get(optimizer) and _meets(one, training, optimizer)]
        if still:
            counts = [f"{one.steps[optimizer]} on {one.name}" for one in training if one.steps.get(optimizer)]
            yield f"{names(still)} never steps {optimizer} (steps seen: {', '.join(counts[:3])})"


def _meets(one: Process, training: Sequence[Process], optimizer: str) -> bool:
    """Whether a process trains what the optimizer steps elsewhere."""
    stepped = {
        name
        for other in training
        for event in other.told("step")
        if event["optimizer"] == optimizer
        for name in event["parameters"]
    }
    return bool(stepped & one.reached)


def _gradients(training: Sequence[Process]) -> Iterator[str]:
    """Parameters that have their gradient on some processes only."""
    for one in training:
        missed: Mapping[str, str] = one.end["reasons"]
        there = sorted({name for other in training for name in other.reached} & missed.keys() - one.reached)
        if there:
            more = f" and {len(there) - 1} more" if len(there) > 1 else ""
            yield f"no gradient on {one.name} at {there[0]}{more} ({missed[there[0]]})"


def _failed(heard: Sequence[Process], unnoticed: bool) -> Iterator[str]:
    """Processes that have left with an exit code, or failed while the first one went on."""
    for one in heard:
        error = one.end["error"]
        if one.first or error is None:
            continue
        if error["type"] == EXIT:
            where = f" in line {error['place']['line']}" if error["place"] else ""
            yield f"{one.name} left with exit code {exit_code(error['message'])}{where}"
        elif unnoticed:
            yield f"{one.name} failed ({error['type']}: {(error['message'].splitlines() or [''])[0][:160]})"


def exit_code(message: str) -> str:
    """What the system is told by `sys.exit` of a number, or of a text."""
    return message if message.lstrip("-").isdigit() else f"1 ({message.splitlines()[0][:160]})"


def _silent(heard: Sequence[Process]) -> Iterator[str]:
    """Processes that have vanished."""
    for one in heard:
        if not one.first and (one.trains or one.rank >= 0) and not one.end["how"]:
            yield f"{one.name} ended without a word (killed, or left in native code)"


def names(processes: Sequence[Process]) -> str:
    """Some processes in few words: `ranks 0-3`."""
    ranks = sorted(one.rank for one in processes if one.rank >= 0)
    others = [one.name for one in processes if one.rank < 0]
    return ", ".join([*([spans(ranks)] if ranks else []), *others[:3]]) + (
        f" and {len(others) - 3} more" if len(others) > 3 else ""
    )


def spans(ranks: Sequence[int]) -> str:
    """`rank 2`, `ranks 0-3, 5`."""
    runs = []
    for _, group in groupby(enumerate(ranks), key=lambda pair: pair[1] - pair[0]):
        run = [rank for _, rank in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(runs)}"
