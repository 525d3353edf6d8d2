"""Tracebacks as people paste them: whatever surrounds them, the same frames and the same message come out."""

from __future__ import annotations

import pytest

from gradfix.why.pasted import lines
from gradfix.why.traces import Trace, traces

PLAIN = """\
Traceback (most recent call last):
  File "/home/a/proj/train.py", line 40, in main
    loss.backward()
  File "/opt/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
    torch.autograd.backward(
RuntimeError: grad can be implicitly created only for scalar outputs
"""
OWN = ("/home/a/proj/train.py", 40, "main", "loss.backward()")
SAID = "RuntimeError: grad can be implicitly created only for scalar outputs"


def prefixed(prefix: str, text: str = PLAIN) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def numbered(text: str = PLAIN) -> str:
    """As a logger writes it: another time on each line."""
    rows = enumerate(text.splitlines(), 10)
    return "".join(f"2024-05-01 10:00:{second},123 ERROR {line}\n" for second, line in rows)


def boxed(text: str) -> str:
    return "".join(f"│ {line:<90} │\n" for line in text.splitlines())


MARKED = PLAIN.replace("    loss.backward()\n", "    loss.backward()\n    ~~~~~~~~~~~~~^^\n")
INTERLEAVED = "".join(f"[rank{rank}]: {line}\n" for line in PLAIN.splitlines() for rank in (0, 1))
IPYTHON = '''\
RuntimeError                              Traceback (most recent call last)
~/proj/train.py in main(self, x)
     38     loss = criterion(y)
---> 40     loss.backward()
     41     step()

/opt/conda/lib/python3.8/site-packages/torch/tensor.py in backward(self, gradient)
    220         """
--> 221         torch.autograd.backward(self, gradient)

RuntimeError: grad can be implicitly created only for scalar outputs
'''
IPYTHON_8 = """\
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 1
----> 1 main()

File ~/proj/train.py:40, in main(x)
     38     loss = criterion(y)
---> 40     loss.backward()

RuntimeError: grad can be implicitly created only for scalar outputs
"""
RICH = (
    """\
╭───────────── Traceback (most recent call last) ─────────────╮
"""
    + boxed(
        """\
/home/a/proj/train.py:40 in main

   39 │   loss = criterion(y)
 ❱ 40 │   loss.backward()
   41 │   step()
"""
    )
    + "╰─────────────────╯\nRuntimeError: grad can be implicitly created only for scalar outputs\n"
)
PYTEST = """\
    def main():
>       loss.backward()

train.py:40:
_ _ _ _ _ _ _ _ _ _ _ _
E   RuntimeError: grad can be implicitly created only for scalar outputs
"""
PARALLEL = """\
RuntimeError: Caught RuntimeError in replica 0 on device 0.
Original Traceback (most recent call last):
  File "/home/a/proj/train.py", line 40, in main
    loss.backward()
RuntimeError: grad can be implicitly created only for scalar outputs
"""


def own(trace: Trace) -> tuple[str, int, str, str]:
    """The innermost frame of the project."""
    frame = [each for each in trace.frames if not each.foreign][-1]
    return frame.path, frame.line, frame.function, frame.code


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PLAIN, id="as Python prints it"),
        pytest.param(MARKED, id="with the stretch underlined"),
        pytest.param(prefixed("[rank0]: "), id="behind torchrun's rank"),
        pytest.param(INTERLEAVED, id="of two ranks in turns"),
        pytest.param(prefixed("> "), id="quoted in an issue"),
        pytest.param(prefixed("trainer-1  | "), id="behind a container's name"),
        pytest.param(numbered(), id="behind a logger's time and level"),
        pytest.param("  0%|          | 0/5 [00:06<?, ?it/s]" + PLAIN, id="on the line of a bar"),
        pytest.param("\r 10%|#\r 20%|##\r" + PLAIN, id="over a bar that was written over"),
        pytest.param(PLAIN.replace("loss", "\x1b[31mloss\x1b[0m"), id="in colours"),
        pytest.param(PLAIN.replace("\n", "\r\n"), id="with the line ends of Windows"),
        pytest.param(PLAIN.partition("\n")[2], id="without its first line"),
        pytest.param(PLAIN.replace('", line', '" ,line'), id="typed by hand"),
        pytest.param(PARALLEL, id="raised in a replica"),
        pytest.param("loading\n" + PLAIN + "wandb: done\n", id="among other output"),
    ],
)
def test_a_traceback_is_found(text: str) -> None:
    found = traces(lines(text))
    assert [own(each) for each in found] == [OWN]
    assert [each.said[: len(SAID)] for each in found] == [SAID]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param(IPYTHON, "~/proj/train.py", id="IPython's, before version 8"),
        pytest.param(IPYTHON_8, "~/proj/train.py", id="IPython's, from version 8 on"),
        pytest.param(RICH, "/home/a/proj/train.py", id="rich's, in a box"),
    ],
)
def test_a_traceback_that_points_among_lines_is_found(text: str, path: str) -> None:
    (trace,) = traces(lines(text))
    assert own(trace) == (path, 40, "main", "loss.backward()")
    assert trace.said == SAID


def test_what_pytest_quotes_before_the_place_is_its_code() -> None:
    (trace,) = traces(lines(PYTEST))
    assert own(trace) == ("train.py", 40, "", "loss.backward()")
    assert trace.said == SAID


def test_several_ranks_with_the_same_traceback_are_one() -> None:
    assert len(traces(lines(prefixed("[rank0]: ") + prefixed("[rank1]: ")))) == 1


def test_chained_exceptions_are_told_apart() -> None:
    second = PLAIN.replace(SAID, "ValueError: while cleaning up").replace("40", "44")
    chain = f"{PLAIN}\nDuring handling of the above exception, another exception occurred:\n\n{second}"
    assert [each.error for each in traces(lines(chain))] == ["RuntimeError", "ValueError"]


def test_the_second_traceback_of_anomaly_mode_belongs_to_the_failure() -> None:
    warned = """\
/opt/lib/python3.11/site-packages/torch/autograd/graph.py:824: UserWarning: Error detected in \
SigmoidBackward0. Traceback of forward call that caused the error:
  File "/home/a/proj/train.py", line 30, in main
    y = torch.sigmoid(x)
 (Triggered internally at /pytorch/torch/csrc/autograd/python_anomaly_mode.cpp:110.)
  return Variable._execution_engine.run_backward(
"""
    for text in (warned + PLAIN, PLAIN + warned):
        (trace,) = traces(lines(text))
        assert [(frame.line, frame.code) for frame in trace.forward] == [(30, "y = torch.sigmoid(x)")]
        assert (trace.operation, own(trace)) == ("SigmoidBackward0", OWN)


def test_a_traceback_that_is_cut_off_keeps_its_frames() -> None:
    (trace,) = traces(lines(PLAIN.rpartition("RuntimeError")[0]))
    assert (own(trace), trace.said) == (OWN, "")


@pytest.mark.parametrize(
    ("path", "foreign"),
    [
        pytest.param(r"C:\Users\a\anaconda3\envs\t\lib\site-packages\torch\_tensor.py", True, id="a library"),
        pytest.param(r"D:\work\proj\models\net.py", False, id="a project on Windows"),
        pytest.param("/usr/lib/python3.11/runpy.py", True, id="Python itself"),
        pytest.param("<frozen runpy>", True, id="a frozen module"),
        pytest.param("<ipython-input-3-abc>", False, id="a cell"),
        pytest.param("/home/a/libs/models/net.py", False, id="a folder that sounds like one"),
    ],
)
def test_whose_a_file_is_shows_in_its_path(path: str, foreign: bool) -> None:
    text = f'  File "{path}", line 3, in f\n    x = 1\nRuntimeError: x\n'
    (trace,) = traces(lines(text))
    assert trace.frames[0].foreign is foreign


def test_a_text_without_a_traceback_has_none() -> None:
    assert traces(lines("epoch 1: loss 0.3\nsaved\n")) == []
