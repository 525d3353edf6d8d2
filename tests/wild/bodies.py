"""The blocks that a `forward` is made of: each a step of healthy code on a tensor of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .world import Lines, World, under

ACTS = ("relu", "tanh", "sigmoid", "gelu", "elu", "softplus", "leaky_relu", "silu")


@dataclass
class Body:
    """A module in the making: what its constructor makes, what its forward does, how wide its rows are."""

    world: World
    width: int
    made: Lines = field(default_factory=list)
    lines: Lines = field(default_factory=list)
    methods: Lines = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    h: str = "x"
    start: int = 0
    """How wide the rows are that come in."""

    def __post_init__(self) -> None:
        self.start = self.width

    def attribute(self, stem: str) -> str:
        number = self.names.get(stem, 0)
        self.names[stem] = number + 1
        return f"self.{stem}{number}" if number else f"self.{stem}"

    def make(self, stem: str, value: str) -> str:
        """An attribute that the constructor sets."""
        name = self.attribute(stem)
        self.made.append(f"{name} = {value}")
        return name

    def linear(self, out: int | None = None, stem: str = "fc") -> str:
        out = out or self.width
        bias = ", bias=False" if self.world.dice.chance(0.1) else ""
        return self.make(stem, f"nn.Linear({self.width}, {out}{bias})")

    def go(self, value: str, width: int | None = None) -> None:
        """The next value; under the same name or a new one."""
        dice = self.world.dice
        name = self.h if self.h != "x" and dice.chance(0.6) else dice.one("h", "out", "z", "features", "x")
        self.lines.append(f"{name} = {value}")
        self.h, self.width = name, width or self.width

    def local(self, stem: str) -> str:
        number = self.names.get("local " + stem, 0)
        self.names["local " + stem] = number + 1
        return f"{stem}{number}" if number else stem


def act(world: World, value: str) -> str:
    """An activation, in one of its spellings."""
    dice = world.dice
    name = dice.choice(ACTS)
    if name in ("relu", "tanh", "sigmoid") and dice.chance(0.5):
        return dice.one(f"torch.{name}({value})", f"{_called(value)}.{name}()")
    return f"F.{name}({value})"


def _called(value: str) -> str:
    return value if value.isidentifier() or value.endswith(")") else f"({value})"


def layered(body: Body) -> None:
    width = body.world.dice.randint(3, 8)
    body.go(act(body.world, f"{body.linear(width)}({body.h})"), width)


def two_lines(body: Body) -> None:
    body.go(f"{body.linear()}({body.h})")
    body.go(act(body.world, body.h))


def inplace_module(body: Body) -> None:
    kind = body.world.dice.one(
        "nn.ReLU(inplace=True)", "nn.LeakyReLU(0.1, inplace=True)", "nn.SiLU(inplace=True)"
    )
    activation = body.make("act", kind)
    body.go(f"{activation}({body.linear()}({body.h}))")


def sequential(body: Body) -> None:
    dice, width = body.world.dice, body.world.dice.randint(3, 8)
    parts = [f"nn.Linear({body.width}, {width})"]
    parts += dice.some(
        [
            "nn.Tanh()",
            "nn.ReLU(inplace=True)",
            "nn.ReLU()",
            f"nn.LayerNorm({width})",
            "nn.Dropout(0.1)",
            f"nn.Linear({width}, {width})",
            "nn.Identity()",
        ],
        1,
        4,
    )
    layers = ", ".join(parts)
    if dice.chance(0.3):
        name = body.local("layers")
        body.made += [f"{name} = [{parts[0]}]", *(f"{name}.append({part})" for part in parts[1:])]
        layers = f"*{name}"
    body.go(f"{body.make('block', f'nn.Sequential({layers})')}({body.h})", width)


def residual(body: Body) -> None:
    layer = body.linear()
    form = body.world.dice.randint(0, 3)
    if form == 0:
        body.go(f"{body.h} + {act(body.world, f'{layer}({body.h})')}")
    elif form == 1:
        skip = body.local("skip")
        body.lines.append(f"{skip} = {body.h}")
        body.lines.append(f"{body.h} = {layer}({body.h})")
        body.lines.append(f"{body.h} += {skip}")
    elif form == 2:
        inner = body.local("inner")
        body.lines += [f"{inner} = {layer}({body.h})", f"{inner}.add_({body.h})"]
        body.go(act(body.world, inner))
    else:
        body.go(f"torch.add({body.h}, {layer}({body.h}), alpha=0.5)")


def gated(body: Body) -> None:
    gate, value = body.linear(stem="gate"), body.linear(stem="value")
    h = body.h
    if body.world.dice.chance(0.5):
        body.go(f"torch.sigmoid({gate}({h})) * {value}({h})")
    else:
        name = body.local("g")
        body.lines.append(f"{name} = {gate}({h}).sigmoid()")
        body.go(f"{name} * {h} + (1 - {name}) * {value}({h})")


def chunked(body: Body) -> None:
    layer = body.linear(2 * body.width)
    a, b = body.local("a"), body.local("b")
    cut = body.world.dice.one(
        f"{layer}({body.h}).chunk(2, dim=-1)",
        f"torch.chunk({layer}({body.h}), 2, 1)",
        f"{layer}({body.h}).split({body.width}, dim=1)",
        f"torch.split({layer}({body.h}), [{body.width}, {body.width}], dim=-1)",
    )
    body.lines.append(f"{a}, {b} = {cut}")
    body.go(
        body.world.dice.one(
            f"{a} * torch.sigmoid({b})", f"{a} + F.relu({b})", f"{a} * {b}.exp().clamp(max=3)"
        )
    )


def normed(body: Body) -> None:
    norm = body.world.dice.one("LayerNorm", "BatchNorm1d", "LayerNorm")
    body.go(f"{body.make('norm', f'nn.{norm}({body.width})')}({body.h})")


def dropped(body: Body) -> None:
    if body.world.dice.chance(0.5):
        body.go(f"{body.make('drop', 'nn.Dropout(0.2)')}({body.h})")
    else:
        body.go(f"F.dropout({body.h}, p=0.1, training=self.training)")


def joined(body: Body) -> None:
    left, right = body.linear(3, "left"), body.linear(4, "right")
    body.go(f"torch.cat([{left}({body.h}), {act(body.world, f'{right}({body.h})')}], dim=1)", 7)


def scaled(body: Body) -> None:
    dice = body.world.dice
    shape = dice.one(f"{body.width}", "1")
    scale = body.make("scale", f"nn.Parameter(torch.{dice.one('ones', 'ones', 'rand')}({shape}))")
    body.go(dice.one(f"{body.h} * {scale}", f"{scale} * {body.h}", f"{body.h} * {scale}.exp()"))
    if dice.chance(0.4):
        shift = body.make("shift", f"nn.Parameter(torch.zeros({body.width}))")
        body.go(f"{body.h} + {shift}")


def weighed(body: Body) -> None:
    """A weight of its own, with the product written out."""
    dice, out = body.world.dice, body.world.dice.randint(3, 7)
    weight = body.make("weight", f"nn.Parameter(torch.randn({out}, {body.width}) * 0.3)")
    if dice.chance(0.4):
        body.made.append(
            dice.one(
                f"nn.init.xavier_uniform_({weight})",
                f"nn.init.normal_({weight}, std=0.2)",
                f"{weight}.data.mul_(0.5)",
            )
        )
    bias = body.make("offset", f"nn.Parameter(torch.zeros({out}))")
    body.go(
        dice.one(
            f"F.linear({body.h}, {weight}, {bias})",
            f"{body.h} @ {weight}.t() + {bias}",
            f"torch.matmul({body.h}, {weight}.T).add({bias})",
            f'torch.einsum("bi,oi->bo", {body.h}, {weight}) + {bias}',
            f"torch.addmm({bias}, {body.h}, {weight}.t())",
        ),
        out,
    )


def masked(body: Body) -> None:
    dice, h = body.world.dice, body.h
    mask = body.local("mask")
    body.lines.append(
        f"{mask} = {dice.one(f'{h} > 2', f'{h}.detach() > 1.5', f'torch.rand_like({h}) < 0.1')}"
    )
    form = dice.randint(0, 3)
    if form == 0:
        body.go(f"{h}.masked_fill({mask}, 0.0)")
    elif form == 1:
        body.go(f"torch.where({mask}, torch.zeros_like({h}), {h})")
    elif form == 2:
        body.go(f"{h} * (~{mask}).float()")
    else:
        body.lines += [f"{h} = {h}.clone()", f"{h}[{mask}] = 0.0"]


def unit(body: Body) -> None:
    h = body.h
    body.go(
        body.world.dice.one(
            f"F.normalize({h}, dim=1)",
            f"{h} / ({h}.norm(dim=1, keepdim=True) + 1e-6)",
            f"{h} / {h}.pow(2).sum(1, keepdim=True).add(1e-6).sqrt()",
            f"({h} - {h}.mean(0)) / ({h}.var(0, unbiased=False) + 1e-3).sqrt()",
        )
    )


def attended(body: Body) -> None:
    q, k, v = (body.linear(stem=stem) for stem in ("query", "key", "values"))
    scores, h = body.local("scores"), body.h
    body.lines.append(f"{scores} = {q}({h}) @ {k}({h}).transpose(0, 1) / {body.width} ** 0.5")
    if body.world.dice.chance(0.4):
        body.lines.append(f"{scores} = {scores}.masked_fill(torch.eye({h}.size(0), dtype=torch.bool), -1e9)")
    soft = body.world.dice.one(
        f"torch.softmax({scores}, dim=-1)", f"F.softmax({scores}, -1)", f"{scores}.softmax(dim=1)"
    )
    body.go(f"{soft} @ {v}({h})")


def listed(body: Body) -> None:
    dice, many = body.world.dice, body.world.dice.randint(2, 3)
    layers = body.make(
        "layers", f"nn.ModuleList([nn.Linear({body.width}, {body.width}) for _ in range({many})])"
    )
    h = body.h
    form = dice.randint(0, 3)
    if form == 0:
        name = body.local("layer")
        body.lines += under(f"for {name} in {layers}:", [f"{h} = {act(body.world, f'{name}({h})')}"])
    elif form == 1:
        body.lines += under(
            f"for i, layer in enumerate({layers}):",
            [f"{h} = layer({h})", *under(f"if i < len({layers}) - 1:", [f"{h} = F.relu({h})"])],
        )
    elif form == 2:
        outs = body.local("outs")
        body.lines += [
            f"{outs} = []",
            *under(f"for layer in {layers}:", [f"{h} = torch.tanh(layer({h}))", f"{outs}.append({h})"]),
        ]
        body.go(
            dice.one(f"torch.stack({outs}).mean(0)", f"sum({outs})", f"torch.stack({outs}, dim=1).amax(1)")
        )
    else:
        body.go(f"sum(layer({h}) for layer in {layers}) / len({layers})")


def keyed(body: Body) -> None:
    width = body.width
    heads = body.make(
        "heads", f'nn.ModuleDict({{"a": nn.Linear({width}, {width}), "b": nn.Linear({width}, {width})}})'
    )
    h = body.h
    body.go(
        body.world.dice.one(
            f'{heads}["a"]({h}) + {heads}["b"]({h})',
            f"torch.stack([head({h}) for head in {heads}.values()]).sum(0)",
            f"sum(head({h}) for name, head in {heads}.items())",
        )
    )


def convolved(body: Body) -> None:
    conv = body.make("conv", "nn.Conv1d(1, 2, 3, padding=1)")
    body.go(f"{conv}({body.h}.unsqueeze(1)).{body.world.dice.one('mean(1)', 'amax(dim=1)', 'sum(1)')}")


def recurrent(body: Body) -> None:
    width = body.width
    cell = body.make("cell", f"nn.GRUCell({width}, {width})")
    state, h = body.local("state"), body.h
    body.lines.append(f"{state} = torch.zeros({h}.size(0), {width})")
    body.lines += under("for _ in range(2):", [f"{state} = {cell}({h}, {state})"])
    body.go(state)


def remembered(body: Body) -> None:
    """A running statistic, kept in a buffer."""
    dice, h = body.world.dice, body.h
    name = body.attribute("running").removeprefix("self.")
    body.made.append(f'self.register_buffer("{name}", torch.zeros({body.width}))')
    update = dice.one(
        [f"self.{name}.mul_(0.9).add_({h}.detach().mean(0), alpha=0.1)"],
        under("with torch.no_grad():", [f"self.{name} = 0.9 * self.{name} + 0.1 * {h}.mean(0)"]),
        under("with torch.no_grad():", [f"self.{name}.lerp_({h}.mean(0), 0.1)"]),
        [f"self.{name}.copy_(0.9 * self.{name} + 0.1 * {h}.detach().mean(0))"],
    )
    body.lines += update
    if dice.chance(0.5):
        body.go(f"{h} - self.{name}.clone()")


def flagged(body: Body) -> None:
    width, name = body.width, body.attribute("use_extra")
    body.made.append(f"{name} = {body.world.flag()}")
    h = body.h
    change = body.world.dice.one(
        f"{h} * 0.5", f"torch.tanh({h})", f"{h} + 0.1", f"{h} - {h}.mean(1, keepdim=True)"
    )
    body.lines += under(f"if {name}:", [f"{h} = {change}"])
    body.width = width


def armed(body: Body) -> None:
    """One of several activations, by a word."""
    name, h = body.attribute("kind"), body.h
    world = body.world
    world.arms = max(world.arms, 3)
    body.made.append(f"{name} = {world.mode}")
    body.lines.append(f"{h} = {body.linear()}({h})")
    body.lines += under(f'if {name} == "m1":', [f"{h} = {act(world, h)}"])
    body.lines += under(f'elif {name} == "m2":', [f"{h} = {act(world, h)}"])
    body.lines += under("else:", [f"{h} = {act(world, h)}"])


def tabled(body: Body) -> None:
    """An activation out of a table of functions."""
    world, h = body.world, body.h
    world.arms = max(world.arms, 3)
    table = world.help(
        "ACTIVATIONS", ['ACTIVATIONS = {"m0": torch.tanh, "m1": F.relu, "m2": lambda value: value.sigmoid()}']
    )
    name = body.make("function", f"{table}.get({world.mode}, torch.tanh)")
    body.go(f"{name}({body.linear()}({h}))")


def filled(body: Body) -> None:
    """A result put together by writing into an empty tensor."""
    h, layer = body.h, body.linear()
    result = body.local("result")
    body.lines += [
        f"{result} = torch.zeros({h}.size(0), {2 * body.width})",
        f"{result}[:, :{body.width}] = {h}",
    ]
    body.lines.append(f"{result}[:, {body.width}:] = {layer}({h})")
    body.go(result, 2 * body.width)


def rows(body: Body) -> None:
    """Each row by itself."""
    layer, h = body.linear(), body.h
    made = body.local("rows")
    body.lines.append(
        body.world.dice.one(
            f"{made} = [{layer}(row) for row in {h}]", f"{made} = [{layer}(row) for row in {h}.unbind(0)]"
        )
    )
    body.go(f"torch.stack({made})")


def straight_through(body: Body) -> None:
    h, q = body.h, body.local("quantised")
    body.lines.append(f"{q} = torch.round({h} * 4) / 4")
    body.go(f"{h} + ({q} - {h}).detach()")


def checkpointed(body: Body) -> None:
    body.world.imports.add("from torch.utils.checkpoint import checkpoint")
    body.go(f"checkpoint({body.linear()}, {body.h}, use_reentrant=False)")


def shaped(body: Body) -> None:
    h, width = body.h, body.width
    body.go(
        body.world.dice.one(
            f"{h}.view({h}.size(0), -1)",
            f"{h}.unsqueeze(1).expand(-1, 2, -1).mean(1)",
            f"{h}.reshape(-1, {width}, 1).squeeze(-1)",
            f"torch.flip({h}, dims=[1])",
            f"{h}.t().contiguous().t()",
            f"F.pad({h}, (1, 1))[:, 1:-1]",
            f"torch.roll({h}, 1, dims=1)",
            f"{h}.cumsum(dim=1) / {width}",
            f"{h}.index_select(1, torch.arange({width}))",
            f"{h}[:, torch.arange({width} - 1, -1, -1)]",
            f"{h}.clamp(-5, 5)",
        )
    )


def written(body: Body) -> None:
    """Writes in place that nothing has saved."""
    h, layer = body.h, body.linear()
    body.go(f"{layer}({h})")
    h = body.h
    body.lines.append(
        body.world.dice.one(
            f"{h} *= 0.5",
            f"{h}.mul_(2.0)",
            f"{h} += 0.1",
            f"{h}[:, 0] = 0",
            f"{h}.clamp_(-4, 4)",
            f"{h}[:, 0] += 1.0",
            f"{h}.div_(2)",
            f"F.relu_({h})",
            f"torch.tanh_({h})",
            f"{h}.sub_({h}.detach().mean())",
        )
    )


def through_method(body: Body) -> None:
    name = body.attribute("encode").removeprefix("self.")
    layer, value = body.linear(), body.world.dice.one("value", "inputs", "t")
    flow = [f"{value} = {layer}({value})", f"return {act(body.world, value)}"]
    body.methods += [*under(f"def {name}(self, {value}):", flow), ""]
    body.go(f"self.{name}({body.h})")


def tied(body: Body) -> None:
    layer = body.linear()
    body.go(f"torch.tanh({layer}({body.h}))")
    body.go(f"F.linear({body.h}, {layer}.weight.t())")


def parameters(body: Body) -> None:
    many = body.make(
        "vectors", f"nn.ParameterList([nn.Parameter(torch.randn({body.width})) for _ in range(2)])"
    )
    h = body.h
    body.lines += under(f"for vector in {many}:", [f"{h} = {h} + {h} * vector"])


def noised(body: Body) -> None:
    h = body.h
    form = body.world.dice.randint(0, 2)
    if form == 0:
        body.lines += under("if self.training:", [f"{h} = {h} + 0.01 * torch.randn_like({h})"])
    elif form == 1:
        noise = body.local("noise")
        body.lines += under("with torch.no_grad():", [f"{noise} = torch.rand_like({h}) * {h}.std()"])
        body.go(f"{h} + {noise}")
    else:
        body.go(f"{h} + torch.randn_like({h}).mul_(0.01)")


def embedded(body: Body) -> None:
    table = body.make("table", f"nn.Embedding(5, {body.width})")
    index = body.local("index")
    body.lines.append(f"{index} = {body.h}.argmax(dim=1) % 5")
    body.go(f"{body.h} + {table}({index})")


def gathered(body: Body) -> None:
    h, top = body.h, body.local("top")
    body.lines.append(f"{top} = {h}.topk(3, dim=1).indices")
    body.go(
        body.world.dice.one(
            f"{h}.gather(1, {top})",
            f"torch.zeros_like({h}).scatter(1, {top}, {h}.gather(1, {top}))[:, :3] + {h}[:, :3]",
        ),
        3,
    )


def hooked(body: Body) -> None:
    seen = body.make("seen", "{}")
    layer = body.linear()
    form = body.world.dice.randint(0, 1)
    if form:
        body.made.append(
            f"{layer}.register_forward_hook(lambda module, given, out: {seen}.update(last=out.detach()))"
        )
    else:
        keep = body.attribute("keep").removeprefix("self.")
        body.methods += [
            *under(f"def {keep}(self, module, given, out):", [f'{seen}["mean"] = out.mean().item()']),
            "",
        ]
        body.made.append(f"{layer}.register_forward_hook(self.{keep})")
    body.go(f"torch.tanh({layer}({body.h}))")


def low_rank(body: Body) -> None:
    """A frozen base with a trained detour."""
    width = body.width
    base = body.linear(stem="base")
    body.made.append(
        body.world.dice.one(f"{base}.requires_grad_(False)", f"{base}.weight.requires_grad = False")
    )
    down = body.make("down", f"nn.Parameter(torch.randn({width}, 2) * 0.1)")
    up = body.make("up", f"nn.Parameter(torch.randn(2, {width}) * 0.1)")
    body.go(f"{base}({body.h}) + {body.h} @ {down} @ {up}")


def guarded(body: Body) -> None:
    """A side calculation without gradients, for the books."""
    body.made.append(f"{body.attribute('last')} = None")
    name = body.made[-1].split(" = ")[0]
    body.lines.append(
        body.world.dice.one(f"{name} = {body.h}.detach().clone()", f"{name} = {body.h}.abs().mean().item()")
    )


def experts(body: Body) -> None:
    width = body.width
    many = body.make("experts", f"nn.ModuleList(nn.Linear({width}, {width}) for _ in range(2))")
    router = body.linear(2, "router")
    weights, h = body.local("weights"), body.h
    body.lines.append(f"{weights} = torch.softmax({router}({h}), dim=-1)")
    if body.world.dice.chance(0.5):
        outs = body.local("expert_outs")
        body.lines.append(f"{outs} = torch.stack([expert({h}) for expert in {many}], dim=1)")
        body.go(f"({weights}.unsqueeze(-1) * {outs}).sum(1)")
    else:
        total = body.local("mixed")
        body.lines.append(f"{total} = torch.zeros_like({h})")
        step = body.world.dice.one(
            f"{total} += {weights}[:, i:i + 1] * expert({h})",
            f"{total} = {total} + {weights}[:, [i]] * expert({h})",
        )
        body.lines += under(f"for i, expert in enumerate({many}):", [step])
        body.go(total)


STEPS: tuple[Callable[[Body], None], ...] = (
    layered,
    layered,
    two_lines,
    inplace_module,
    sequential,
    residual,
    residual,
    gated,
    chunked,
    normed,
    dropped,
    joined,
    scaled,
    weighed,
    masked,
    unit,
    attended,
    listed,
    listed,
    keyed,
    convolved,
    recurrent,
    remembered,
    flagged,
    armed,
    tabled,
    filled,
    rows,
    straight_through,
    checkpointed,
    shaped,
    shaped,
    written,
    written,
    through_method,
    tied,
    parameters,
    noised,
    embedded,
    gathered,
    hooked,
    low_rank,
    guarded,
    experts,
)
