"""The native functions of the installed torch as Python sees them, and what derivatives.yaml saves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import torchgen
from torchgen.api.autograd import match_differentiability_info
from torchgen.api.types import BaseCType, tensorT
from torchgen.gen import parse_native_yaml
from torchgen.model import NativeFunction, SchemaKind
from torchgen.packaged.autograd.load_derivatives import load_derivatives

NAMESPACES = {"linalg": "linalg_", "special": "special_", "fft": "fft_"}
FACTORY = {"dtype", "layout", "device", "pin_memory"}
UNCALLABLE = re.compile(
    r"quantize|^q_|mkldnn|cudnn|miopen|fbgemm|sparse|record_stream|^set_$|^data$|(?<!index)_copy$|backward|^qscheme|rename"
    r"|^int_repr|nested|^sym_|^from_file$|^choose_q|values$|indices$|^histogramdd|^hspmm|^sspaddmm|_crow|^ccol|^crow|^row_ind|^col_ind"
)


@dataclass(frozen=True)
class Argument:
    name: str
    type: str
    default: str | None
    keyword: bool

    @property
    def kind(self) -> str:
        if "[" in self.type:
            return "l" if self.type.startswith("Tensor") else "o"
        name = self.type.split("(")[0].rstrip("?")
        return {"Tensor": "t", "Scalar": "n", "float": "n", "int": "n", "SymInt": "n"}.get(name, "o")


@dataclass(frozen=True)
class Overload:
    """One native overload, with Python's argument names."""

    base: str
    overload: str
    surfaces: tuple[tuple[str, str], ...]
    """(surface, name on it): ("method", "add"), ("function", "special.expit")."""
    arguments: tuple[Argument, ...]
    kind: SchemaKind
    view: bool
    many: bool
    results: int
    composite: bool
    saves: Mapping[str, list[str]] | None = None
    outs: tuple[str, ...] = field(default=())

    @property
    def needs(self) -> int:
        """How many arguments in front have no default."""
        return len(list(takewhile(lambda a: a.default is None and not a.keyword, self.arguments)))

    @property
    def keyword(self) -> int:
        return sum(a.keyword for a in self.arguments)

    @property
    def spelled(self) -> str:
        return f"{self.base}.{self.overload or 'default'}"


def _packaged(*parts: str) -> str:
    return os.path.join(os.path.dirname(str(torchgen.__file__)), "packaged", *parts)


def overloads() -> Iterator[Overload]:
    """Everything public that takes part in Python's surface."""
    native, tags = (
        _packaged("ATen", "native", "native_functions.yaml"),
        _packaged("ATen", "native", "tags.yaml"),
    )
    functions = parse_native_yaml(native, tags).native_functions
    infos, _ = load_derivatives(_packaged("autograd", "derivatives.yaml"), native, tags)
    for matched in match_differentiability_info(functions, infos):
        f = matched.func
        base = str(f.func.name.name)
        if UNCALLABLE.search(base) or (base.startswith("_") and not base.startswith("__")):
            continue
        if any("Dimname" in str(a.type) for a in f.func.arguments.flat_all):
            continue
        surfaces = tuple(_surfaces(f, base))
        if surfaces:
            info = (matched.info or {}).get("Default")
            yield _overload(f, base, surfaces, _saves(f, info) if info is not None else None)


def _surfaces(f: NativeFunction, base: str) -> Iterator[tuple[str, str]]:
    if "method" in {v.name for v in f.variants}:
        yield "method", base
    if "function" not in {v.name for v in f.variants}:
        return
    if f.python_module in NAMESPACES:
        yield "function", f"{f.python_module}.{base.removeprefix(NAMESPACES[f.python_module])}"
    elif f.python_module == "nn":
        yield "functional", base
    elif f.python_module is None:
        yield "function", base
        yield "functional", base


def _overload(
    f: NativeFunction, base: str, surfaces: tuple[tuple[str, str], ...], saves: Mapping[str, list[str]] | None
) -> Overload:
    schema = f.func
    positional = {a.name for a in schema.arguments.flat_positional}
    flat = [
        Argument(a.name, str(a.type), a.default, a.name not in positional) for a in schema.arguments.flat_all
    ]
    outs = tuple(a.name for a in schema.arguments.out)
    returns = schema.returns
    return Overload(
        base=base,
        overload=schema.name.overload_name,
        surfaces=surfaces,
        arguments=tuple(flat),
        kind=schema.kind(),
        view=any(r.annotation is not None and not r.annotation.is_write for r in returns),
        many=any("[]" in str(r.type) for r in returns),
        results=0 if any("Tensor[]" in str(r.type) for r in returns) else max(1, len(returns)),
        composite=f.has_composite_implicit_autograd_kernel,
        saves=saves,
        outs=outs,
    )


def _saves(f: NativeFunction, info: Any) -> dict[str, list[str]]:
    """What the generated autograd code keeps, on the conditions of torchgen's `guard_for`."""
    differentiable = [n for d in info.derivatives for n in d.var_names]
    order = [a.name for a in f.func.arguments.flat_all if a.name in differentiable]
    inplace = f.func.kind() is SchemaKind.inplace
    lists = any("Tensor" in str(a.type) and "[" in str(a.type) for a in f.func.arguments.flat_all)
    saves: dict[str, list[str]] = {}
    for saved in info.all_saved_inputs:
        name = _saved_name(saved)
        if "ensor" not in str(saved.nctype.type) or (inplace and name == "self") or "(" in saved.expr:
            continue
        if name in {a.name for a in f.func.arguments.flat_all}:
            saves[name] = order if lists else _guarded(info, saved, order)
    for saved in info.all_saved_outputs:
        if "ensor" in str(saved.nctype.type):
            saves[_output_name(f, _saved_name(saved))] = order
    return saves


def _saved_name(saved: Any) -> str:
    name = saved.nctype.name
    return str(getattr(name, "name", name))


def _output_name(f: NativeFunction, name: str) -> str:
    if len(f.func.returns) == 1:
        return "result"
    names = [r.name or f"result{i}" for i, r in enumerate(f.func.returns)]
    return f"result{names.index(name)}" if name in names else name


def _guarded(info: Any, saved: Any, order: list[str]) -> list[str]:
    if len(order) <= 1 or "backward" in info.name or saved.nctype.type != BaseCType(tensorT):
        return order
    used_in = [d for d in info.derivatives if saved in d.saved_inputs]
    if len(used_in) != 1:
        return order
    if len(used_in[0].var_names) == 1:
        return list(used_in[0].var_names)
    wrapped = re.search(rf"wrap_opt_if\({_saved_name(saved)},(.*?)\)", used_in[0].formula)
    if wrapped is None:
        return order
    numbers = [int(n) for n in re.findall(r"grad_input_mask\[(\d+)\]", wrapped.group(1))]
    return [used_in[0].var_names[n] for n in numbers] or order
