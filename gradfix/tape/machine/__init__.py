"""The simulated autograd: nodes, saves, writes, backward, gradients, cuts."""
