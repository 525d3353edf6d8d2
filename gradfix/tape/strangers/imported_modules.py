"""Networks that are imported as they are: who asks an imported name for its parameters says that it is one.

`from nets import gen` may bind anything; after `Adam(gen.parameters())` the name stands for a module that
isn't known (convention B), as an argument would that is asked the same. But everybody can import it: any call
that isn't known may clear its gradients.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.values import External, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.interpreter.imports import first_party
from gradfix.tape.torch.modules import leaves, opaque

if TYPE_CHECKING:
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Strangers

OWN = ("torch.", "builtins.")
"""What is known without being read."""


def imported_module(vm: Interpreter, receiver: External, name: str, node: ast.Call) -> Unknown | None:
    """The module that an imported name turns out to be, as a method of it is called."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name != "parameters" or not isinstance(owner, ast.Name):
        return None
    scope, path = vm.names.frame.scope.globals, receiver.path
    if "." not in path or path.startswith(OWN) or scope.names.get(owner.id) is not receiver:
        return None
    if first_party(vm, path) is not None:
        return None
    module = Unknown(Why(What.IMPORT, path))
    module.origin = path
    vm.trail.fill(scope, scope.names, owner.id, module)
    vm.strangers.imported.append(module)
    return module


def may_clear_imported(strangers: Strangers) -> None:
    """A call that isn't known may have imported the same modules."""
    machine = strangers.machine
    for module in strangers.imported if machine.severed.backwards else ():
        machine.gradients.perhaps_cleared(leaves(machine, opaque(machine, module))[0])
