"""A file is either what it was or the complete new text, whatever happens."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradfix.files import read, write
from gradfix.source import Failure

WRITER = """
import sys
from pathlib import Path
from gradfix.files import write
for file in sorted(Path(sys.argv[1]).glob("*.py")):
    before = file.read_bytes()
    assert write(str(file), before, before.replace(b"old", b"new")) is None
    print(file.name, flush=True)
"""


def test_the_new_text_takes_the_place_of_the_old_with_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"old\r\n")
    file.chmod(0o751)
    assert write(str(file), b"old\r\n", b"new\r\n") is None
    assert file.read_bytes() == b"new\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert os.listdir(tmp_path) == ["x.py"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "real" / "x.py", tmp_path / "link.py"
    file.parent.mkdir()
    file.write_bytes(b"old")
    link.symlink_to(file)
    assert write(str(link), b"old", b"new") is None
    assert link.is_symlink() and file.read_bytes() == b"new"


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"edited meanwhile")
    failure = write(str(file), b"old", b"new")
    assert failure == Failure("write", "changed on disk since it was read; left as it is")
    assert file.read_bytes() == b"edited meanwhile"
    assert os.listdir(tmp_path) == ["x.py"]


def test_a_file_that_vanished_is_named(tmp_path: Path) -> None:
    assert write(str(tmp_path / "x.py"), b"old", b"new") == Failure("write", "no such file or directory")


def test_a_failing_rename_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "x.py"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", refuse)
    assert write(str(file), b"old", b"new") == Failure("write", "no space left on device")
    assert (os.listdir(tmp_path), file.read_bytes()) == (["x.py"], b"old")


def test_a_file_that_may_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert write(str(file), b"old", b"new") == Failure("write", "not writable")
    assert file.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("nothing.py", "no such file or directory", id="no file"),
        pytest.param("folder.py", "is a directory", id="a directory"),
        pytest.param("device", "not a regular file", id="a device"),
        pytest.param("pipe.py", "not a regular file", id="a pipe that nobody writes to"),
        pytest.param("loop.py", "too many levels of symbolic links", id="a link to itself"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "device").symlink_to(os.devnull)
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert read(str(tmp_path / name)) == Failure("read", reason)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_killed_among_2000_files_each_is_old_or_new(tmp_path: Path) -> None:
    old = b"old line of a file\n" * 200
    for number in range(2000):
        (tmp_path / f"{number:04}.py").write_bytes(old)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout as said:
        for _ in range(20):
            said.readline()
        time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
        said.read()
    writer.wait()
    texts = [file.read_bytes() for file in sorted(tmp_path.glob("*.py"))]
    done = texts.count(old.replace(b"old", b"new"))
    assert len(texts) == 2000
    assert 20 <= done < 2000
    assert texts.count(old) == 2000 - done
