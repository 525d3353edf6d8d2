"""Layers or parameters that a module keeps in a plain list or dict.

A module registers what is assigned to its attributes, and looks into no list: layers in `self.layers =
[...]` are missing from `parameters()`, so they are never trained, never moved by `.to(device)` and never
saved.

The rewrite wraps the container: `nn.ModuleList`, `nn.ModuleDict`, `nn.ParameterList` or `nn.ParameterDict`,
by the name that the file has for them. It is unsafe, because the state_dict gets new keys. Left alone:
layers that are registered elsewhere too (`nn.Sequential(*layers)`, `add_module`) and classes that are no
modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from gradfix.rewriting.statements import expression
from gradfix.rule import Decline, Edit, Fix, Options, Rule, Safety
from gradfix.tape.defects import Defect
from gradfix.tree import Tree

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
    facts = defect.facts
    kind = CONTAINERS.get((str(facts.get("container")), str(facts.get("holds"))))
    plain = tree.at(defect.culprit, cst.BaseExpression)
    if kind is None or plain is None:
        return Decline("keep them in an nn.ModuleList or nn.ModuleDict")
    if isinstance(plain, cst.Dict) and not all(map(_may_be_key, plain.elements)):
        return Decline(
            f"the keys of an nn.{kind} are strings without dots that name no attribute of nn.Module"
        )
    name = _name(tree, kind)
    if name is None:
        return Decline(f"import torch.nn and keep them in an nn.{kind}")
    args = [] if isinstance(plain, (cst.List, cst.Dict)) and not plain.elements else [cst.Arg(plain)]
    new = cst.Call(expression(tree, name), args)
    return Fix((Edit(plain, new),), f"{name}(...)", Safety.UNSAFE)


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
    message="the {holds} in `{attribute}` are not registered: modules do not look into a plain {container}",
    rewrite=rewrite,
    safety=Safety.UNSAFE,
)
