"""What exists on the tape: values, graphs, paths and the journal of changes; no torch and no Python in it."""
