"""`[tool.gradfix]` of the nearest pyproject.toml, with the command line on top, as one frozen Config."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from gradfix.defects import Enough
from gradfix.rule import Reduction
from gradfix.tape.effects.frameworks import Entry, Row

Reading: TypeAlias = tuple[str, Callable[[object], bool], Callable[[Any], object]]


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
    min_certainty: Enough = "likely"
    """The least certainty of a finding."""
    fix_certainty: Enough = "likely"
    """The least certainty of what is rewritten."""
    reduction: Reduction = "sum"
    frameworks: tuple[tuple[str, Row], ...] = ()
    """What the user's own trainers do, by the names of their classes and functions."""
    suspects: bool = False
    """Whether what leans on more than conventions is listed too; it is never rewritten."""
    cache_dir: str | None = None
    """Where outcomes are kept, seen from the root; None: in a folder of its own there."""

    def with_options(self, **given: object) -> Config:
        """The same with the options that were given on the command line; None means not given."""
        return replace(self, **cast("dict[str, Any]", {k: v for k, v in given.items() if v is not None}))

    def selectors(self) -> Mapping[str, tuple[str, ...]]:
        """Every selector of rules, by the key that holds it."""
        keys = {"select": self.select or (), "ignore": self.ignore, "extend-select": self.extend_select}
        return keys | {f"per-file-ignores.{pattern!r}": codes for pattern, codes in self.per_file_ignores}

    def patterns(self) -> Mapping[str, tuple[str, ...]]:
        """Every pattern of files, by the key that holds it."""
        ignored = tuple(pattern for pattern, _ in self.per_file_ignores)
        return {
            "exclude": self.exclude or (),
            "extend-exclude": self.extend_exclude,
            "per-file-ignores": ignored,
        }


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
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

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
    if key == "frameworks":
        where = f"{file}: tool.gradfix.frameworks"
        return tuple((name, _row(row, f"{where}.{name}")) for name, row in _table(value, where).items())
    if key not in READINGS:
        known = ", ".join((*READINGS, "frameworks"))
        raise ConfigError(f"{file}: tool.gradfix has no key {key!r}; it knows {known}")
    wanted, holds, convert = READINGS[key]
    if not holds(value):
        raise ConfigError(f"{file}: tool.gradfix.{key} must be {wanted}, not {value!r}")
    return convert(value)


def _table(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table, not {value!r}")
    return value


def _row(value: object, where: str) -> Row:
    """A framework's row: lists name methods by what they do, tables say how a user's function is called."""
    does: dict[str, Any] = {}
    entries: dict[str, Entry] = {}
    for key, item in _table(value, where).items():
        if isinstance(item, dict):
            entries[key] = _entry(item, f"{where}.{key}")
        elif key not in DEEDS:
            told = f"the lists {', '.join(DEEDS)}, and a table for each function that it calls"
            raise ConfigError(f"{where} has no key {key!r}; it knows {told}")
        elif not _is_strings(item):
            raise ConfigError(f"{where}.{key} must be a list of strings, not {item!r}")
        else:
            does[key.replace("-", "_")] = frozenset(cast("list[str]", item))
    return Row(methods=entries, functions=entries, own=True, **does)


def _entry(value: Mapping[str, object], where: str) -> Entry:
    for key, item in value.items():
        if key not in FLAGS:
            raise ConfigError(f"{where} has no key {key!r}; it knows {', '.join(FLAGS)}")
        wanted, holds, _ = FLAGS[key]
        if not holds(item):
            raise ConfigError(f"{where}.{key} must be {wanted}, not {item!r}")
    said: dict[str, Any] = {key.replace("-", "_"): FLAGS[key][2](item) for key, item in value.items()}
    return Entry(**said)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_strings_by_pattern(value: object) -> bool:
    return isinstance(value, dict) and all(_is_strings(item) for item in value.values())


def _is_roles(value: object) -> bool:
    return _is_strings(value) and all(item in ROLES for item in cast("list[str]", value))


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.strip() != "" and "\0" not in value


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _by_pattern(value: Mapping[str, list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((pattern, tuple(codes)) for pattern, codes in value.items())


def _one_of(*words: str) -> Reading:
    return (" or ".join(f'"{word}"' for word in words), lambda value: value in words, str)


STRINGS: Reading = ("a list of strings", _is_strings, tuple)
BOOL: Reading = ("true or false", _is_bool, bool)
DEEDS = ("backward", "step", "zero-grad", "prepares", "harmless")
"""What a framework's methods do, as keys of its row."""
ROLES = ("batch", "module", "prediction", "")
FLAGS: Mapping[str, Reading] = {
    "grad": BOOL,
    "root": BOOL,
    "owns-steps": BOOL,
    "given": (f"a list of {', '.join(map(repr, ROLES))}", _is_roles, tuple),
}
"""What can be said of a function that a framework calls."""
KINDS: Mapping[str, Reading] = {
    "per_file_ignores": ("a table of lists of strings", _is_strings_by_pattern, _by_pattern),
    "force_exclude": BOOL,
    "cache_dir": ("a path", _is_path, str),
    "unsafe_fixes": BOOL,
    "suspects": BOOL,
    "min_certainty": _one_of(*get_args(Enough)),
    "fix_certainty": _one_of(*get_args(Enough)),
    "reduction": _one_of(*get_args(Reduction)),
}
READINGS: Mapping[str, Reading] = {
    field.name.replace("_", "-"): KINDS.get(field.name, STRINGS)
    for field in fields(Config)
    if field.name not in ("root", "frameworks")
}
"""Each key: what it must be, in words; whether a value is that; how it is kept."""
