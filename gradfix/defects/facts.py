"""What every record of facts is: its fields by their names."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a defect."""

    def named(self) -> dict[str, Any]:
        """The facts by the names of their fields."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
