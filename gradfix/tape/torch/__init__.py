"""Torch's own functions, tensors, layers, modules and optimizers."""
