"""Functions of other packages: harmless ones, numpy, and what passes values through."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.tape.domain.graph import Node, Number, Tensor
from gradfix.tape.domain.values import Const, Map, Seq, Unknown
from gradfix.tape.domain.why import fact
from gradfix.tape.effects import arrays

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.machine.machine import Machine

SILENT_PACKAGES = (
    "os.", "sys.", "time.", "json.", "logging.", "random.", "math.", "re.", "pathlib.", "datetime.",
    "argparse.", "shutil.", "warnings.", "pickle.", "wandb.", "tqdm", "torch.utils.tensorboard",
    "matplotlib.", "torch.cuda.", "torch.distributed.", "torch.backends.", "torch.manual_seed", "torch.save",
    "torch.utils.data", "torch.optim.lr_scheduler", "torchvision.utils", "collections.", "itertools.",
    "typing.", "tensorboardX.", "torchsummary.", "torchinfo.", "thop.", "ptflops.", "torchviz.", "fvcore.",
    "torchview.", "loguru.", "rich.", "prettytable.",
)  # fmt: skip
TRANSLATORS = (
    "taichi.", "numba.", "triton.", "tensorflow.", "jax.", "warp.", "tilelang.", "cupyx.", "pyopencl.",
)  # fmt: skip
"""What takes a decorated function's text for a program of its own: Python never runs it on tensors."""
NUMPY = ("numpy.",)
LARGE = 10_000
"""Up to here even a factorial is made at once."""
EINOPS = frozenset(
    {"einops.rearrange", "einops.reduce", "einops.repeat", "einops.einsum", "einops.pack", "einops.unpack"}
)


def calculated(path: str, numbers: list[object]) -> Value:
    """What a function of `math` makes of known numbers, where that is no work and a number too."""
    known = [one for one in numbers if isinstance(one, (int, float)) and abs(one) <= LARGE]
    function = getattr(math, path.removeprefix("math."), None)
    try:
        result = function(*known) if function is not None and len(known) == len(numbers) else None
        if isinstance(result, (int, float)) and abs(result) < LARGE**2:
            return Const(result)
    except (ArithmeticError, TypeError, ValueError):
        pass
    return Unknown(fact("a constant of math"), requires=False)


def harmless(path: str, args: Args, kwargs: Kwargs) -> Value:
    result = Unknown(fact(f"the result of {path}"))
    result.origin = path
    if path.startswith("tqdm") and args:
        return args[0]
    if path in ("collections.OrderedDict", "collections.defaultdict"):
        return Map({}, open=path.endswith("defaultdict")) if not args else _ordered(args[0])
    if path in ("collections.deque",) and len(args) < 2 and not kwargs:
        return Seq("list", list(args[0].items) if args and isinstance(args[0], Seq) else [], open=True)
    if path.startswith("torch.utils.data") or path.endswith("DataLoader"):
        result.requires = False
        result.lean = frozenset({Convention.A})
    return result


def _ordered(value: Value) -> Value:
    if isinstance(value, Seq) and all(isinstance(item, Seq) and len(item.items) == 2 for item in value.items):
        pairs = [(item.items[0], item.items[1]) for item in value.items if isinstance(item, Seq)]
        if all(isinstance(key, Const) for key, _ in pairs):
            return Map({key.value: item for key, item in pairs if isinstance(key, Const)}, value.open)
    return value if isinstance(value, Map) else Map({}, open=True)


def numpy_call(machine: Machine, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """numpy on arrays that came from tensors stays outside the graph; a tensor that requires grad it asks for
    its own method (`np.squeeze`), or raises; on anything else it is plain data."""
    kept = tuple(
        [
            one
            for one in args
            if isinstance(one, (Tensor, Unknown)) and machine.graph.requires(one) is not False
        ]
    )
    if kept:
        result = Unknown(fact("a numpy value"), kept)
        result.part = True
        return result
    given = [arg for arg in args if isinstance(arg, (Number, Tensor))]
    if given:
        return Number(
            Node("numpy", node, tuple(n for arg in given for n in machine.graph.nodes(arg)), False),
            machine.here.at(node),
            "array",
        )
    result = Unknown(fact("a numpy value"), requires=False)
    result.array = arrays.made(path.removeprefix("numpy."), args, kwargs)
    return result
