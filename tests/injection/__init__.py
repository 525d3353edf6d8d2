"""Puts bugs into healthy programs, and looks what gradfix makes of them."""
