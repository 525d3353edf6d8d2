"""A write in place that torch refuses, whatever is trained.

What breaks: an expanded tensor shows one place of memory as several elements, and torch raises "more than one
element of the written-to tensor refers to a single memory location". What was made in inference mode may not
be written outside of it: "Inplace update to inference tensor outside InferenceMode is not allowed". And what
would have to be recorded can't go to `out=`: "functions with out=... arguments don't support automatic
differentiation".

Rewrite: a new tensor under the same name, `mask = mask * 2`; what is written by an index is cloned first. The
fix is unsafe where something else may see the write and would keep the old values. Left alone: tensors of
which the sizes aren't known, what is written in the mode that it was made in, and `fill_` and its like, which
write one value everywhere.
"""

from gradfix.rewriting.outofplace import out_of_place
from gradfix.rule import Rule

RULE = Rule(
    code="GF109",
    message="`{culprit}` writes to {what}",
    sometimes_unsafe=True,
    rewrite=out_of_place,
)
