"""What the uses of an argument say of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradfix.driver.search.roles import Role


@dataclass(slots=True)
class Facts:
    """All that was gathered; where two uses disagree, both stay."""

    roles: list[Role] = field(default_factory=list)
    """As a number or a string."""
    tensor: int = 0
    """How many uses only a tensor allows."""
    root: int = 0
    """How often it is backpropagated itself."""
    index: int = 0
    mask: int = 0
    share: int = 0
    label: int = 0
    hidden: tuple[bool, tuple[int, ...]] | None = None
    """Of a recurrent layer's state: whether it is a pair, and the shape."""
    module: int = 0
    """Uses that only a module allows."""
    high: int = 0
    """Of an index: how many there are."""
    ndim: int = 0
    least: int = 0
    """As many dimensions at least."""
    dims: dict[int, int] = field(default_factory=dict)
    """The size of a dimension, as the first layer takes it."""
    strings: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    sequence: int = 0
    unpacked: int = 0
    """How many parts it is taken apart into."""
    mapping: int = 0
    number: int = 0
    constants: list[int] = field(default_factory=list)
    """Numbers that it is compared to."""
    optional: bool = False
    device: int = 0
    flag: int = 0
    called: list[int] = field(default_factory=list)
    """With how many arguments it is called itself."""
    spread: int = 0
    """How many of these calls get a list taken apart."""
    built: int = 0
    """Whether what is called is called while something is built: a class, or what makes a part."""
    result: Facts | None = None
    """What is known of what it returns, where it is called."""
    items: Facts | None = None
    """What is known of its items."""
    parts: dict[int, Facts] = field(default_factory=dict)
    """What is known of each part that it is taken apart into."""

    def part(self, at: int) -> Facts:
        """One of them."""
        return self.parts.setdefault(at, Facts())

    def takes(self, size: int, at: int) -> None:
        """One dimension has this size, as what uses it first says."""
        self.tensor += 1
        self.dims.setdefault(at, size)

    def has(self, ndim: int) -> None:
        """It has so many dimensions, as what uses it first says."""
        self.tensor += 1
        self.ndim = self.ndim or ndim
