"""Runs a test on the text before and on the text after: one that fails and then passes is kept."""

from __future__ import annotations

import os
from dataclasses import replace

from gradfix.driver.recipe import Recipe
from gradfix.driver.written import program
from gradfix.regression.checks import checks
from gradfix.regression.mended import Check, Kept, Mended, Piece, Unkept
from gradfix.regression.text import function, imported
from gradfix.trace.report import Recording
from gradfix.verify import Command, Launcher, Limits
from gradfix.verify.launch import Job
from gradfix.verify.verdicts import cannot, facts

NO_CHECK = "no assert that was tried fails before and passes after"
STEPS = 10_000
"""A test is run to its end."""


class Bench:
    """Where tests are tried: in the sandbox of the judge, never on disk."""

    def __init__(self, launcher: Launcher, limits: Limits) -> None:
        self.launcher = launcher
        self.limits = replace(limits, max_steps=STEPS)

    def kept(self, mended: Mended, recipe: Recipe) -> Kept | Unkept:
        """The plainest test by this recipe that tells before from after."""
        root, text = recipe.target.root, program(recipe)
        first, second = (self.run(mended, lib, root, text) for lib in (mended.before, mended.after))
        why = cannot(second, self.limits.seconds, self.limits.memory)
        if why:
            return Unkept(mended, f"what ran it does not run after: {why}")
        tried = (self.tried(mended, each) for each in checks(recipe, facts(first), facts(second)))
        return next((one for one in tried if one is not None), Unkept(mended, NO_CHECK))

    def tried(self, mended: Mended, check: Check) -> Kept | None:
        """One test, if it fails on the text before and passes on the text after."""
        piece = function(check, mended)
        root, text = check.recipe.target.root, called(piece)
        after = self.run(mended, mended.after, root, text)
        if after["error"] is not None or after["how"] != "finished":
            return None
        before = self.run(mended, mended.before, root, text)
        error = before["error"]
        if error is None or cannot(before, self.limits.seconds, self.limits.memory):
            return None
        first = error["message"].splitlines()[0] if error["message"] else ""
        return Kept(mended, check.recipe, piece, f"{error['type']}: {first}".removesuffix(": "))

    def run(self, mended: Mended, library: bytes, root: str, text: str) -> Recording:
        """A program beside a library of which only this text is there."""
        at = os.path.join(root, "gradfix_test_of_a_rewrite.py")
        texts = {at: text.encode(), mended.path: library}
        return self.launcher.run(Job(Command("script", at), root, texts, self.limits))


def called(piece: Piece) -> str:
    """A test as a program."""
    return "\n".join([*imported(piece.imports), "", *piece.lines, "", f"{piece.name}()", ""])
