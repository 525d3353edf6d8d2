"""Torch as referee of the tape: random programs are run under torch and compared with their defects."""
