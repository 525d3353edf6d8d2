"""Whole training programs, healthy and with one planted bug; torch alone judges what gradfix says of them.

The programs are written by a grammar that knows autograd and how people write, and nothing of gradfix.
"""
