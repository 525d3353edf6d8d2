"""The undo journal of the tape: branches run on the same state, are undone, and are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from gradfix.tape.domain.alternatives import LIMIT, join
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import Arm, contradicts
from gradfix.tape.domain.values import Join, Unknown, Value, stamp
from gradfix.tape.domain.written import KINDS, PARTS, Written

if TYPE_CHECKING:
    from gradfix.tape.domain.joins import Born, Holder
    from gradfix.tape.domain.paths import Chain, Path

K = TypeVar("K", bound=Hashable)


class Change(ABC):
    """One cell that a branch wrote: what it held before, and at the end of the branch."""

    __slots__ = ("join", "new", "old")
    owner: Born
    join: Join
    old: object
    new: object

    @abstractmethod
    def read(self) -> object:
        """The cell's present content."""

    @abstractmethod
    def write(self, content: object) -> None:
        """Fill the cell, past the journal."""

    @abstractmethod
    def anew(self) -> Change:
        """The same cell, noted now."""


class Attribute(Change):
    """An attribute of an object."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Holder, name: str) -> None:
        self.owner: Holder = owner
        self.name = name
        self.join = owner.JOINS[name]
        self.old = self.new = getattr(owner, name)

    def read(self) -> object:
        return getattr(self.owner, self.name)

    def write(self, content: object) -> None:
        setattr(self.owner, self.name, content)

    def anew(self) -> Change:
        return Attribute(self.owner, self.name)


class Entry(Change, Generic[K]):
    """An entry of a dict of values that belongs to an object; None where it isn't there."""

    __slots__ = ("holder", "key", "owner")

    def __init__(self, owner: Born, holder: dict[K, Value], key: K) -> None:
        self.owner: Born = owner
        self.holder = holder
        self.key = key
        self.join = Join.VALUE
        self.old = self.new = holder.get(key)

    def read(self) -> Value | None:
        return self.holder.get(self.key)

    def write(self, content: object) -> None:
        if isinstance(content, Value):
            self.holder[self.key] = content
        else:
            self.holder.pop(self.key, None)

    def anew(self) -> Change:
        return Entry(self.owner, self.holder, self.key)


def _absent(owner: Born, path: Path) -> bool:
    """Whether a tensor isn't there on a path: an operation made it on one that excludes it. A leaf, and
    what `.grad` reads as, may have been there before somebody looked at it."""
    if type(owner) is not Tensor or owner.grad_of is not None:
        return False
    node = owner.node
    return bool(node.parents) and node.guards is None and contradicts(node.path, path)


Changes: TypeAlias = dict[tuple[int, Hashable], Change]


class Trail:
    """Cells are written through it, so that a branch can be undone; `clock` counts what happened."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, Changes]] = []
        self.written = Written()
        self.clock = 0
        self.deeds = 0
        """How often memory, graphs or gradients were changed, not only what names and attributes hold."""
        self.learnt: list[tuple[Born, str, object]] = []
        """What was found out about things older than what is executed here, and what they held before."""
        self.born = 0
        """When that began."""
        self.spread = 1 << 30
        """How many alternatives may still be looked at one by one; then different ones become one unknown."""

    def set(self, owner: Holder, name: str, value: object) -> None:
        """Assign an attribute."""
        self.clock += 1
        if self.frames:
            born, changes = self.frames[-1]
            if owner.born <= born and (mark := (id(owner), name)) not in changes:
                changes[mark] = Attribute(owner, name)
        if name in PARTS:
            self.written.note(owner)
        setattr(owner, name, value)

    def learn(self, owner: Born, name: str, value: object) -> None:
        """Note on a thing what it has turned out to be: on whatever path, for as long as an entry runs."""
        if owner.born <= self.born:
            self.learnt.append((owner, name, getattr(owner, name)))
        if name in KINDS:
            self.written.forget()
        setattr(owner, name, value)

    def learn_part(self, owner: Born, name: str, key: str, value: Value) -> None:
        """The same for one entry of a dict, which a thing gets with its first.

        A part that is met in one arm of a branch is there in the other: what happens to it is undone.
        """
        if type(value) is Unknown:
            value.born = min(value.born, owner.born)
        self.written.note(owner)
        held = getattr(owner, name)
        if held is None:
            self.learn(owner, name, {key: value})
        else:
            if owner.born <= self.born:
                self.learnt.append((owner, name, {**held}))
            held[key] = value

    def begin(self) -> None:
        """An entry starts: whatever it does to older things is undone when it ends."""
        self.born = stamp()
        self.open(self.born)

    def forget(self) -> None:
        """The entry ends: nothing that it has written or found out is left."""
        while self.frames:
            self.undo()
        for owner, name, before in reversed(self.learnt):
            setattr(owner, name, before)
        self.learnt.clear()
        self.written.forget()

    def tick(self) -> None:
        """Memory, a graph or a gradient was changed."""
        self.clock += 1
        self.deeds += 1

    def put(self, owner: Born, holder: dict[K, Value], key: K, value: Value) -> None:
        """Assign a dict entry."""
        self.clock += 1
        self.written.note(owner)
        self.fill(owner, holder, key, value)

    def fill(self, owner: Born, holder: dict[K, Value], key: K, value: Value) -> None:
        """Assign a dict entry that counts for nothing that happened."""
        if self.frames:
            self._note(owner, holder, key)
        holder[key] = value

    def drop(self, owner: Born, holder: dict[K, Value], key: K) -> None:
        """Delete a dict entry."""
        self.clock += 1
        self.written.note(owner)
        if self.frames:
            self._note(owner, holder, key)
        holder.pop(key, None)

    def _note(self, owner: Born, holder: dict[K, Value], key: K) -> None:
        born, changes = self.frames[-1]
        if owner.born <= born and (mark := (id(holder), key)) not in changes:
            changes[mark] = Entry(owner, holder, key)

    def open(self, born: int) -> None:
        """Start a branch; what is born later than `born` belongs to it."""
        self.frames.append((born, {}))

    def undo(self) -> Changes:
        """End a branch and restore the state at its start; returns what it changed."""
        _, changes = self.frames.pop()
        for change in changes.values():
            change.new = change.read()
            change.write(change.old)
        self.written.note_all(change.owner for change in changes.values())
        return changes

    def undo_of(self, kind: type) -> Changes:
        """End a branch that undoes only what it changed of things of one kind; returns that."""
        _, changes = self.frames.pop()
        if not changes:
            return changes
        undone = {mark: change for mark, change in changes.items() if type(change.owner) is kind}
        for mark, change in undone.items():
            del changes[mark]
            change.new = change.read()
            change.write(change.old)
        self.written.note_all(change.owner for change in undone.values())
        self._hand_on(changes)
        return undone

    def close(self) -> None:
        """End a branch that was the only one: what it changed stays, as the doing of the branch around it."""
        _, changes = self.frames.pop()
        self._hand_on(changes)

    def _hand_on(self, changes: Changes) -> None:
        """Let what stays be the doing of the branch around it."""
        if not self.frames:
            return
        born, outer = self.frames[-1]
        for mark, change in changes.items():
            if change.owner.born <= born:
                outer.setdefault(mark, change)

    def since(self, depth: int) -> Changes:
        """What has been written since there were so many branches, as it stands."""
        found: Changes = {}
        for _, changes in self.frames[depth:]:
            for mark, change in changes.items():
                if mark not in found:
                    found[mark] = change.anew()
                    found[mark].old = change.old
        return found

    def replay(self, mark: tuple[int, Hashable], change: Change, content: object) -> None:
        """Write a cell of an undone branch, journalled in the branch around it."""
        self.clock += 1
        if self.frames:
            born, changes = self.frames[-1]
            if change.owner.born <= born and mark not in changes:
                changes[mark] = change.anew()
        self.written.note(change.owner)
        change.write(content)

    def merge(self, branches: list[tuple[Path, Changes]]) -> None:
        """Let each cell hold what it held at the end of each branch, under that branch's path."""
        cells: Changes = {}
        for _, changes in branches:
            cells.update(changes)
        for mark, change in cells.items():
            now = change.read()
            there = [one for one in branches if mark in one[1] or not _absent(change.owner, one[0])]
            options = [(path, changes[mark].new if mark in changes else now) for path, changes in there]
            self.replay(mark, change, join(change.join, options, self.limit))

    def merge_arms(self, chain: Chain, branches: list[tuple[int, Path, Changes]]) -> None:
        """The same for the arms of a chain: what one doesn't change isn't looked at for it."""
        cells: dict[tuple[int, Hashable], list[tuple[int, Path, Change]]] = {}
        for arm, path, changes in branches:
            for mark, change in changes.items():
                cells.setdefault(mark, []).append((arm, path, change))
        live = sum(arm for arm, _, _ in branches)
        for mark, written in cells.items():
            options = [(path, change.new) for _, path, change in written]
            rest = live & ~sum(arm for arm, _, _ in written)
            if rest:
                options.append((frozenset({(Arm(chain, rest), True)}), written[0][2].read()))
            change = written[0][2]
            self.replay(mark, change, join(change.join, options, self.limit))

    @property
    def limit(self) -> int:
        """How many alternatives are kept apart now."""
        return LIMIT if self.spread > 0 else 1
