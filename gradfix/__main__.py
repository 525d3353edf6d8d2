"""`python -m gradfix`."""

from gradfix.cli import main

main(prog_name="gradfix")
