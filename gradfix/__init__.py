"""gradfix finds, rewrites and proves the places where PyTorch code breaks its own gradients."""


def load_ipython_extension(shell: object) -> None:
    """`%load_ext gradfix`: what IPython calls."""
    from gradfix.ipython import register

    register(shell)
