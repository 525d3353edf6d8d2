"""What a step of the evidence is to a defect, with the sentence that users read."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """The part that a place plays in a defect. The recorder, which runs elsewhere, sends the name."""

    SAVED = "saved here"
    SAVED_BY = "{subject} saved it here"
    SAVED_FOR_BACKWARD = "saved for backward here"
    OVERWRITTEN = "overwritten here"
    WRITTEN = "written in place here"
    BUILT = "built here"
    BUILT_IN_PLACE = "built here with inplace=True"
    USED = "used here"

    MADE = "made here"
    MADE_NO_LEAF = "made here, not a leaf"
    MADE_LARGE = "made here, with more than one element"
    MADE_IN_INFERENCE = "made in inference mode"
    LEAF = "a leaf that requires grad"
    THE_LEAF = "the leaf"
    CONSTANT = "requires no grad"
    REBOUND = "its name is bound to another tensor here"
    GRAD_IS_NONE = ".grad is None here"
    AND_GRAD_IS_NONE = "and .grad is None here"
    GRAD_READ = "gradient read here"
    GRAD_CLEARED = "gradient cleared here"
    ONLY_LEAVES = "an optimizer takes leaves only"
    OPTIMISED = "optimised here"

    BACKWARD = "backward runs here"
    RETURNED = "backward starts from what is returned here"
    WITHOUT = "backward runs here without it"
    BACKWARD_HERE = "backward here"
    BACKWARD_NEEDS = "backward needs it here"
    SHARED = "part of both graphs"
    FREES = "frees it"
    NEEDS_AGAIN = "needs it again"
    AGAIN = "again here"
    CARRIED = "carried from here"

    GRAPH = "the graph up to here"
    CUT = "cut here"
    CUT_AS_WELL = "cut here as well"
    KEPT_OUT = "kept out of the graph"
    UNRECORDED = "runs here without being recorded"
    NOT_REACHED = "no input requires grad, so nothing inside is reached"
    NEVER_TRAINED = "never trained"
    COMPARED = "compares, and assigns nothing"
    IGNORED = "sets an attribute that autograd never reads"

    FILLS = "fills the gradients"
    FILLS_NEXT = "fills them for the next call to erase"
    ERASES = "erases the gradients"
    ERASES_THEM = "erases them"
    STEPS_WITHOUT = "steps without them"
    STEPS_WITHOUT_IT = "steps without it"
    ADDS = "adds to a gradient"
    ALREADY_USED = "that this step has already used"
    USES_AGAIN = "and this one uses again"
    USED_AGAIN = "used again here"
    GIVEN = "gradients from here"
    FINDS_NONE = "step finds none"
    STEPS_BACKWARD = "this step's backward"
    SCALED = "scaled here"
    SCALED_ARRIVE = "scaled gradients arrive"
    USED_SCALED = "used here before they are unscaled"

    KEPT_GRAPH = "the graph that is kept"
    KEPT = "kept here, after backward has walked it"
    TOTAL = "added to a total that nothing walks back"

    TAKES = "takes the parameters"
    TAKES_REGISTERED = "takes what is"
    TAKES_ONLY_REGISTERED = "takes what is registered"
    UNREGISTERED = "not registered"
    MODULE_BUILT = "the module is built here"
    OPTIMIZER_BUILT = "optimizer built here"
    REPLACED = "replaced here"
    REPLACED_LATER = "replaced afterwards"

    def says(self, subject: str = "") -> str:
        """The sentence, about something where it leaves that open."""
        return self.value.format(subject=subject)
