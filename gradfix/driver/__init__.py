"""A driver: a small program that builds what no script runs, feeds it, and backpropagates what comes out."""
