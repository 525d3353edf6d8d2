"""Properties that hold of any program, whatever is wrong with it."""
