"""The judge: says from two recordings whether the gradient now flows."""
