"""What goes wrong without an exception, in the words of who sees it, and what explains it: one row each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradfix.gate import passes
from gradfix.plan import Plan
from gradfix.rule import Finding
from gradfix.why.answers import MOST_FILES, TAPE, Answer, Culprit, found_in
from gradfix.why.project import Project
from gradfix.why.suspects import Agreement, Sure, Suspect, merged

CUTS = (
    "detached_loss_path", "converted_loss_path", "forward_in_no_grad", "leaf_rebound",
    "requires_grad_on_result", "reentrant_checkpoint_cut", "severed_term", "unreached_parameters",
    "non_differentiable_loss",
)  # fmt: skip
UNSEEN = ("optimizer_before_replacement", "unregistered_parameters", "requires_grad_misspelt")
LOOP = ("missing_zero_grad", "zero_grad_before_step", "clip_before_unscale")


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """Something that people see."""

    patterns: tuple[str, ...]
    example: str
    kinds: tuple[str, ...]
    """The defects that explain it, the likeliest first."""
    then: str


SYMPTOMS = (
    Symptom(
        patterns=(
            r"(?:grad(?:ient)?s? (?:is|are|stays?|=+) none|none grad)"
            r"(?:.*?\b(?:for|of|in)\s+(?P<name>[\w.\[\]]+))?",
            r"(?P<name>[\w.\[\]]+)\.grad (?:is|stays|=+) none",
            r"\bno grad(?:ient)?s?\b(?:.*?\b(?:for|of|in|to)\s+(?P<name>[\w.\[\]]+))?",
        ),
        example="grad is None for NAME",
        kinds=("grad_of_non_leaf", *CUTS, *UNSEEN, "no_leaf_requires_grad"),
        then="`gradfix run {program}` runs three steps and says for each parameter why it has no gradient",
    ),
    Symptom(
        patterns=(r"memory|\boom\b|\bleak",),
        example="memory grows",
        kinds=("graph_leak", "backward_twice"),
        then="look for what keeps a loss, or a hidden state, with its graph from one iteration to the next",
    ),
    Symptom(
        patterns=(r"\bnan\b|\binf\b|explod|diverg|blows? up|unstable|spik",),
        example="loss becomes nan",
        kinds=("missing_zero_grad", "clip_before_unscale", "write_through_data", "leaf_rebound"),
        then="`torch.autograd.set_detect_anomaly(True)` names the operation that gives the first nan",
    ),
    Symptom(
        patterns=(
            r"\b(?:loss|accuracy|reward|metric|model|weights?|param\w*|network|it)\b.*"
            r"(?:n't|not|stuck|same|constant|plateau|flat|no longer|stopp?|never|nothing|random)",
            r"(?:not|n't) (?:learn|train|converge|improve)|no improvement",
        ),
        example="loss does not decrease",
        kinds=(*CUTS, *UNSEEN, *LOOP, "write_through_data", "no_leaf_requires_grad", "grad_of_non_leaf"),
        then="`gradfix run {program}` runs three steps and shows which parameters get no gradient, and why",
    ),
)
"""From the most telling to the least."""
KNOWN = ", ".join(repr(each.example) for each in SYMPTOMS)


@dataclass(frozen=True, slots=True)
class Complaint:
    """A symptom as it was told."""

    symptom: Symptom
    text: str
    name: str = ""
    """Of which tensor."""


def symptom_in(text: str) -> Complaint | None:
    """The symptom that a sentence tells of."""
    plain = " ".join(text.replace("\u2019", "'").split())
    for symptom in SYMPTOMS:
        for pattern in symptom.patterns:
            if found := re.search(pattern, plain, re.IGNORECASE):
                return Complaint(symptom, plain, found.groupdict().get("name") or "")
    return None


def complained(complaint: Complaint, paths: Sequence[str], plan: Plan) -> Answer:
    """Who explains a symptom, as far as the tape tells."""
    project = Project(paths, plan.config)
    files = [path for path in project.files if (source := project.source(path)) and passes(source.content)]
    found = (each for path in files[:MOST_FILES] for each in _of_file(complaint, project, path, plan))
    suspects = merged(found, files)
    culprits = tuple(
        Culprit(each, _sure(each, number), texts={each.path: project.shown(each.path)})
        for number, each in enumerate(suspects)
    )
    heading = (
        f"{complaint.text}: {'what would explain it' if culprits else 'nothing that was read explains it'}"
    )
    advice = complaint.symptom.then.format(program=_program(project, files))
    return Answer(None, culprits, heading=heading, advice=advice, cells=project.cells)


def _program(project: Project, paths: Sequence[str]) -> str:
    """What would be run to see it: the one of these files that is a program, best one that runs backward."""

    def rank(path: str) -> tuple[bool, bool]:
        source = project.source(path)
        text = source.text if source else ""
        return "__main__" not in text, "backward(" not in text

    programs = [path for path in paths if path.endswith(".py")]
    return min(programs, key=rank, default="PROGRAM")


def _of_file(complaint: Complaint, project: Project, path: str, plan: Plan) -> Iterator[Suspect]:
    kinds = complaint.symptom.kinds
    for finding in found_in(path, plan)[0]:
        if finding.rule in kinds and finding.impact != "style":
            agrees = [Agreement(TAPE - min(kinds.index(finding.rule), 5), "the tape finds it")]
            if finding.certainty == "suspect":
                agrees.append(Agreement(-6, "the tape only suspects it"))
            if finding.impact == "crashes":
                agrees.append(Agreement(-4, "it would raise"))
            if complaint.name and _names(finding, project.lines(path), complaint.name):
                agrees.append(Agreement(6, f"it speaks of `{complaint.name}`"))
            assumes = tuple(finding.assumptions)
            yield Suspect(path, finding.span, finding.message, tuple(agrees), assumes, "", finding)


def _names(finding: Finding, lines: Sequence[str], name: str) -> bool:
    """Whether the lines of a finding have a part of a tensor's name."""
    numbers = [finding.span.line, *(step.span.line for step in finding.evidence if step.path is None)]
    text = " ".join(lines[number - 1] for number in numbers if 0 < number <= len(lines))
    parts = [part for part in re.split(r"[.\[\]]", name) if part and not part.isdigit()]
    own = [part for part in parts if part not in ("weight", "bias", "model", "self", "net")] or parts
    return any(re.search(rf"\b{re.escape(part)}\b", text) for part in own)


def _sure(suspect: Suspect, number: int) -> Sure:
    certain = suspect.finding is not None and suspect.finding.certainty == "certain"
    return "likely" if number == 0 and certain else "possible"
