"""Other files of the project are executed as far as their names are asked for, as if they were whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.neighbours import Neighbours
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

HEAD = "import torch\n"
TAIL = "y.sum().backward()\n"
MADE = "w = torch.ones(3, requires_grad=True)\ny = w.exp()\n"
ON = "def on():\n    return True\n"
USED = f"{MADE}if on():\n    y += 1\n{TAIL}"


def kinds(folder: Path, main: str, others: dict[str, str]) -> set[str]:
    """The kinds of defects of a file beside others, without suspects."""
    for name, text in others.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    source = parse(str(folder / "main.py"), (HEAD + main).encode())
    assert isinstance(source, Source)
    found = analyse(source, Neighbours()).defects
    return {defect.kind for defect in found if defect.certainty != "suspect"}


def test_a_name_is_found_through_two_imports_of_everything(tmp_path: Path) -> None:
    others = {"pkg/__init__.py": "from .ops import *\n", "pkg/ops.py": ON}
    found = kinds(tmp_path, f"from pkg import *\n{USED}", others)
    assert found == {"inplace_overwrites_saved"}


def test_files_that_were_imported_whole_leave_room_for_those_that_are_asked_for(tmp_path: Path) -> None:
    others = {f"pkg/m{i}.py": f"x{i} = torch.zeros({i})\n" for i in range(40)}
    others["pkg/__init__.py"] = "from .ops import on\n" + "".join(f"from .m{i} import *\n" for i in range(40))
    others["pkg/ops.py"] = ON
    found = kinds(tmp_path, f"from pkg import *\n{USED}", others)
    assert found == {"inplace_overwrites_saved"}


@pytest.mark.parametrize(
    ("other", "test", "expected"),
    [
        pytest.param(
            "flag = True\nchosen = flag\nflag = False\n", "chosen", True, id="as it was where it was read"
        ),
        pytest.param("flag = True\nflag = False\n", "flag", False, id="as it was bound last"),
        pytest.param(
            "def get():\n    return flag\nflag = True\n", "get()", True, id="by what stands below a function"
        ),
        pytest.param("held = {}\nheld['on'] = True\n", "held['on']", True, id="as it was put into a dict"),
        pytest.param(
            "held = []\nif True:\n    held.append(1)\n",
            "not held",
            False,
            id="after a call under a condition",
        ),
        pytest.param(
            "try:\n    import nothing_like_it\n    on = True\nexcept ImportError:\n    on = True\n",
            "on",
            True,
            id="under a try",
        ),
        pytest.param(
            "from torch import *\nfrom inner import *\non = True\n", "on", True, id="after stars of its own"
        ),
    ],
)
def test_a_name_of_another_file_is_what_it_is_there(
    tmp_path: Path, other: str, test: str, expected: bool
) -> None:
    main = f"import other\nfrom other import *\n{MADE}if {test}:\n    y += 1\n{TAIL}"
    others = {"other.py": other, "inner.py": "on = False\n"}
    assert bool(kinds(tmp_path, main, others)) is expected


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        pytest.param(
            "from other import *\ndef on():\n    return False\n", set(), id="what comes after it wins"
        ),
        pytest.param(
            "def on():\n    return False\nfrom other import *\n",
            {"inplace_overwrites_saved"},
            id="it wins over what came before",
        ),
    ],
)
def test_an_import_of_everything_binds_where_it_stands(tmp_path: Path, main: str, expected: set[str]) -> None:
    assert kinds(tmp_path, main + USED, {"other.py": ON}) == expected


def test_a_leaf_under_another_name_of_its_file_is_given_away_with_a_function_that_reads_it(
    tmp_path: Path,
) -> None:
    other = "import torch\nnet = torch.nn.Linear(3, 1)\nalias = net\ndef clear():\n    alias.zero_grad()\n"
    main = (
        "import somewhere\nfrom other import net, clear\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for x in torch.ones(4, 3):\n    net(x).sum().backward()\n    opt.step()\n    somewhere.run(clear)\n"
    )
    assert kinds(tmp_path, main, {"other.py": other}) == set()


@pytest.mark.parametrize(
    ("filled", "expected"),
    [
        pytest.param(
            "def keep(f):\n    held.append(f)\n    return f\n@keep\n", set(), id="some that a decorator adds"
        ),
        pytest.param("", {"missing_zero_grad"}, id="none"),
    ],
)
def test_a_list_of_another_file_holds(tmp_path: Path, filled: str, expected: set[str]) -> None:
    other = f"held = []\n{filled}def clear(opt):\n    opt.zero_grad()\n"
    other += "def each(opt):\n    for one in held:\n        one(opt)\n"
    main = (
        "from other import each\nnet = torch.nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for x in torch.ones(4, 3):\n    each(opt)\n"
        "    net(x).sum().backward()\n    opt.step()\n"
    )
    assert kinds(tmp_path, main, {"other.py": other}) == expected
