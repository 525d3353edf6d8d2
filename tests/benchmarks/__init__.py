"""What the tape costs, how its cost grows, and whether any file brings it down."""
