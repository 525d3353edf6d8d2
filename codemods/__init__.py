"""One module per rule: how a defect is said to a user, and the libcst rewrite that mends it."""
