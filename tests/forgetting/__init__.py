"""The forgetting test: who knows less may say less, but never more.

A file is played on the tape twice: as it is, and after something was forgotten (`texts`: a part of its text
is handed to code that isn't known; `bounds`: a budget, a limit or a neighbouring file is taken away). What
the second run says has to be among what the first one said, and no surer. This needs no labels, so it runs
over any code. What breaks it was claimed from ignorance: the tape has read "not known" as "no" somewhere.

The subtle part is what counts as knowing less: the text that remains must mean everything that the old one
meant, and more. A call that is *deleted* is known not to happen, so nothing is ever deleted. A part that
gives way is handed to what takes its place, with everything that it could get at: `opt.zero_grad()` becomes
`__unknown__(opt)`, an argument `x` becomes `__unknown__(x)`, never a bare name that couldn't be `x`.
"""
