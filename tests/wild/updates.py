"""The ways to clear, to run backward and to step."""

from __future__ import annotations

from .world import Lines, World, under


def optimizer(world: World, parameters: str) -> str:
    """An expression that makes an optimizer."""
    if world.dice.chance(0.2):
        return _by_name(world, parameters)
    kind = world.dice.one(
        "SGD({}, lr=0.05)",
        "SGD({}, lr=0.1, momentum=0.9)",
        "Adam({}, lr=1e-2)",
        "Adam({}, lr=1e-2)",
        "AdamW({}, lr=1e-3)",
        "RMSprop({}, lr=1e-3)",
        "SGD({}, lr=0.1, weight_decay=1e-3)",
        "Adagrad({}, lr=0.01)",
    )
    return "torch.optim." + kind.format(parameters)


def _by_name(world: World, parameters: str) -> str:
    """An optimizer by its name: out of a table, out of torch, out of a function that knows some."""
    dice = world.dice
    table = 'OPTIMIZERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop}'
    form = dice.randint(0, 4)
    if form == 0:
        return f'getattr(torch.optim, "{dice.one("Adam", "SGD", "AdamW")}")({parameters}, lr=1e-2)'
    if form == 1:
        return f'{world.help("OPTIMIZERS", [table])}["{dice.one("adam", "sgd")}"]({parameters}, lr=1e-2)'
    if form == 2:
        head = 'def make_optimizer(parameters, name="SGD", lr=0.05, **options):'
        flow = ["return getattr(torch.optim, name)(parameters, lr=lr, **options)"]
        return f"{world.help('make_optimizer', under(head, flow))}({parameters}, {dice.one('', 'name=' + repr('Adam'))})"
    if form == 3:
        flow = [
            *under('if name == "adam":', ["return torch.optim.Adam(parameters, lr=lr)"]),
            *under('elif name == "sgd":', ["return torch.optim.SGD(parameters, lr=lr, momentum=0.9)"]),
            *under("else:", ["raise NotImplementedError(name)"]),
        ]
        name = world.help("build_optimizer", under("def build_optimizer(name, parameters, lr=1e-2):", flow))
        return f'{name}("{dice.one("adam", "sgd")}", {parameters})'
    return f"torch.optim.SGD({parameters}, **{{'lr': 0.05, 'momentum': 0.5}})"


def all_of(world: World, *nets: str) -> str:
    """The parameters of some modules, in a spelling that optimizers take."""
    dice = world.dice
    if len(nets) > 1:
        world.imports.add("import itertools")
        groups = ", ".join(
            f'{{"params": {net}.parameters(), "lr": 0.0{i + 1}}}' for i, net in enumerate(nets)
        )
        return dice.one(
            " + ".join(f"list({net}.parameters())" for net in nets),
            "itertools.chain(" + ", ".join(f"{net}.parameters()" for net in nets) + ")",
            "[" + groups + "]",
            "[p for net in (" + ", ".join(nets) + ") for p in net.parameters()]",
        )
    net = nets[0]
    return dice.one(
        f"{net}.parameters()",
        f"{net}.parameters()",
        f"list({net}.parameters())",
        f"[p for p in {net}.parameters() if p.requires_grad]",
        f"filter(lambda p: p.requires_grad, {net}.parameters())",
        f"[p for name, p in {net}.named_parameters()]",
        f'[{{"params": [p for p in {net}.parameters() if p.dim() > 1]}}, {{"params": [p for p in {net}.parameters() if p.dim() <= 1], "weight_decay": 0.0}}]',
        f'[{{"params": [p for n, p in {net}.named_parameters() if n.endswith("bias")], "lr": 0.2}}, {{"params": [p for n, p in {net}.named_parameters() if not n.endswith("bias")]}}]',
    )


def cleared(world: World, opt: str, net: str) -> Lines:
    """Lines that clear the gradients of a module."""
    return world.dice.one(
        [f"{opt}.zero_grad()"],
        [f"{opt}.zero_grad()"],
        [f"{opt}.zero_grad()"],
        [f"{opt}.zero_grad(set_to_none={world.dice.one('True', 'False')})"],
        [f"{net}.zero_grad()"],
        under(f"for p in {net}.parameters():", ["p.grad = None"]),
        under(f"for p in {net}.parameters():", under("if p.grad is not None:", ["p.grad.zero_()"])),
        under(f"for group in {opt}.param_groups:", under('for p in group["params"]:', ["p.grad = None"])),
    )


def backward(world: World, loss: str, more: str = "") -> str:
    if more:
        return f"{loss}.backward({more})"
    return world.dice.one(
        *[f"{loss}.backward()"] * 6,
        f"torch.autograd.backward({loss})",
        f"{loss}.mean().backward()",
        f"{loss}.backward(torch.ones_like({loss}))",
        f"torch.autograd.backward([{loss}])",
    )


def between(world: World, net: str) -> Lines:
    """What stands between backward and step."""
    dice = world.dice
    if dice.chance(0.6):
        return []
    lines = dice.one(
        [f"torch.nn.utils.clip_grad_norm_({net}.parameters(), 1.0)"],
        [f"nn.utils.clip_grad_value_({net}.parameters(), 0.5)"],
        under(f"for p in {net}.parameters():", under("if p.grad is not None:", ["p.grad.clamp_(-1, 1)"])),
        under(f"for p in {net}.parameters():", under("if p.grad is not None:", ["p.grad.mul_(0.9)"])),
        [
            f"norm = torch.stack([p.grad.norm() for p in {net}.parameters() if p.grad is not None]).norm()",
            *under("if norm > 100:", ['print("large", norm.item())']),
        ],
        under(
            f"for p in {net}.parameters():",
            under("if p.grad is not None:", ["p.grad.add_(torch.randn_like(p.grad), alpha=1e-3)"]),
        ),
    )
    return under(f"if {world.flag()}:", lines) if dice.chance(0.4) else lines


def update(world: World, opt: str, loss: str, net: str, inner: bool = True) -> Lines:
    """Clear, backward, step: in place or in a helper."""
    dice = world.dice
    if inner and dice.chance(0.25):
        return _helped(world, opt, loss, net)
    run, step = [backward(world, loss), *between(world, net)], [f"{opt}.step()"]
    clear = cleared(world, opt, net)
    return [*run, *step, *clear] if dice.chance(0.2) else [*clear, *run, *step]


def _helped(world: World, opt: str, loss: str, net: str) -> Lines:
    dice = world.dice
    form = dice.randint(0, 5)
    flow = [
        "optimizer.zero_grad()",
        "loss.backward()",
        *dice.one([], ["nn.utils.clip_grad_norm_(module.parameters(), 5.0)"]),
        "optimizer.step()",
    ]
    if form <= 1:
        name = world.help("optimize", under("def optimize(optimizer, loss, module):", flow))
        return [f"{name}({opt}, {loss}, {net})"]
    if form == 2:
        world.imports.add("from contextlib import contextmanager")
        name = world.help(
            "stepping",
            [
                "@contextmanager",
                *under(
                    "def stepping(optimizer):",
                    ["optimizer.zero_grad()", "yield optimizer", "optimizer.step()"],
                ),
            ],
        )
        return under(f"with {name}({opt}):", [f"{loss}.backward()"])
    if form == 3:
        body = [
            *under("def __init__(self, optimizer):", ["self.optimizer = optimizer", "self.steps = 0"]),
            *under(
                "def __call__(self, loss):",
                ["self.optimizer.zero_grad()", "loss.backward()", "self.optimizer.step()", "self.steps += 1"],
            ),
        ]
        name = world.help("Stepper", under("class Stepper:", body))
        return [f"{name}({opt})({loss})"]
    if form == 4:
        name = world.help(
            "clear",
            under(
                "def clear(*optimizers):", under("for optimizer in optimizers:", ["optimizer.zero_grad()"])
            ),
        )
        return [f"{name}({opt})", f"{loss}.backward()", f"{opt}.step()"]
    body = [
        *under("def __init__(self, optimizer):", ["self.optimizer = optimizer"]),
        *under("def __enter__(self):", ["self.optimizer.zero_grad()", "return self"]),
        *under("def __exit__(self, *error):", ["self.optimizer.step()"]),
    ]
    name = world.help("Update", under("class Update:", body))
    return under(f"with {name}({opt}):", [f"{loss}.backward()"])
