"""The abstract tape: a static simulation of autograd."""
