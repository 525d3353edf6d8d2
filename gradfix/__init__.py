"""gradfix finds, rewrites and proves the places where PyTorch code breaks its own gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.ipython import Shell


def load_ipython_extension(shell: Shell) -> None:
    """`%load_ext gradfix`: what IPython calls."""
    from gradfix.ipython import register

    register(shell)
