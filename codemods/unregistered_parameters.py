"""Layers or parameters that a module keeps where it does not look for them.

A module registers what is assigned to its attributes, and looks into no list: layers in `self.layers =
[...]` are missing from `parameters()`, so they are never trained, never moved by `.to(device)` and never
saved. The same holds for a plain tensor (`self.w = torch.randn(3, requires_grad=True)`) and for what was
made of a parameter (`self.w = nn.Parameter(torch.randn(3)).cuda()`).

The rewrite wraps the container: `nn.ModuleList`, `nn.ModuleDict`, `nn.ParameterList` or `nn.ParameterDict`,
by the name that the file has for them; a tensor becomes an `nn.Parameter`. It is unsafe, because the
state_dict gets new keys. Left alone: layers that are registered elsewhere too (`nn.Sequential(*layers)`,
`add_module`), tensors that somebody else optimises or whose `.grad` is read, classes that are no modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import Unregistered
from gradfix.rewriting import shapes as m
from gradfix.rewriting.aimed import call_at
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.leaf import constant_of, parameter_last
from gradfix.rewriting.statements import expression
from gradfix.rule import Decline, Edit, Fix, Options, Rule, Safety
from gradfix.tree import Tree

TRAINS = "what is registered is trained, saved and moved with the module"
CONTAINERS = {
    ("list", "modules"): "ModuleList",
    ("dict", "modules"): "ModuleDict",
    ("list", "parameters"): "ParameterList",
    ("dict", "parameters"): "ParameterDict",
}
TAKEN = frozenset(
    re.findall(
        r"\w+",
        """add_module apply bfloat16 buffers children clear compile cpu cuda double eval extra_repr float
        forward half items keys load_state_dict modules parameters pop register_buffer requires_grad_
        share_memory state_dict to train training type update values zero_grad""",
    )
)
"""Attributes of nn.Module: no key of a ModuleDict may have their names."""


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    facts = defect.told(Unregistered)
    if facts.container == "tensor":
        return _parameter(defect, tree)
    kind = CONTAINERS.get(("list" if facts.container == "tuple" else facts.container, facts.holds))
    plain = tree.at(defect.culprit, cst.BaseExpression)
    if kind is None or plain is None:
        return Decline("keep them in an nn.ModuleList or nn.ModuleDict")
    if isinstance(plain, cst.Dict) and not all(map(_may_be_key, plain.elements)):
        return Decline(
            f"the keys of an nn.{kind} are strings without dots that name no attribute of nn.Module"
        )
    if isinstance(plain, cst.Tuple) and not plain.lpar and len(plain.elements) == 1:
        return Decline("drop the comma behind it, which makes a tuple of it")
    name = _name(tree, kind)
    if name is None:
        return Decline(f"import torch.nn and keep them in an nn.{kind}")
    args = [] if isinstance(plain, (cst.List, cst.Dict)) and not plain.elements else [cst.Arg(plain)]
    rows = [tree.at(span, cst.BaseExpression) for span in dict.fromkeys(facts.inner)]
    wrapped = {row: cst.Call(expression(tree, name), [cst.Arg(row)]) for row in rows if row is not None}
    within = [row for row in wrapped if plain in tree.ancestors(row)]
    whole: cst.CSTNode = _bracketed(plain)
    for row in within:
        whole = whole.deep_replace(row, wrapped[row])
    args = [cst.Arg(whole)] if args and isinstance(whole, cst.BaseExpression) else []
    apart = [Edit(row, new) for row, new in wrapped.items() if row not in within]
    return Fix((Edit(plain, cst.Call(expression(tree, name), args)), *apart), f"{name}(...)", TRAINS)


def _bracketed(plain: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that stays one where it is an argument: a tuple without brackets would be several."""
    if isinstance(plain, cst.Tuple) and not plain.lpar:
        return plain.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return plain


def _parameter(defect: Defect, tree: Tree) -> Fix | Decline:
    """A tensor that a module is to train is an `nn.Parameter` of it."""
    made = tree.at(defect.culprit, cst.BaseExpression)
    factory = call_at(tree, defect.told(Unregistered).factory)
    name = _name(tree, "Parameter")
    if made is None or factory is None or name is None:
        return Decline("make it an nn.Parameter")
    if last_name(factory.func) == "Parameter":
        new = parameter_last(made, factory)
    else:
        value = made.deep_replace(factory, constant_of(factory)).with_changes(lpar=(), rpar=())
        made = _asked_for(tree, made)
        new = cst.Call(expression(tree, name), [cst.Arg(value)])
    return Fix((Edit(made, new),), " ".join(tree.code(new).split()), TRAINS)


def _asked_for(tree: Tree, made: cst.BaseExpression) -> cst.BaseExpression:
    """The expression with the `.requires_grad_()` behind it, where there is one."""
    owner = tree.parent(made)
    if isinstance(owner, cst.Attribute) and owner.value is made and owner.attr.value == "requires_grad_":
        call = tree.parent(owner)
        return call if isinstance(call, cst.Call) and call.func is owner else made
    return made


def _may_be_key(element: cst.BaseDictElement) -> bool:
    if not isinstance(element, cst.DictElement):
        return False
    if not isinstance(element.key, cst.SimpleString):
        return isinstance(element.key, (cst.FormattedString, cst.Call))
    value = element.key.evaluated_value
    return isinstance(value, str) and "." not in value and value not in TAKEN


def _name(tree: Tree, kind: str) -> str | None:
    """What this file calls `torch.nn.<kind>`."""
    names = dict(_imported(tree))
    if "torch.nn." + kind in names:
        return names["torch.nn." + kind]
    if "torch.nn" in names:
        return f"{names['torch.nn']}.{kind}"
    return f"{tree.torch}.nn.{kind}" if tree.torch else None


def _imported(tree: Tree) -> Iterator[tuple[str, str]]:
    """The full name of what is imported, and its name in the file."""
    for node in m.findall(tree.module, m.Import() | m.ImportFrom()):
        if isinstance(node, cst.Import):
            yield from ((a.evaluated_name, a.evaluated_alias) for a in node.names if a.evaluated_alias)
        elif isinstance(node, cst.ImportFrom) and node.module is not None and not node.relative:
            origin = tree.code(node.module)
            if isinstance(node.names, cst.ImportStar):
                yield from ((f"{origin}.{kind}", kind) for kind in CONTAINERS.values())
            else:
                yield from (
                    (f"{origin}.{a.evaluated_name}", a.evaluated_alias or a.evaluated_name)
                    for a in node.names
                )


RULE = Rule(
    code="GF210",
    message="`{attribute}` is not registered: a module sees parameters and modules, not a plain {container}",
    rewrite=rewrite,
    safety=Safety.UNSAFE,
)
