"""Where execution starts: the module itself, then every function that nobody called and may break a rule."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from gradfix import garbage
from gradfix.defects.reasons import What
from gradfix.stack import roomy
from gradfix.tape.analysis import Analysis, Silence
from gradfix.tape.checks.closing import close
from gradfix.tape.domain.definitions import Function
from gradfix.tape.domain.paths import ALWAYS, ENTRY, Equals, forget
from gradfix.tape.domain.why import Why
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.entry_filter import Culprits, Definition, callers_first
from gradfix.tape.handlers import HANDLERS
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.limits import TooComplexError
from gradfix.tape.interpreter.modes import lose_mode
from gradfix.tape.interpreter.program import Program
from gradfix.tape.machine.reports import Findings
from gradfix.tape.machine.undecided import account_for_deeds, reasons
from gradfix.tape.strangers.assumed_steps import report_early_steps
from gradfix.tape.strangers.reaching import watch
from gradfix.tape.uncalled import enter_class, enter_function, entries_of

if TYPE_CHECKING:
    from gradfix.source import Source
    from gradfix.tape.effects.frameworks import Row
    from gradfix.tape.interpreter.limits import Resolver
    from gradfix.tape.interpreter.names import Names

Run: TypeAlias = Callable[[Interpreter], object]

WORK_PER_BYTE = 3
WORK_FLOOR = 20_000
SPREAD_FLOOR, BYTES_PER_SPREAD = 200, 50
"""How many alternatives are looked at one by one in what is executed."""
MOST = 10
"""How often the work that a file of this size may cost its entries may cost together. Each has a share by its
own size, so that nothing that stands beside it takes it away."""
REASONS: dict[type[Exception], str] = {
    TooComplexError: "the paths through this file are more than are followed",
    RecursionError: "this file is nested too deeply to be followed",
}


@roomy
@garbage.seldom()
def analyse(source: Source, resolve: Resolver | None = None, rows: Mapping[str, Row] = ROWS) -> Analysis:
    """Execute a module on the tape and collect the defects; `rows` is what is known of frameworks."""
    forget()
    content = source.text.encode("utf-8", "surrogatepass")
    findings = Findings(source.path, content.splitlines())
    findings.handled.trees[source.path] = source.tree
    program = Program(findings, source.tree, resolve, rows)
    work = _work(len(source.text))
    try:
        module = _run_module(program, work, _spread(len(source.text)))
        close([module, *_enter_all(module, MOST * work, Culprits(content, source.tree))])
    except (TooComplexError, RecursionError) as error:
        program.unfinished.insert(0, type(error))
    too_complex = REASONS[program.unfinished[0]] if program.unfinished else ""
    _left_alone(program, findings, too_complex)
    silences = tuple(Silence(*told) for told in reasons(findings))
    return Analysis(tuple(findings.told()), silences, too_complex)


def _left_alone(program: Program, findings: Findings, too_complex: str) -> None:
    """Say of each deed of which nothing was said why not, and of what was never played that it wasn't."""
    members = [one for cls in program.classes for one in cls.attrs.values() if isinstance(one, Function)]
    codes = {id(one.code): one.code for one in (*program.functions, *members)}
    named = [code for code in codes.values() if not isinstance(code.node, ast.Lambda)]
    left = Why(What.BUDGET, too_complex) if too_complex else None
    account_for_deeds(findings, all_in(program.tree), named, left)


def _work(size: int) -> int:
    return WORK_FLOOR + WORK_PER_BYTE * size


def _spread(size: int) -> int:
    return SPREAD_FLOOR + size // BYTES_PER_SPREAD


def _run_module(program: Program, work: int, spread: int) -> Interpreter:
    """Run the module itself, with half of the work at most."""
    vm = Interpreter(program, HANDLERS, max(work // 2, min(work, WORK_FLOOR)))
    vm.trail.spread = spread
    watch(vm)
    try:
        with vm.here.within(path=ALWAYS):
            vm.run(program.tree.body)
    except TooComplexError:
        program.unfinished.append(TooComplexError)
        vm.budget.unfinished = True
    return vm


def _enter_all(module: Interpreter, work: int, culprits: Culprits) -> list[Interpreter]:
    """Enter what nobody has called, each by itself."""
    program, main = module.program, module.reports.findings.main
    ran = [code.node for code in program.codes.values() if code.entered and code.file == main]
    lines = [(node.lineno, node.end_lineno or node.lineno) for node in ran]
    entries: list[Interpreter] = []
    for node, enter in _due(module.names, culprits):
        size = culprits.size(node)
        share = min(_work(size), work)
        entry = Interpreter(program, HANDLERS, share, module)
        entry.trail.spread = _spread(size)
        if module.grad_mode.grad is not True or entry.switches.sets_mode_in(node):
            lose_mode(entry.machine)  # as the module left it, or as this did when it ran before
        path = frozenset({(Equals(ENTRY, len(entries) + 1), True)})
        with entry.here.within(path=path), entry.reports.within(ran=lines):
            _run_entry(entry, enter)
        entries.append(entry)
        work -= share - max(entry.budget.work, 0)
    return entries


def _due(names: Names, culprits: Culprits) -> Iterator[tuple[Definition, Run]]:
    """What is to be entered, callers first: what they call is met on the way."""
    program, main = names.program, names.reports.findings.main
    lines = names.reports.findings.sources[main]
    classes = [cls for cls in program.classes if cls.file == main]
    for cls in callers_first({cls.name: (cls, cls.node) for cls in classes}, lines):
        if culprits.suspects(cls.node) or any(entries_of(names.program, cls)):
            yield cls.node, partial(enter_class, cls=cls, culprits=culprits)
    functions = [one for one in program.functions if one.owner is None and one.code.file == main]
    for function in callers_first({one.code.name: (one, one.code.node) for one in functions}, lines):
        if not function.code.entered and culprits.within(function.code.node):
            yield function.code.node, partial(enter_function, function=function)


def _run_entry(entry: Interpreter, run: Run) -> None:
    """Run an entry so that nothing it does is seen by the next one."""
    entry.trail.begin()
    watch(entry)
    try:
        run(entry)
        report_early_steps(entry.strangers)
    except (TooComplexError, RecursionError) as error:
        entry.program.unfinished.append(type(error))
        entry.budget.unfinished = True
    finally:
        entry.trail.forget()
