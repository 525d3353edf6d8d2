"""`[tool.gradfix]` of the nearest pyproject.toml, with the command line on top, as one frozen Config."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Reading = tuple[str, Callable[[object], bool], Callable[[Any], object]]


class ConfigError(Exception):
    """A configuration that can't be read, with the key and the file at fault."""


@dataclass(frozen=True, slots=True)
class Config:
    """What to look for, where, and what to do about it."""

    root: Path
    """What patterns are relative to: the folder of the pyproject.toml, else the working directory."""
    select: tuple[str, ...] | None = None
    """None: the rules that are on by default."""
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    """None: the default excludes."""
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unsafe_fixes: bool = False
    min_certainty: Literal["certain", "likely"] = "likely"
    fix_certainty: Literal["certain", "likely"] = "likely"
    reduction: Literal["sum", "mean"] = "sum"

    def with_options(self, **given: object) -> Config:
        """The same with the options that were given on the command line; None means not given."""
        return replace(self, **cast("dict[str, Any]", {k: v for k, v in given.items() if v is not None}))

    def selectors(self) -> Mapping[str, tuple[str, ...]]:
        """Every selector of rules, by the key that holds it."""
        keys = {"select": self.select or (), "ignore": self.ignore, "extend-select": self.extend_select}
        return keys | {f"per-file-ignores.{pattern!r}": codes for pattern, codes in self.per_file_ignores}


def read(start: Path) -> Config:
    """The configuration that holds for a folder: the nearest pyproject.toml that speaks of gradfix."""
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            section = _section(file)
            if section is not None:
                return _config(section, file)
    return Config(Path.cwd())


def read_file(file: Path) -> Config:
    """The configuration in one given file."""
    return _config(_section(file) or {}, file)


def _section(file: Path) -> dict[str, object] | None:
    try:
        with file.open("rb") as stream:
            section = tomllib.load(stream).get("tool", {}).get("gradfix")
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error
    if section is not None and not isinstance(section, dict):
        raise ConfigError(f"{file}: tool.gradfix must be a table")
    return section


def _config(section: Mapping[str, object], file: Path) -> Config:
    values = {key.replace("-", "_"): _value(key, value, file) for key, value in section.items()}
    return replace(Config(file.parent.absolute()), **cast("dict[str, Any]", values))


def _value(key: str, value: object, file: Path) -> object:
    if key not in READINGS:
        raise ConfigError(f"{file}: tool.gradfix has no key {key!r}; it knows {', '.join(READINGS)}")
    wanted, holds, convert = READINGS[key]
    if not holds(value):
        raise ConfigError(f"{file}: tool.gradfix.{key} must be {wanted}, not {value!r}")
    return convert(value)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_strings_by_pattern(value: object) -> bool:
    return isinstance(value, dict) and all(_is_strings(item) for item in value.values())


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _by_pattern(value: Mapping[str, list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((pattern, tuple(codes)) for pattern, codes in value.items())


def _one_of(*words: str) -> Reading:
    return (" or ".join(f'"{word}"' for word in words), lambda value: value in words, str)


STRINGS: Reading = ("a list of strings", _is_strings, tuple)
BOOL: Reading = ("true or false", _is_bool, bool)
KINDS: Mapping[str, Reading] = {
    "per_file_ignores": ("a table of lists of strings", _is_strings_by_pattern, _by_pattern),
    "force_exclude": BOOL,
    "unsafe_fixes": BOOL,
    "min_certainty": _one_of("certain", "likely"),
    "fix_certainty": _one_of("certain", "likely"),
    "reduction": _one_of("sum", "mean"),
}
READINGS: Mapping[str, Reading] = {
    field.name.replace("_", "-"): KINDS.get(field.name, STRINGS)
    for field in fields(Config)
    if field.name != "root"
}
"""Each key: what it must be, in words; whether a value is that; how it is kept."""
