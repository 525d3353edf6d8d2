"""Where execution starts: the module itself, then every function that nobody called and may break a rule."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from gradfix.tape.analysis import Analysis, Silence
from gradfix.tape.checks.closing import close
from gradfix.tape.domain.paths import ALWAYS, Equals
from gradfix.tape.domain.values import stamp
from gradfix.tape.effects.frameworks import ROWS, Row
from gradfix.tape.entry_filter import Culprits
from gradfix.tape.handlers import HANDLERS
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.limits import Resolver, TooComplexError
from gradfix.tape.interpreter.modes import lose_mode
from gradfix.tape.machine.recording import UNSET
from gradfix.tape.strangers.assumed_optimizers import report_early_steps
from gradfix.tape.uncalled import enter_class, enter_function, entries_of

if TYPE_CHECKING:
    from gradfix.source import Source

SELDOM = 50_000
"""After how many new objects cycles are looked for."""
WORK_PER_BYTE = 3
WORK_FLOOR = 20_000
SPREAD_FLOOR, BYTES_PER_SPREAD = 200, 50
"""How many alternatives are looked at one by one in a file."""
SHARE = 3
"""No entry may use up more than this part of the work that is left, so that one can't cost the others
theirs."""
REASONS: dict[type[Exception], str] = {
    TooComplexError: "the paths through this file are more than are followed",
    RecursionError: "this file is nested too deeply to be followed",
}


def analyse(source: Source, resolve: Resolver | None = None, rows: Mapping[str, Row] = ROWS) -> Analysis:
    """Execute a module on the tape and collect the defects; `rows` is what is known of frameworks."""
    before = gc.get_threshold()
    if before[0]:  # nearly all that an analysis makes lives until its end
        gc.set_threshold(max(before[0], SELDOM), *before[1:])
    try:
        return _analysed(source, resolve, rows)
    finally:
        gc.set_threshold(*before)


def _analysed(source: Source, resolve: Resolver | None, rows: Mapping[str, Row]) -> Analysis:
    """Execute one module, then what it left unexecuted."""
    content = source.text.encode("utf-8", "surrogatepass")
    work = WORK_FLOOR + WORK_PER_BYTE * len(source.text)
    vm = Interpreter(source.path, content.splitlines(), work, resolve, HANDLERS)
    vm.module = source.tree
    vm.trail.spread = SPREAD_FLOOR + len(source.text) // BYTES_PER_SPREAD
    vm.rows = rows
    culprits = Culprits(content, source.tree)
    try:
        _run_module(vm, source.tree)
        _enter_all(vm, culprits)
        close(vm)
    except (TooComplexError, RecursionError) as error:
        vm.unfinished.insert(0, type(error))
    too_complex = REASONS[vm.unfinished[0]] if vm.unfinished else ""
    silences = tuple(Silence(span, reason) for span, reason in vm.silences)
    order = sorted(vm.found.values(), key=lambda defect: (defect.culprit, defect.kind))
    return Analysis(tuple(order), silences, too_complex)


def _run_module(vm: Interpreter, tree: ast.Module) -> None:
    """Run the module itself, with half of the work at most."""
    top, whole = vm.frame, vm.work
    vm.work = vm.share = max(whole // 2, min(whole, WORK_FLOOR))
    try:
        vm.run(tree.body)
    except TooComplexError:
        vm.unfinished.append(TooComplexError)
        vm.frame, vm.file = top, vm.main
        vm.stack.clear()
        while vm.trail.frames:
            vm.trail.undo()
    vm.work = whole // 2 + max(vm.work, 0)
    vm.path = ALWAYS


def _enter_all(vm: Interpreter, culprits: Culprits) -> None:
    number = 0
    vm.of_module = len(vm.backwards)
    entered = [code.node for code in vm.codes.values() if code.entered and code.file == vm.main]
    vm.ran = [(node.lineno, node.end_lineno or node.lineno) for node in entered]
    for cls in list(vm.classes):
        if cls.file == vm.main and (culprits.suspects(cls.node) or any(entries_of(vm, cls))):
            number += 1
            _isolated(vm, number, partial(enter_class, vm, cls, culprits))
    for function in list(vm.functions):
        code = function.code
        if (
            not code.entered
            and function.owner is None
            and code.file == vm.main
            and culprits.within(code.node)
        ):
            number += 1
            _isolated(vm, number, partial(enter_function, vm, function))
    vm.ran = []


def _isolated(vm: Interpreter, number: int, run: Callable[[], object]) -> None:
    """Run an entry so that nothing it does is seen by the next one."""
    left = vm.work
    share = max(left // SHARE, min(left, WORK_FLOOR))
    vm.work = vm.share = share
    vm.past, vm.times = {}, {}
    vm.trail.open(stamp())
    vm.path = frozenset({(Equals(("entry",), number), True)})
    vm.handed = []
    vm.grad, vm.mode, vm.repeat, vm.later_turn = True, UNSET, False, False
    vm.uncalled, vm.turns, vm.refused = False, [0], None
    if vm.sets_mode():  # whoever ran before may have left recording off
        lose_mode(vm)
    frame, depth, file = vm.frame, len(vm.trail.frames), vm.file
    known = (vm.supposed, vm.stand_ins, vm.loose, vm.results, vm.elements, vm.steps)
    vm.supposed, vm.stand_ins = dict(vm.supposed), list(vm.stand_ins)
    vm.loose, vm.results, vm.elements = dict(vm.loose), dict(vm.results), dict(vm.elements)
    ran, of_module = vm.backwards, vm.of_module
    vm.backwards, vm.steps = ran[:of_module], list(vm.steps)
    try:
        run()
        report_early_steps(vm)
    except (TooComplexError, RecursionError) as error:
        vm.unfinished.append(type(error))
        vm.frame, vm.file = frame, file
        vm.stack.clear()
    finally:
        while len(vm.trail.frames) >= depth:
            vm.trail.undo()
        vm.path = ALWAYS
        vm.supposed, vm.stand_ins, vm.loose, vm.results, vm.elements, vm.steps = known
        ran.extend(vm.backwards[of_module:])
        vm.backwards = ran
        vm.work = left - (share - max(vm.work, 0))
