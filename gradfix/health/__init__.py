"""The health of a code base: every module built and run once, what gets no gradient explained."""
