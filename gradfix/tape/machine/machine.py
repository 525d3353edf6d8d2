"""The simulated autograd of one entry, put together: each part is given those that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.moments import Timeline
from gradfix.tape.domain.trail import Trail
from gradfix.tape.machine.backward import Backwards
from gradfix.tape.machine.early_steps import EarlySteps
from gradfix.tape.machine.grad_mode import GradMode
from gradfix.tape.machine.gradients import Gradients
from gradfix.tape.machine.here import Here
from gradfix.tape.machine.histories import Graph
from gradfix.tape.machine.keeping import Keeping
from gradfix.tape.machine.leaves import Leaves
from gradfix.tape.machine.operations import Operations
from gradfix.tape.machine.optimizers import Optimizers
from gradfix.tape.machine.recording import Recording
from gradfix.tape.machine.reports import Reports
from gradfix.tape.machine.results import Results
from gradfix.tape.machine.severed import Severed
from gradfix.tape.machine.tested import Tested

if TYPE_CHECKING:
    from gradfix.tape.machine.python import Python
    from gradfix.tape.machine.reports import Findings


class Machine:
    """The autograd that a program runs on: `before` is that of the module, on which others go on."""

    def __init__(self, findings: Findings, python: Python, before: Machine | None) -> None:
        self.trail = Trail()
        self.here = Here(findings.main, self.trail)
        self.reports = Reports(findings, self.here)
        self.timeline: Timeline = Timeline(before.timeline if before else None)
        self.grad_mode = GradMode(self.here)
        self.tested: Tested = Tested(self.trail, before.tested if before else None)
        self.graph = Graph(self.reports, self.trail, self.timeline, self.grad_mode)
        self.optimizers: Optimizers = Optimizers(before.optimizers if before else None)
        self.leaves: Leaves = Leaves(self.graph, self.optimizers, before.leaves if before else None)
        self.recording: Recording = Recording(self.graph, self.tested, before.recording if before else None)
        self.keeping = Keeping(self.graph)
        self.results = Results(self.keeping)
        self.operations = Operations(self.recording, self.results, python)
        self.severed: Severed = Severed(
            self.graph, self.tested, self.leaves, python, before.severed if before else None
        )
        early_steps = EarlySteps(self.graph, self.leaves)
        self.backward = Backwards(self.severed, self.recording, early_steps, python)
        self.gradients: Gradients = Gradients(
            self.recording, self.severed, self.optimizers, before.gradients if before else None
        )
