"""The judge: says from two recordings whether the gradient now flows."""

from gradfix.verify.judge import JudgeOptions, judge
from gradfix.verify.launch import Command, Launcher, Limits, parse_command, parse_line
from gradfix.verify.verdicts import Claim, Verdict

__all__ = [
    "Claim",
    "Command",
    "JudgeOptions",
    "Launcher",
    "Limits",
    "Verdict",
    "judge",
    "parse_command",
    "parse_line",
]
