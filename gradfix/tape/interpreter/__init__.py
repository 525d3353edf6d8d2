"""How a program runs on the machine: frames, names, forks, conditions, grad modes, imports."""
