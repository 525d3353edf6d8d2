"""Statements that steer: branches, try, match, and what leaves a block."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.paths import ALWAYS, Caught, tested
from gradfix.tape.domain.values import NONE, Const, Pattern, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.interpreter.conditions import NO, YES, compared, condition, equal, tellable
from gradfix.tape.interpreter.early_exits import JUMPS, leave
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.interpreter.occasions import PassedOver
from gradfix.tape.machine.here import span_of
from gradfix.tape.strangers.framework_objects import returned
from gradfix.tape.torch.elements import part

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Code
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.conditions import Verdict
    from gradfix.tape.interpreter.grad_switches import Parted
    from gradfix.tape.interpreter.interpreter import Interpreter


HOW_LONG = "two turns of a loop are run: how long this gets in others isn't known"
SHORT = 8
"""How many tests one after the other are branches inside of branches; more are the arms of one chain."""


def if_statement(vm: Interpreter, node: ast.If) -> str | None:
    if (tests := _tests(node)) is not None:
        return _chain_statement(vm, tests)
    known, yes, no = condition(vm, node.test)
    if known is not None:
        if vm.machine.tested.counted:
            _tell_length(vm, node, known)
        if not known:
            vm.tell(PassedOver(node))
        return vm.run(node.body if known else node.orelse)
    return vm.forks.fork([(yes, lambda: vm.run(node.body)), (no, lambda: vm.run(node.orelse))])


def _tell_length(vm: Interpreter, node: ast.If, known: bool) -> None:
    """Say of what the length of a list keeps from being run that later turns may make it longer."""
    tested = vm.machine.tested
    if not any(id(one) in tested.counted for one in all_in(node.test)):
        return
    outcomes = tested.outcomes.setdefault(id(node), set())
    outcomes.add(known)
    leaves = type(node.body[-1]) in JUMPS
    if len(outcomes) > 1:
        vm.reports.findings.silences.pop((span_of(node.test), HOW_LONG), None)
    elif (known and (leaves or node.orelse)) or not (known or leaves):
        vm.reports.silence(vm.here.at(node.test), HOW_LONG)


def _tests(node: ast.If) -> list[ast.If] | None:
    """The branches of a long `elif` chain."""
    tests = [node]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        tests.append(node)
    return tests if len(tests) > SHORT else None


def _chain_statement(vm: Interpreter, tests: list[ast.If]) -> str | None:
    """All tests are looked at, then each arm is run on a path that needn't say which tests failed before."""
    possible: list[tuple[ast.If, Path]] = []
    rest: Sequence[ast.stmt] = tests[-1].orelse
    for one in tests:
        known, yes, _ = condition(vm, one.test)
        if known is None:
            possible.append((one, yes))
        elif known:
            rest = one.body
            break
    if not possible:
        return vm.run(rest)
    chain = vm.machine.tested.chain(
        tests[0], [yes for _, yes in possible], [vm.reports.text(one.test) for one, _ in possible]
    )
    bodies = [*(one.body for one, _ in possible), rest]
    return vm.forks.chain(chain, [(1 << i, partial(vm.run, body)) for i, body in enumerate(bodies)])


def parted_statement(vm: Interpreter, node: Parted) -> str | None:
    """The literals say which of two remainders this is, so that each condition that is told has them."""
    known, yes, no = condition(vm, node.test)
    if known is not None:
        return vm.run(node.body if known else node.orelse)

    def arm(guard: Path, body: Sequence[ast.stmt]) -> str | None:
        with vm.here.within(assumed=vm.here.assumed | guard):
            return vm.run(body)

    return vm.forks.fork([(yes, partial(arm, yes, node.body)), (no, partial(arm, no, node.orelse))])


def try_statement(vm: Interpreter, node: ast.Try) -> str | None:
    with vm.running.within(trying=True):
        ended = vm.run(node.body)
    if ended is None and node.orelse:
        ended = vm.run(node.orelse)
    if ended is None:
        for handler in node.handlers:
            key = Caught(id(handler), vm.trail.clock)
            of = vm.reports.text(handler.type) if handler.type is not None else "an exception"
            vm.reports.findings.texts[key] = f"{of} is caught"

            leaves: list[str] = []

            def catch(handler: ast.ExceptHandler = handler, leaves: list[str] = leaves) -> str | None:
                if handler.name:
                    vm.names.store(handler.name, Unknown(fact("an exception")))
                ended = vm.run(handler.body)
                leaves.extend([ended] if ended is not None else [])
                return ended

            with vm.reports.within(tried=[*vm.reports.tried, *map(span_of, node.body)]):
                vm.forks.fork([(frozenset({(key, False)}), lambda: None), (frozenset({(key, True)}), catch)])
            if not leaves:  # else what comes now isn't there where somebody has left
                vm.here.go_on(frozenset(literal for literal in vm.here.path if literal[0] != key))
    final = vm.run(node.finalbody)
    return final or ended


def match_statement(vm: Interpreter, node: ast.Match) -> str | None:
    subject = vm.eval(node.subject)
    arms = []
    rest = ALWAYS
    for case in node.cases:
        known, yes, no = _matched(vm, node, case, subject)
        if known is False:
            continue
        arms.append((rest | yes, partial(_case, vm, case, subject)))
        rest = rest | no
        if known:
            return vm.forks.fork(arms)
    vm.machine.tested.keep_alive.append(subject)
    return vm.forks.fork([*arms, (rest, lambda: None)])


def _matched(vm: Interpreter, node: ast.Match, case: ast.match_case, subject: Value) -> Verdict:
    """Whether a case takes a subject: one constant is compared with it, like the side of an `==`."""
    pattern = case.pattern
    if case.guard is None and isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return YES
    constant = _constant(pattern)
    if case.guard is None and constant is not None:
        known = compared(subject, constant, ast.Is() if isinstance(pattern, ast.MatchSingleton) else ast.Eq())
        if known is not None:
            return YES if known else NO
        if tellable(subject, constant):
            return equal(vm, case, node.subject, subject, constant)
    key = ("case", id(case), id(subject))
    asks = "matches" if case.guard is None else "matches and more"
    vm.reports.findings.terms.test(key, asks, subject, Pattern(pattern))
    guard = f" and {vm.reports.text(case.guard)}" if case.guard is not None else ""
    text = f"{vm.reports.text(node.subject)} matches {vm.reports.text(pattern)}{guard}"
    vm.reports.findings.texts.setdefault(key, text)
    return None, frozenset({(key, True)}), frozenset({(key, False)})


def _constant(pattern: ast.pattern) -> Const | None:
    """The one value that a pattern takes, where it is spelt out."""
    if isinstance(pattern, ast.MatchSingleton):
        return Const(pattern.value)
    literal = pattern.value if isinstance(pattern, ast.MatchValue) else None
    return Const(literal.value) if isinstance(literal, ast.Constant) else None


def _case(vm: Interpreter, case: ast.match_case, subject: Value) -> str | None:
    for pattern in ast.walk(case.pattern):
        name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
        if isinstance(name, str):
            whole = isinstance(pattern, ast.MatchAs) and pattern is case.pattern
            vm.names.store(name, subject if whole else part(subject))
    return vm.run(case.body)


def return_statement(vm: Interpreter, node: ast.Return) -> str | None:
    value = vm.eval_kept(node.value) if node.value is not None else NONE
    if vm.names.frame.code is not None:
        made = vm.graph.nodes(value)
        if made:
            why = Why(What.CALLER, f"`{vm.names.frame.code.name}`", vm.here.at(node))
            vm.strangers.passed_on.update(dict.fromkeys(map(id, made), why))
        if vm.names.frame.code is vm.running.root:
            returned(vm, value, node)
    vm.names.frame.returns.append((vm.here.path - vm.names.frame.entry, value))
    return leave(vm, "return")


def break_statement(vm: Interpreter, node: ast.Break) -> str | None:
    return leave(vm, "break")


def continue_statement(vm: Interpreter, node: ast.Continue) -> str | None:
    return leave(vm, "continue")


def _left_to_others(code: Code, node: ast.Raise) -> bool:
    """Whether it says that somebody else does it: a function that does nothing else refuses nothing."""
    named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    alone = isinstance(code.node, ast.Lambda) or node in code.node.body
    return alone and isinstance(named, ast.Name) and named.id == "NotImplementedError"


def raise_statement(vm: Interpreter, node: ast.Raise) -> str | None:
    if vm.running.stack and not _left_to_others(vm.running.stack[-1], node):
        refused(vm, vm.here.path)
    return "raise"


def refused(vm: Interpreter, path: Path) -> None:
    """Nobody goes on who comes here."""
    if vm.running.stack and not vm.running.trying:
        vm.reports.findings.terms.refused[tested(path)] = None


def assert_statement(vm: Interpreter, node: ast.Assert) -> str | None:
    vm.running.demanded.update(one.left for one in all_in(node.test) if isinstance(one, ast.Compare))
    known, yes, no = condition(vm, node.test)
    if known is None:
        refused(vm, vm.here.path | no)
    if known is None and len(yes) == 1:
        vm.reports.findings.terms.asserted.update(yes)
        vm.here.go_on(vm.here.path | yes)
    said = not any(isinstance(one, (ast.Name, ast.Call)) for one in all_in(node.test))
    return "raise" if known is False and said else None
