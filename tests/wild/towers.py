"""Blocks whose loops know their first or last turn, count, or leave early; and the writes that are right behind them."""

from __future__ import annotations

from .bodies import Body
from .world import Dice, Lines, under

SAVING = (
    "torch.tanh({})",
    "torch.sigmoid({})",
    "F.relu({})",
    "{}.exp().clamp(max=3)",
    "F.softmax({}, dim=1)",
)
"""What keeps its result, or may."""


def sized(body: Body) -> None:
    """Layers from a list of sizes, with something between them and nothing behind the last."""
    dice = body.world.dice
    sizes = [body.width, *(dice.randint(3, 7) for _ in range(dice.randint(2, 3)))]
    between = dice.one("nn.Tanh()", "nn.ReLU()", "nn.ReLU(inplace=True)", "nn.Sigmoid()", "nn.ELU()")
    parts = body.local("parts")
    body.made += [f"sizes = {sizes}", f"{parts} = []", *_built(dice, parts, between)]
    module = body.make("mlp", f"nn.Sequential(*{parts})")
    body.go(f"{module}({body.h})", sizes[-1])
    _written(body)


def _built(dice: Dice, parts: str, between: str) -> Lines:
    """The loop that makes the layers."""
    layer = f"{parts}.append(nn.Linear(sizes[i], sizes[i + 1]))"
    more, turns = f"{parts}.append({between})", "for i in range(len(sizes) - 1):"
    return dice.one(
        under(turns, [layer, *under("if i != len(sizes) - 2:", [more])]),
        under(turns, [*under("if i > 0:", [more]), layer]),
        under(turns, [layer, *under("if i == len(sizes) - 2:", ["break"]), more]),
        under(turns, [layer, *under("if i + 2 == len(sizes):", ["continue"]), more]),
        [
            "last = len(sizes) - 2",
            *under(turns, [layer, f"{parts}.append({between} if i < last else nn.Identity())"]),
        ],
        under(
            "for i, (narrow, broad) in enumerate(zip(sizes[:-1], sizes[1:])):",
            [f"{parts} += [nn.Linear(narrow, broad)]", *under("if i < len(sizes) - 2:", [more])],
        ),
        [
            "i = 0",
            *under("while i < len(sizes) - 1:", [layer, "i += 1", *under("if i < len(sizes) - 1:", [more])]),
        ],
        under(
            "for narrow, broad in zip(sizes[:-2], sizes[1:-1]):",
            [f"{parts} += [nn.Linear(narrow, broad), {between}]"],
        )
        + under("else:", [f"{parts}.append(nn.Linear(sizes[-2], sizes[-1]))"]),
        [
            *under(turns, [layer, more]),
            dice.one(f"{parts}.pop()", f"del {parts}[-1]", f"{parts} = {parts}[:-1]"),
        ],
    )


def _written(body: Body) -> None:
    """What may be written in place, as nothing has saved it."""
    h = body.h
    change = body.world.dice.one(
        "", "", f"{h} += 0.1", f"{h} *= 0.5", f"{h}[:, 0] = 0", f"{h}.clamp_(-4, 4)", f"{h} = F.relu_({h})"
    )
    body.lines += [change] if change else []


def turned(body: Body) -> None:
    """A loop over layers whose last turn leaves what no activation has saved."""
    dice, h = body.world.dice, body.h
    layers = body.make(
        "stack", f"nn.ModuleList(nn.Linear({body.width}, {body.width}) for _ in range({dice.randint(2, 3)}))"
    )
    skip = body.local("first")
    body.lines += dice.one(*_turns(dice, h, layers, dice.choice(SAVING).format(h)))
    if dice.chance(0.3):
        body.lines.insert(0, f"{skip} = x")
        same = body.width == body.start
        body.lines.append(f"{h} += {skip}" if same else f"{h} += {skip}.mean()")
    else:
        _written(body)


def _turns(dice: Dice, h: str, layers: str, saved: str) -> tuple[Lines, ...]:
    last = f"len({layers}) - 1"
    each, step = f"for i, layer in enumerate({layers}):", f"{h} = layer({h})"
    numbered, at = f"for i in range(len({layers})):", f"{h} = {layers}[i]({h})"
    return (
        under(each, [step, *under(f"if i != {last}:", [f"{h} = {saved}"])]),
        under(each, [step, *under(f"if i < {last}:", [f"{h} = {saved}"]), *under("else:", [f"{h} += 1"])]),
        under(each, [*under("if i > 0:", [f"{h} = {saved}"]), step]),
        under(each, [*under("if i:", [f"{h} = {saved}"]), step]),
        under(each, [step, f"{h} = {saved} if i < {last} else {h}"]),
        under(numbered, [at, *under(f"if i == {last}:", ["break"]), f"{h} = {saved}"]),
        under(numbered, [at, *under(f"if i == {last}:", ["continue"]), f"{h} = {saved}"]),
        [
            "i = 0",
            *under(
                f"while i < len({layers}):",
                [at, "i += 1", *under(f"if i < len({layers}):", [f"{h} = {saved}"])],
            ),
        ],
        [
            "i = 0",
            *under(
                "while True:", [at, "i += 1", *under(f"if i == len({layers}):", ["break"]), f"{h} = {saved}"]
            ),
        ],
        under(f"for layer in {layers}[:-1]:", [step, f"{h} = {saved}"])
        + dice.one([f"{h} = {layers}[-1]({h})"], under("else:", [f"{h} = {layers}[-1]({h})"])),
    )


def iterated(body: Body) -> None:
    """One layer again and again, until it is enough."""
    dice, h, layer = body.world.dice, body.h, body.linear()
    step = f"{h} = torch.tanh({layer}({h}))"
    far = f"{h}.detach().abs().max() > 1e6"
    body.lines += dice.one(
        under("for _ in range(2):", [step, *under(f"if {far}:", ["break"])])
        + under("else:", [f"{h} = {layer}({h})", f"{h} *= 0.5"]),
        ["turns = 2", *under("while turns > 0:", [step, "turns -= 1"])],
        [
            "turns = 0",
            *under("while turns < 5:", [step, "turns += 1", *under(f"if {far} or turns == 2:", ["break"])]),
        ],
        under("for turn in range(3):", [*under("if turn == 0:", [f"{h} = {layer}({h})", "continue"]), step]),
        ["turns = 3", *under("while turns:", ["turns -= 1", *under("if turns == 1:", ["continue"]), step])],
    )


def early(body: Body) -> None:
    """A method that has several ways out."""
    dice, layer = body.world.dice, body.linear()
    name = body.attribute("route").removeprefix("self.")
    saved = dice.choice(SAVING).format("t")
    flow = dice.one(
        [
            f"t = {layer}(t)",
            *under("if t.size(0) > 100:", [f"t = {saved}", "return t"]),
            "t += 0.1",
            "return t",
        ],
        [
            *under("if t.size(0) == 0:", ["return t.detach()"]),
            *under("if not torch.is_grad_enabled():", [f"return {layer}(t).detach()"]),
            f"return {layer}(t)",
        ],
        [f"t = {layer}(t)", *under("if t.grad_fn is None:", [f"return {saved}.detach()"]), f"return {saved}"],
        [
            *under("if t.dim() != 2:", ['raise ValueError("rows are wanted")']),
            *under("try:", [f"return {layer}(t)"]),
            *under("finally:", ["self.routed = True"]),
        ],
    )
    body.methods += [*under(f"def {name}(self, t):", flow), ""]
    body.go(f"self.{name}({body.h})")


def nested(body: Body) -> None:
    """A function inside `forward` that sets its names."""
    dice, h = body.world.dice, body.h
    layers = body.make("inner", f"nn.ModuleList(nn.Linear({body.width}, {body.width}) for _ in range(2))")
    step, many = body.local("step"), body.local("calls")
    flow = [f"nonlocal {h}, {many}", f"{many} += 1"]
    flow += dice.one(
        [f"{h} = {h} + torch.tanh(layer({h}))"],
        [f"{h} = layer({h})", *under(f"if {many} < 2:", [f"{h} = torch.sigmoid({h})"])],
        [f"{h} = layer({h})", f"{h} += 0.1"],
    )
    body.lines += [
        f"{many} = 0",
        *under(f"def {step}(layer):", flow),
        *under(f"for layer in {layers}:", [f"{step}(layer)"]),
    ]
