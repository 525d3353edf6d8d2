"""Bugs as people make them, each planted into a healthy program at one place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from functools import partial

from .world import Dice

Body = list[ast.stmt]
Change = Callable[[], object]


def bodies(tree: ast.AST) -> Iterator[Body]:
    """Every list of statements."""
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def statements(tree: ast.AST) -> Iterator[tuple[Body, int, ast.stmt]]:
    for body in bodies(tree):
        for place, statement in enumerate(body):
            yield body, place, statement


def parsed(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def expression(text: str, value: ast.expr) -> ast.expr:
    """An expression around another one, which stands at `_`."""
    found = ast.parse(text, mode="eval").body
    return _put(found, value)


def _put(node: ast.expr, value: ast.expr) -> ast.expr:
    class Put(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return value if name.id == "_" else name

    answer: ast.expr = Put().visit(node)
    return answer


def calls(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == name
        for n in ast.walk(node)
    )


def simple(statement: ast.stmt) -> bool:
    return not hasattr(statement, "body")


def assigned(tree: ast.AST) -> Iterator[tuple[Body, int, ast.Assign, str]]:
    """The statements in functions and loops that give a value to one name."""
    for body, place, statement in statements(tree):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if (
                isinstance(target, ast.Name)
                and isinstance(statement.value, ast.Call | ast.BinOp | ast.UnaryOp)
                and not _builds(statement.value)
            ):
                yield body, place, statement, target.id


def _builds(value: ast.expr) -> bool:
    """Whether an expression makes no tensor but a module, an optimizer or the like."""
    called = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return called[:1].isupper() or called in ("parse_args", "list", "dict", "deepcopy", "manual_seed")


def augmented(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """`a = a + b` in place."""
    for body, place, statement, name in assigned(tree):
        value = statement.value
        if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and value.left.id == name:
            new = ast.AugAssign(ast.Name(name, ast.Store()), value.op, value.right)
            yield partial(body.__setitem__, place, new)


def written(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A write in place behind an assignment."""
    for body, place, _, name in assigned(tree):
        text = dice.one(
            f"{name} += 1",
            f"{name} *= 2",
            f"{name}[0] = 0",
            f"{name}.add_(0.5)",
            f"{name}.mul_(0.5)",
            f"{name}.clamp_(max=1)",
            f"F.relu({name}, inplace=True)",
            f"torch.mul({name}, 2, out={name})",
            f"{name}.data.mul_(2)",
        )
        yield partial(body.insert, place + 1, parsed(text))


def written_late(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A write in place right before backward."""
    for body, place, statement in statements(tree):
        if simple(statement) and calls(statement, "backward"):
            for name in sorted({n for b, p, _, n in assigned(tree) if b is body and p < place} - {"loss"}):
                text = dice.one(f"{name} += 1", f"{name}.mul_(2)", f"{name}.zero_()")
                yield partial(body.insert, place, parsed(text))


def _holders(statement: ast.stmt) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """Where in a statement an expression could be wrapped."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            for place, argument in enumerate(node.args):
                if isinstance(argument, ast.Name | ast.Call):
                    yield node, "args", place, argument
        if isinstance(node, ast.BinOp):
            for side in ("left", "right"):
                if isinstance(getattr(node, side), ast.Name | ast.Call | ast.BinOp):
                    yield node, side, None, getattr(node, side)
        if isinstance(node, ast.Assign | ast.Return) and isinstance(
            node.value, ast.Call | ast.Name | ast.BinOp
        ):
            yield node, "value", None, node.value


def _wrapped(node: ast.AST, part: str, place: int | None, value: ast.expr, text: str) -> Change:
    def change() -> None:
        new = expression(text, value)
        if place is None:
            setattr(node, part, new)
        else:
            getattr(node, part)[place] = new

    return change


def _flowing(tree: ast.AST) -> Iterator[ast.stmt]:
    """Statements that values flow through: assignments and returns in functions and loops."""
    for _, _, statement in statements(tree):
        if isinstance(statement, ast.Assign | ast.Return) and not calls(statement, "parameters"):
            yield statement


def detached(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    for statement in _flowing(tree):
        for node, part, place, value in _holders(statement):
            yield _wrapped(
                node, part, place, value, dice.one("_.detach()", "_.detach()", "_.data", "_.detach().clone()")
            )


def converted(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    for statement in _flowing(tree):
        for node, part, place, value in _holders(statement):
            yield _wrapped(
                node,
                part,
                place,
                value,
                dice.one(
                    "torch.tensor(_.item())",
                    "torch.tensor(float(_))",
                    "_.item()",
                    "torch.from_numpy(_.detach().numpy())",
                    "torch.tensor(_.tolist())",
                    "torch.tensor(_.item(), requires_grad=True)",
                    "(_ > 0).float()",
                    "torch.tensor(_)",
                ),
            )


def unrecorded(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A statement, or a function, under no_grad."""
    mode = dice.one(
        "torch.no_grad()", "torch.no_grad()", "torch.inference_mode()", "torch.set_grad_enabled(False)"
    )
    for body, place, statement, _ in assigned(tree):
        yield partial(body.__setitem__, place, _within(mode, statement))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__" and not node.decorator_list:
            yield partial(node.decorator_list.append, ast.parse("torch.no_grad()", mode="eval").body)


def _within(mode: str, statement: ast.stmt) -> ast.stmt:
    block = parsed(f"with {mode}:\n    pass")
    assert isinstance(block, ast.With)
    block.body = [statement]
    return block


def unreduced(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A loss without its mean."""
    for statement in _flowing(tree):
        for node, part, place, value in _holders(statement):
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and value.func.attr in ("mean", "sum")
                and not value.keywords
            ):
                inner = (
                    value.args[0]
                    if value.args and ast.unparse(value.func.value) == "torch"
                    else value.func.value
                )
                if not value.args or ast.unparse(value.func.value) == "torch":
                    yield _wrapped(node, part, place, inner, "_")
            if (
                isinstance(value, ast.Call)
                and ast.unparse(value.func).startswith("F.")
                and "loss" in ast.unparse(value.func)
                and not value.keywords
            ):
                yield partial(value.keywords.append, ast.keyword("reduction", ast.Constant("none")))


def _dropped(tree: ast.AST, wanted: Callable[[ast.stmt], bool]) -> Iterator[Change]:
    for body, place, statement in statements(tree):
        if wanted(statement):
            yield partial(body.__setitem__, place, ast.Pass())


def _clears(statement: ast.stmt) -> bool:
    text = ast.unparse(statement)
    if isinstance(statement, ast.For):
        return len(text) < 200 and ("grad = None" in text or "grad.zero_()" in text or ".zero_grad()" in text)
    return (
        simple(statement)
        and not isinstance(statement, ast.Return)
        and (".zero_grad(" in text or ("clear(" in text and "optim" in text))
    )


def uncleared(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _dropped(tree, _clears)


def _move(body: Body, place: int, to: int) -> None:
    body.insert(to, body.pop(place))


def _moves(
    tree: ast.AST, moved: Callable[[ast.stmt], bool], before: Callable[[ast.stmt], bool], forward: bool
) -> Iterator[Change]:
    """A statement moved in its body before another, which follows (forward) or precedes it."""
    for body in bodies(tree):
        for place, statement in enumerate(body):
            if not moved(statement):
                continue
            for other, anchor in enumerate(body):
                if before(anchor) and (other > place + 1 if forward else other < place):
                    yield partial(_move, body, place, other - 1 if forward else other)


def _runs(name: str) -> Callable[[ast.stmt], bool]:
    return lambda statement: simple(statement) and calls(statement, name)


def cleared_between(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _moves(tree, _clears, _runs("step"), True)


def stepped_early(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _moves(tree, _runs("step"), _runs("backward"), False)


def _copied(tree: ast.AST, wanted: Callable[[ast.stmt], bool], shift: int) -> Iterator[Change]:
    for body, place, statement in statements(tree):
        if wanted(statement):
            yield partial(body.insert, place + shift, copy.deepcopy(statement))


def backward_twice(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _copied(tree, _runs("backward"), 1)


def stepped_between(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A step where the forward has run and the backward has not."""
    steps = [s for _, _, s in statements(tree) if _runs("step")(s) and "sched" not in ast.unparse(s)]
    for body, place, statement in statements(tree):
        if simple(statement) and calls(statement, "backward") and steps:
            yield partial(body.insert, place, copy.deepcopy(steps[0]))


def _renamed(tree: ast.AST, names: dict[str, str]) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            new = ast.parse(names[ast.unparse(node.func)], mode="eval").body
            yield partial(setattr, node, "func", new)


def unregistered(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _renamed(tree, {"nn.ModuleList": "list", "nn.ModuleDict": "dict", "nn.ParameterList": "list"})
    for _, _, statement in statements(tree):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Call)
            and ast.unparse(statement.value.func) == "nn.Parameter"
        ):
            value = statement.value.args[0]
            yield _wrapped(
                statement,
                "value",
                None,
                value,
                dice.one("_.requires_grad_()", "torch.tensor(_.tolist(), requires_grad=True)"),
            )


def replaced(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A model made again when the optimizer has taken its parameters."""
    for body in bodies(tree):
        for place, statement in enumerate(body):
            if isinstance(statement, ast.Assign) and "torch.optim." in ast.unparse(statement):
                text = ast.unparse(statement.value)
                for other in body[:place]:
                    if (
                        isinstance(other, ast.Assign)
                        and ast.unparse(other.targets[0]) + ".parameters()" in text
                    ):
                        yield partial(body.insert, place + 1, copy.deepcopy(other))


def misspelt(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A freeze that freezes nothing."""
    for body, place, statement in statements(tree):
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).endswith(".requires_grad"):
            target = statement.targets[0]
            assert isinstance(target, ast.Attribute)
            yield partial(
                setattr, target, "attr", dice.one("require_grad", "requires_grads", "required_grad")
            )
        if isinstance(statement, ast.Expr) and ast.unparse(statement).endswith("requires_grad_(False)"):
            text = ast.unparse(statement).replace(".requires_grad_(False)", ".requires_grad = False")
            yield partial(body.__setitem__, place, parsed(text))


def rebound(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """An update by hand out of place."""
    for body, place, statement in statements(tree):
        if (
            isinstance(statement, ast.AugAssign)
            and ".data" not in ast.unparse(statement.target)
            and "grad" in ast.unparse(statement)
        ):
            target = ast.unparse(statement.target)
            new = ast.BinOp(ast.parse(target, mode="eval").body, statement.op, statement.value)
            yield partial(body.__setitem__, place, ast.Assign([statement.target], new, lineno=0))


def leaf_lost(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A leaf that goes through arithmetic before it is named."""
    for _, _, statement in statements(tree):
        if (
            isinstance(statement, ast.Assign)
            and "requires_grad" in ast.unparse(statement.value)
            and isinstance(statement.value, ast.Call)
        ):
            yield _wrapped(
                statement,
                "value",
                None,
                statement.value,
                dice.one("_ * 0.1", "_.view(-1).view_as(_)", "0.5 * _", "_.double().float()"),
            )


def severed(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """One term of a sum without its graph."""
    for _, _, statement, name in assigned(tree):
        if (
            isinstance(statement.value, ast.BinOp)
            and isinstance(statement.value.op, ast.Add)
            and "loss" in name
        ):
            for side in ("left", "right"):
                yield _wrapped(
                    statement.value,
                    side,
                    None,
                    getattr(statement.value, side),
                    dice.one("_.detach()", "_.item()", "_.data", "float(_)"),
                )


def leaked(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A total of live losses."""
    for _, _, statement in statements(tree):
        text = ast.unparse(statement)
        if isinstance(statement, ast.AugAssign) and (
            ".item()" in text or ".detach()" in text or "float(" in text or ".data" in text
        ):
            new = ast.parse("loss", mode="eval").body
            if "loss" in ast.unparse(statement.value) and "grad" not in text:
                yield partial(setattr, statement, "value", new)
        if (
            isinstance(statement, ast.Expr)
            and ".append(" in text
            and text.endswith((".item())", "float(loss))", ".detach())"))
        ):
            call = statement.value
            if isinstance(call, ast.Call) and "loss" in ast.unparse(call.args[0]):
                yield partial(call.args.__setitem__, 0, ast.Name("loss", ast.Load()))


def unretained(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("retain_graph", "create_graph"):
                    yield partial(node.keywords.remove, keyword)


def _bare(tree: ast.AST, name: str) -> Iterator[Change]:
    """A method call without the call."""
    for statement in _flowing(tree):
        for node, part, place, value in _holders(statement):
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and value.func.attr == name
            ):
                yield _wrapped(node, part, place, value.func.value, "_")


def undetached(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _bare(tree, "detach")


def uncloned(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _bare(tree, "clone")


def confused(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """One optimizer where another was meant."""
    found = [
        n
        for _, _, s in statements(tree)
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
        for n in [s.value.func]
        if isinstance(n, ast.Attribute) and n.attr in ("step", "zero_grad") and "opt" in ast.unparse(n.value)
    ]
    texts = sorted({ast.unparse(node.value) for node in found})
    for node in found:
        for text in texts:
            if text != ast.unparse(node.value):
                yield partial(setattr, node, "value", ast.parse(text, mode="eval").body)


def view_written(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    for body, place, statement in statements(tree):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Tuple)
            and isinstance(statement.value, ast.Call)
        ):
            first = ast.unparse(statement.targets[0].elts[0])
            text = dice.one(f"{first} += 1", f"{first}.mul_(2)", f"{first}[0] = 0")
            yield partial(body.insert, place + 1, parsed(text))


def never_thawed(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _dropped(
        tree, lambda s: "requires_grad_(True)" in ast.unparse(s) and (simple(s) or isinstance(s, ast.For))
    )


def inferred(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _renamed(tree, {"torch.no_grad": "torch.inference_mode"})


def unscaled_late(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _dropped(tree, lambda s: simple(s) and calls(s, "unscale_"))


BUGS: tuple[Callable[[ast.AST, Dice], Iterator[Change]], ...] = (
    augmented,
    written,
    written_late,
    detached,
    converted,
    unrecorded,
    unreduced,
    uncleared,
    cleared_between,
    stepped_early,
    backward_twice,
    stepped_between,
    unregistered,
    replaced,
    misspelt,
    rebound,
    leaf_lost,
    severed,
    leaked,
    unretained,
    undetached,
    uncloned,
    confused,
    view_written,
    never_thawed,
    inferred,
    unscaled_late,
)
