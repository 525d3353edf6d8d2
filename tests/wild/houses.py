"""Where the pieces of a plot live: a script, a function, a class, functions with arguments, a generator."""

from __future__ import annotations

import re

from . import leaving, objectives
from .plot import Plot, Stage
from .rounds import LEAVE, rounds
from .world import Lines, World, under

STATE = re.compile(r"\$(\w+)")
SET = re.compile(r"(?:^|\s|,)\$(\w+)(?=(?:, \$\w+)*\s*(?:[-+*/]|\*\*)?=[^=])")
SYNONYMS = {
    "model": ("model", "net", "network", "agent", "module"),
    "opt": ("optimizer", "opt", "optim_", "solver"),
    "log": ("log", "history", "losses", "metrics"),
    "total": ("total", "running_loss", "epoch_loss", "meter"),
    "generator": ("generator", "G", "gen", "netG"),
    "critic": ("critic", "D", "disc", "netD"),
    "opt_g": ("opt_g", "optimizer_G", "g_optimizer"),
    "opt_d": ("opt_d", "optimizer_D", "d_optimizer"),
    "encoder": ("encoder", "backbone_net", "enc"),
    "w": ("w", "W", "weights_"),
}


def program(world: World, plot: Plot) -> Lines:
    """The lines of the part of the file that runs."""
    _furnish(world, plot)
    house = world.dice.choices((_script, _main, _trainer, _arguments, _stream), (3, 3, 4, 2, 1))[0]
    if house is _arguments and (plot.whole or _assigned(plot.stages)):
        house = _trainer
    lines = house(world, plot)
    return [*lines, *leaving.ending(world)] if world.dice.chance(0.1) else lines


def _furnish(world: World, plot: Plot) -> None:
    """Books, schedulers, averages and evaluations: what most programs have beside the training itself."""
    dice, lines = world.dice, plot.stages
    setup = "\n".join(plot.setup)
    given = {name for stage in lines for name in stage.gives}
    if {"loss", "pred"} <= given and "$model" in setup and dice.chance(0.7):
        for _ in range(dice.randint(1, 3)):
            lines.append(Stage("note", objectives.books(world, "loss", "pred", "$model"), ("loss", "pred")))
    if "$opt = " in setup and dice.chance(0.25):
        plot.setup.append(
            f"$scheduler = torch.optim.lr_scheduler.{dice.one('StepLR($opt, 1)', 'ExponentialLR($opt, 0.9)', 'CosineAnnealingLR($opt, 4)', 'LambdaLR($opt, lambda epoch: 0.9 ** epoch)')}"
        )
        plot.after.append("$scheduler.step()")
    if "$model = " in setup and dice.chance(0.2):
        world.imports.add("import copy")
        plot.setup.append("$ema = copy.deepcopy($model)")
        average = dice.one(
            under(
                "with torch.no_grad():",
                under(
                    "for a, b in zip($ema.parameters(), $model.parameters()):",
                    ["a.mul_(0.9).add_(b, alpha=0.1)"],
                ),
            ),
            under(
                "for a, b in zip($ema.parameters(), $model.parameters()):",
                ["a.data.mul_(0.9).add_(b.data, alpha=0.1)"],
            ),
            under(
                "for a, b in zip($ema.state_dict().values(), $model.state_dict().values()):", ["a.copy_(b)"]
            ),
        )
        lines.append(Stage("average", average))
    if "$model = " in setup and dice.chance(0.35):
        plot.after += _evaluation(world, plot)
    if "$model = " in setup and dice.chance(0.15):
        world.imports.add("import copy")
        plot.setup.append("$kept = None")
        plot.after += under(
            f"if {world.flag()}:",
            [
                dice.one(
                    "$kept = copy.deepcopy($model.state_dict())",
                    "$kept = {k: v.clone() for k, v in $model.state_dict().items()}",
                )
            ],
        )
    _leave(world, plot, setup)
    _books(plot)


def _leave(world: World, plot: Plot, setup: str) -> None:
    """Ways out of an update, of an epoch, of the program."""
    for stage in plot.stages:
        if stage.name == "update" and "loss" in stage.takes and not stage.gives and world.dice.chance(0.25):
            stage.lines = leaving.guarded(world, stage.lines)
    if "$model = " in setup and world.dice.chance(0.1):
        plot.begin = [*plot.begin, *leaving.visit(world, _evaluation(world, plot))]


def _books(plot: Plot) -> None:
    """What the books are kept in, where there are any."""
    text = "\n".join(
        [*plot.setup, *plot.begin, *plot.after, *(line for stage in plot.stages for line in stage.lines)]
    )
    for name, start in (("log", "[]"), ("total", "0.0"), ("best", 'float("inf")')):
        if f"${name}" in text:
            plot.setup.append(f"${name} = {start}")


def _evaluation(world: World, plot: Plot) -> Lines:
    dice = world.dice
    score = "value = $model(x).pow(2).mean()"
    quiet = under(
        f"with {dice.one('torch.no_grad()', 'torch.inference_mode()', 'torch.set_grad_enabled(False)')}:",
        under("for x, y in $loader:", [score, 'print("value", value.item())']),
    )
    return ["$model.eval()", *quiet, "$model.train()"] if dice.chance(0.6) else quiet


def data(world: World, plot: Plot) -> Lines:
    """A loader of two batches."""
    dice = world.dice
    y = f"torch.randint(0, {plot.out}, (8,))" if plot.kind == "classes" else f"torch.randn(8, {plot.out})"
    form = dice.randint(0, 4)
    if form == 0:
        world.imports.add("from torch.utils.data import DataLoader, TensorDataset")
        return [f"$loader = DataLoader(TensorDataset(torch.randn(8, {plot.width}), {y}), batch_size=4)"]
    small = y.replace("8", "4", 1) if "randn" in y else y.replace("(8,)", "(4,)")
    pair = f"(torch.randn(4, {plot.width}), {small})"
    if form == 1:
        return [f"$loader = [{pair} for _ in range(2)]"]
    if form == 2:
        body = under("def __init__(self):", ["self.many = 2"]) + under(
            "def __iter__(self):", under("for _ in range(self.many):", [f"yield {pair[1:-1]}"])
        )
        return [f"$loader = {world.help('Batches', under('class Batches:', body))}()"]
    if form == 3:
        world.imports.add("from torch.utils.data import DataLoader, Dataset")
        body = under("def __len__(self):", ["return 8"]) + under(
            "def __getitem__(self, index):",
            [
                "generator = torch.Generator().manual_seed(index)",
                f"return torch.randn({plot.width}, generator=generator), "
                + (
                    f"index % {plot.out}"
                    if plot.kind == "classes"
                    else f"torch.randn({plot.out}, generator=generator)"
                ),
            ],
        )
        return [
            f"$loader = DataLoader({world.help('Samples', under('class Samples(Dataset):', body))}(), batch_size=4)"
        ]
    return [
        f"$xs, $ys = torch.randn(8, {plot.width}), {y}",
        "$loader = list(zip($xs.split(4), $ys.split(4)))",
    ]


def _called(stage: Stage, name: str) -> str:
    call = f"{name}({', '.join(stage.takes)})"
    return f"{', '.join(stage.gives)} = {call}" if stage.gives else call


def _assigned(stages: list[Stage]) -> set[str]:
    return {name for stage in stages for line in stage.lines for name in SET.findall(line)}


def _function(stage: Stage, name: str, first: str = "", outer: str = "") -> Lines:
    """A stage as a function of its own."""
    takes = ", ".join([*([first] if first else []), *stage.takes])
    own = sorted(_assigned([stage])) if outer else []
    lines = [f"{outer} {', '.join('$' + n for n in own)}"] if own else []
    lines += [line.replace(LEAVE, "return") for line in stage.lines]
    if stage.gives:
        lines.append(f"return {', '.join(stage.gives)}")
    return under(f"def {name}({takes}):", lines)


def _split(world: World, plot: Plot, share: float, first: str, outer: str) -> tuple[Lines, Lines]:
    """The functions and the lines of a step, some stages by name and some in place."""
    functions: Lines = []
    step: Lines = []
    for stage in plot.stages:
        if world.dice.chance(share) and not plot.whole:
            name = world.fresh(stage.name)
            functions += [*_function(stage, name, first, outer), ""]
            step.append(_called(stage, f"self.{name}" if first else name))
        else:
            step += stage.lines
    return functions, step


def _named(world: World, lines: Lines, prefix: str = "") -> Lines:
    """Lines with the names of the state written out."""
    chosen: dict[str, str] = {}

    def spelled(found: re.Match[str]) -> str:
        name = found[1]
        if name not in chosen:
            options = [o for o in SYNONYMS.get(name, (name,)) if o not in chosen.values()] or [name]
            chosen[name] = world.dice.choice(options)
        return prefix + chosen[name]

    return [STATE.sub(spelled, line) for line in lines]


def _script(world: World, plot: Plot) -> Lines:
    functions, step = _split(world, plot, 0.3, "", "global")
    setup = [*data(world, plot), *plot.setup]
    loop = rounds(world, plot, step)
    if world.dice.chance(0.2):
        loop = under('if __name__ == "__main__":', loop)
    return _named(world, [*setup, *functions, *loop])


def _main(world: World, plot: Plot) -> Lines:
    functions, step = _split(world, plot, 0.3, "", "nonlocal")
    body = [*data(world, plot), *plot.setup, *functions, *rounds(world, plot, step)]
    lines = _named(world, under("def main():", body))
    return [*lines, "", *world.dice.one(["main()"], under('if __name__ == "__main__":', ["main()"]))]


def _trainer(world: World, plot: Plot) -> Lines:
    dice = world.dice
    methods, step = _split(world, plot, 0.6, "self", "")
    loader = data(world, plot)
    loop = rounds(world, plot, step)
    if dice.chance(0.5):
        plot_step = Stage("training_step", step, ("x", "y"))
        methods += [*_function(plot_step, "training_step", "self"), ""]
        loop = rounds(world, plot, ["self.training_step(x, y)"])
    init = under("def __init__(self):", [*loader, *plot.setup])
    name = dice.one("Trainer", "Learner", "Runner", "Experiment")
    lines = _named(
        world, under(f"class {name}:", [*init, "", *methods, *under("def fit(self):", loop)]), "self."
    )
    run = dice.one(
        [f"{name}().fit()"],
        [f"trainer = {name}()", "trainer.fit()"],
        ["def main():", f"    trainer = {name}()", "    trainer.fit()", "", "main()"],
    )
    return [*lines, "", *run]


def _arguments(world: World, plot: Plot) -> Lines:
    """`train(model, optimizer, loader)`: what is used is given."""
    setup = [*data(world, plot), *plot.setup]
    functions, step = _split(world, plot, 0.4, "", "")
    bound = _passed(functions)
    loop = rounds(world, plot, [_with(line, bound) for line in step])
    used = sorted(set(STATE.findall("\n".join(loop))))
    body = under(f"def train({', '.join('$' + name for name in used)}):", loop)
    call = f"train({', '.join('$' + name for name in used)})"
    return _named(world, [*_given(functions, bound), *body, "", *setup, call])


def _passed(functions: Lines) -> dict[str, list[str]]:
    """The state that each function uses."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in functions:
        if line.startswith("def "):
            name = line[4:].partition("(")[0]
            found[name] = []
        for used in STATE.findall(line):
            if used not in found[name]:
                found[name].append(used)
    return found


def _with(line: str, bound: dict[str, list[str]]) -> str:
    """A call of such a function, with the state in front."""
    for name, used in bound.items():
        for start in (f"{name}(", f"= {name}("):
            if (line.startswith(start) or (start.startswith("=") and start in line)) and used:
                state = ", ".join("$" + each for each in used)
                empty = f"{name}()" in line
                return line.replace(f"{name}(", f"{name}({state}" + ("" if empty else ", "), 1)
    return line


def _given(functions: Lines, bound: dict[str, list[str]]) -> Lines:
    return [
        _with(line[4:], bound).join(["def ", ""]) if line.startswith("def ") else line for line in functions
    ]


def _stream(world: World, plot: Plot) -> Lines:
    """A generator that trains while it is read."""
    functions, step = _split(world, plot, 0.3, "", "nonlocal")
    last = [name for stage in plot.stages for name in stage.gives if name.endswith("loss")]
    value = f"{last[-1]}.item()" if last else "epoch"
    inner = under("def steps():", [*_state(plot, step), *rounds(world, plot, [*step, f"yield {value}"])])
    body = [
        *data(world, plot),
        *plot.setup,
        *functions,
        *inner,
        *under("for value in steps():", ["print(value)"]),
    ]
    return [*_named(world, under("def run():", body)), "", "run()"]


def _state(plot: Plot, step: Lines) -> Lines:
    """The declaration of what a nested function sets."""
    text = [*step, *plot.begin, *plot.after, *plot.end]
    own = sorted({name for line in text for name in SET.findall(line)})
    return [f"nonlocal {', '.join('$' + name for name in own)}"] if own else []
