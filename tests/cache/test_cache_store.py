"""The file of outcomes: beside other runs, killed, damaged, foreign, full, too large."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from gradfix.cache import store as stores
from gradfix.cache.place import NAME
from gradfix.cache.store import DAY, HOUR, TABLE, Row, Store

WRITER = """
import sys
from gradfix.cache.store import Store
folder, first, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = Store(folder)
for number in range(first, first + many):
    store.put((b"%d" % number, b"reading", b"found" * 200))
    print(number, flush=True)
store.close()
sys.exit(store.trouble or 0)
"""
LIMITED = "import resource, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n" + (
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + WRITER
)


def row(number: int, size: int = 10) -> Row:
    return b"%d" % number, b"reading", random.Random(number).randbytes(size)


def filled(folder: Path, many: int = 20, limit: int = stores.LIMIT, size: int = 10) -> None:
    store = Store(str(folder), limit)
    for number in range(many):
        store.put(row(number, size))
    store.close()
    assert store.trouble == ""


def held(folder: Path, many: int = 20, size: int = 10) -> int:
    """How many of those rows are there, each as it was put there."""
    store = Store(str(folder))
    found = [store.get(b"%d" % number) for number in range(many)]
    store.close()
    assert all(one is None or one == row(number, size) for number, one in enumerate(found))
    return sum(one is not None for one in found)


def writer(program: str, folder: Path, first: int, many: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", program, str(folder), str(first), str(many)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_what_is_put_there_is_there_in_the_next_run(tmp_path: Path) -> None:
    filled(tmp_path / "kept")
    assert held(tmp_path / "kept") == 20


def damage(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(chance.randint(1, 40)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    file.write_bytes(content)


def cut(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


@pytest.mark.parametrize("harm", [damage, cut])
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_gives_back_what_was_put_there_or_nothing_and_heals(
    harm: Callable[[Path, random.Random], None], seed: int, tmp_path: Path
) -> None:
    filled(tmp_path, 60, size=700)
    harm(tmp_path / NAME, random.Random(seed))
    held(tmp_path, 60, 700)
    for _ in range(2):  # the run that meets the damage may go on without
        store = Store(str(tmp_path))
        for number in range(60):
            store.put(row(number, 700))
        store.close()
    assert held(tmp_path, 60, 700) == 60


def text(file: Path) -> None:
    file.write_text("whatever " * 1000)


def folder(file: Path) -> None:
    (file / "inner").mkdir(parents=True)


def pipe(file: Path) -> None:
    os.mkfifo(file)


def other_tables(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE outcomes (key, reading, found, checksum, used)")
    connection.execute("CREATE TABLE precious (thing)")
    connection.close()


def endless(file: Path) -> None:
    """A view that never comes to an end."""
    connection = sqlite3.connect(file)
    turns = "WITH RECURSIVE turn(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM turn)"
    chosen = "SELECT n AS key, n AS reading, n AS found, n AS checksum, n AS used FROM turn"
    connection.execute(f"CREATE VIEW outcomes AS {turns} {chosen}")
    connection.close()


def trigger(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute(TABLE)
    connection.execute("CREATE TRIGGER more AFTER INSERT ON outcomes BEGIN DELETE FROM outcomes; END")
    connection.close()


@pytest.mark.parametrize("foreign", [text, other_tables, endless, trigger])
def test_a_file_that_is_something_else_is_replaced(foreign: Callable[[Path], None], tmp_path: Path) -> None:
    foreign(tmp_path / NAME)
    filled(tmp_path)
    assert held(tmp_path) == 20


@pytest.mark.parametrize("foreign", [folder, pipe])
def test_what_is_no_file_is_left_alone_and_gone_on_without(
    foreign: Callable[[Path], None], tmp_path: Path
) -> None:
    foreign(tmp_path / NAME)
    store = Store(str(tmp_path))
    store.put(row(1))
    assert store.get(b"1") is None
    store.close()
    assert store.trouble
    assert (tmp_path / NAME).exists()


@pytest.mark.parametrize("where", ["/proc/nowhere/kept", "/dev/null/kept"])
def test_a_folder_that_cannot_be_made_is_gone_on_without(where: str) -> None:
    store = Store(where)
    store.put(row(1))
    assert store.get(b"1") is None
    store.close()
    assert store.trouble


def test_a_file_that_cannot_be_written_is_read_nevertheless(tmp_path: Path) -> None:
    filled(tmp_path)
    store = Store(str(tmp_path))
    assert store._file is not None
    store._file.execute("PRAGMA query_only = ON")
    store.put(row(77))
    assert store.get(b"3") == row(3)
    store.close()
    assert "readonly" in store.trouble
    assert held(tmp_path) == 20


def test_a_full_disk_ends_its_use_and_leaves_it_whole(tmp_path: Path) -> None:
    filled(tmp_path)
    with writer(LIMITED, tmp_path, 100, 200) as run:
        said, trouble = run.communicate()
    assert len(said.split()) == 200
    assert trouble.strip()
    assert held(tmp_path) == 20


def test_runs_beside_each_other_lose_nothing(tmp_path: Path) -> None:
    with ExitStack() as stack:
        starts = (0, 100, 1000)
        runs = [stack.enter_context(writer(WRITER, tmp_path / "kept", first, 150)) for first in starts]
        said = [run.communicate() for run in runs]
    assert [(run.returncode, trouble) for run, (_, trouble) in zip(runs, said, strict=True)] == [(0, b"")] * 3
    store = Store(str(tmp_path / "kept"))
    there = [store.get(b"%d" % number) for number in (*range(250), *range(1000, 1150))]
    store.close()
    assert None not in there


def test_a_run_that_waits_in_vain_goes_on_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    monkeypatch.setattr(stores, "BUSY", 0.05)
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store = Store(str(tmp_path))
    assert store.get(b"1") is None
    store.put(row(1))
    store.close()
    assert "locked" in store.trouble
    other.execute("COMMIT")
    other.close()
    assert held(tmp_path) == 20


def test_a_killed_run_leaves_what_it_had_written(tmp_path: Path) -> None:
    for turn in range(3):
        with writer(WRITER, tmp_path, 0, 1_000_000) as run:
            assert run.stdout is not None
            for _ in range(300 + 37 * turn):
                run.stdout.readline()
            run.send_signal(signal.SIGKILL)
    store = Store(str(tmp_path))
    assert store.trouble == ""
    assert all(store.get(b"%d" % number) is not None for number in range(256))
    store.close()


def test_the_file_stays_within_its_limit_and_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, size = 300_000, 3_000
    filled(tmp_path, 60, limit, size)
    later = time.time() + 2 * DAY * HOUR
    monkeypatch.setattr(time, "time", lambda: later)
    store = Store(str(tmp_path), limit)
    for number in (3, 4):
        assert store.get(b"%d" % number) == row(number, size)
    for number in range(100, 160):
        store.put(row(number, size))
    store.close()
    assert (tmp_path / NAME).stat().st_size < limit + 64 * 2 * size
    store = Store(str(tmp_path))
    there = {n for n in range(160) if store.get(b"%d" % n) is not None}
    store.close()
    assert {3, 4, *range(130, 160)} <= there
    assert not {0, 1, 2} & there


def test_a_run_that_only_reads_writes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    before = (tmp_path / NAME).stat().st_mtime_ns
    assert held(tmp_path) == 20
    assert (tmp_path / NAME).stat().st_mtime_ns == before
