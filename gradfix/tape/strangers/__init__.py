"""Code that can't be read: what it may do, and what is assumed of it."""
