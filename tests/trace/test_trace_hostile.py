"""Programs that go for the machine: nothing on it changes and nobody else is reached."""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradfix.trace import landlock
from gradfix.trace.report import Recording
from gradfix.verify.launch import Command, Job, Launcher, Limits

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what other systems hold is in README"),
]

HEAD = """import ctypes, os, shutil, socket, struct, subprocess, tempfile
import torch
libc = ctypes.CDLL(None)
net = torch.jit.script(torch.nn.Linear(2, 2))
def temporary():
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("x")
    return file.name
"""
FILES = {
    "open": "open('held.bin', 'w').write('x')",
    "open to append": "open('held.bin', 'a').write('x')",
    "os.open": "os.write(os.open('held.bin', os.O_RDWR), b'x')",
    "os.truncate": "os.truncate('held.bin', 0)",
    "os.remove": "os.remove('held.bin')",
    "os.rename": "os.rename('held.bin', 'gone.bin')",
    "os.rename from a folder for what is temporary": "os.replace(temporary(), 'held.bin')",
    "shutil.move": "shutil.move(temporary(), 'held.bin')",
    "shutil.rmtree": "shutil.rmtree('folder')",
    "os.link": "os.link('held.bin', 'second.bin')",
    "os.symlink": "os.symlink('held.bin', 'second.bin')",
    "os.mkdir": "os.mkdir('made')",
    "os.mkfifo": "os.mkfifo('fifo')",
    "os.mknod": "os.mknod('node')",
    "os.chmod": "os.chmod('held.bin', 0o777)",
    "os.chmod of an open file": "os.chmod(os.open('held.bin', os.O_RDONLY), 0o777)",
    "os.utime": "os.utime('held.bin', (1, 1))",
    "os.setxattr": "os.setxattr('held.bin', 'user.mark', b'x')",
    "a socket with a name": "socket.socket(socket.AF_UNIX).bind('made.socket')",
    "sqlite3": "import sqlite3\nsqlite3.connect('made.db').execute('create table t (a)')",
    "torch.save": "torch.save(net.state_dict(), 'held.bin')",
    "ScriptModule.save": "net.save('held.bin')",
    "ScriptModule.save of C++": "net._c.save('held.bin', {})",
    "torch.jit.save": "torch.jit.save(net, 'held.bin')",
    "PyTorchFileWriter": "torch._C.PyTorchFileWriter('held.bin').write_end_of_file()",
    "a shared tensor": "torch.from_file('held.bin', shared=True, size=3).fill_(7)",
    "a shared storage": "torch.UntypedStorage.from_file('held.bin', True, 12).fill_(7)",
    "a shared storage with a type": "torch.FloatStorage.from_file('held.bin', True, 3).fill_(7)",
    "numpy.memmap": "import numpy\nnumpy.memmap('held.bin', mode='r+')[:] = 7",
    "mmap": "import mmap\nmmap.mmap(os.open('held.bin', os.O_RDWR), 12)[:] = b'x' * 12",
    "open in C": "libc.open(b'held.bin', os.O_TRUNC | os.O_WRONLY)",
    "unlink in C": "libc.unlink(b'held.bin')",
    "setxattr in C": "libc.setxattr(b'held.bin', b'user.mark', b'x', 1, 0)",
    "chmod in C": "libc.chmod(b'held.bin', 0o777)",
    "a system call by number": "libc.syscall(87, b'held.bin')",
    "a process in C": "libc.system(b'rm held.bin')",
    "another process": "subprocess.run(['sh', '-c', 'echo x > made; rm held.bin; chmod 777 program.py'])",
    "os.system": "os.system('rm held.bin')",
    "a child that was forked": (
        "if os.fork() == 0:\n    open('held.bin', 'w').write('x')\n    os._exit(0)\nos.wait()"
    ),
    "a thread": (
        "import threading\none = threading.Thread(target=os.remove, args=('held.bin',))\n"
        "one.start()\none.join()"
    ),
    "the home folder": "open(os.path.expanduser('~/.gradfix-was-here'), 'w').write('x')",
    "/tmp": "open('/tmp/gradfix-was-here', 'w').write('x')",
    "/usr": "open('/usr/gradfix-was-here', 'w').write('x')",
    "/dev": "os.mknod('/dev/gradfix-was-here')",
    "/run": "os.mkdir('/run/gradfix-was-here')",
    "a cgroup": "os.mkdir('/sys/fs/cgroup/gradfix-was-here')",
    "a setting of the kernel": "os.write(os.open('/proc/sys/vm/stat_interval', os.O_WRONLY), b'7')",
    "a setting of the kernel in C": (
        "fd = libc.open(b'/proc/sys/vm/stat_interval', os.O_WRONLY)\nlibc.write(fd, b'7', 1)"
    ),
}  # fmt: skip
REACHES = {
    "an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0{name}')",
    "an abstract socket for messages": (
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '\\0{name}-messages')"
    ),
    "a socket with a path": "socket.socket(socket.AF_UNIX).connect('{path}')",
    "a socket with a path for messages": (
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '{path}-messages')"
    ),
    "UDP": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('{host}', {port}))",
    "UDP in C": (
        "one = socket.socket(type=socket.SOCK_DGRAM)\n"
        "to = struct.pack('=H', 2) + struct.pack('>H', {port}) + socket.inet_aton('{host}') + bytes(8)\n"
        "libc.sendto(one.fileno(), b'x', 1, 0, to, 16)"
    ),
    "TCP": "socket.create_connection(('{host}', {port}), 1)",
    "TCP in C": (
        "one = socket.socket()\n"
        "to = struct.pack('=H', 2) + struct.pack('>H', {port}) + socket.inet_aton('{host}') + bytes(8)\n"
        "libc.connect(one.fileno(), to, 16)"
    ),
}
ONLY_THE_KERNEL = {
    "an abstract socket", "an abstract socket for messages", "a socket with a path",
    "a socket with a path for messages", "a socket with a name",
}  # fmt: skip
"""What passes where writes are held back call by call: the processes of a program need such sockets."""
LIMITS = {
    "in a namespace": Limits(seconds=20),
    "with Landlock": Limits(seconds=20, namespaces=False),
    "call by call": Limits(seconds=20, namespaces=False, landlock=False),
}
MARKS = [Path(folder, "gradfix-was-here") for folder in ("/tmp", "/usr", "/dev", "/run", "/sys/fs/cgroup")]
SETTING = Path("/proc/sys/vm/stat_interval")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def cases(programs: dict[str, str]) -> list[object]:
    """Each program under each protection that is to hold it."""
    return [
        pytest.param(body, limits, id=f"{name}, {how}")
        for name, body in programs.items()
        for how, limits in LIMITS.items()
        if not (name in ONLY_THE_KERNEL and how == "call by call")
    ]


def run(launcher: Launcher, folder: Path, body: str, limits: Limits) -> Recording:
    if limits.landlock and not limits.namespaces and landlock.version() < landlock.SCOPED:
        pytest.skip("this kernel has no Landlock that keeps sockets apart")
    path = folder / "program.py"
    path.write_text(HEAD + body + "\n")
    (folder / "held.bin").write_bytes(b"twelve bytes")
    (folder / "folder").mkdir()
    (folder / "folder" / "inner").write_text("kept")
    before = state(folder)
    recording = launcher.run(Job(Command("script", str(path)), str(folder), limits=limits))
    assert state(folder) == before, recording["stderr"]
    assert recording["how"] in ("finished", "error"), recording
    return recording


def state(folder: Path) -> object:
    """All that can be said of the folder, of the marks elsewhere and of a setting of the kernel."""
    files = [(str(path), *of(path)) for path in sorted(folder.rglob("*"))]
    home = Path("~/.gradfix-was-here").expanduser()
    return files, [mark.exists() for mark in (*MARKS, home)], SETTING.read_text()


def of(path: Path) -> tuple[object, ...]:
    held = path.lstat()
    data = path.read_bytes() if path.is_file() else b""
    return held.st_mode, held.st_nlink, held.st_mtime_ns, held.st_uid, data, os.listxattr(path)


@pytest.mark.parametrize(("body", "limits"), cases(FILES))
def test_nothing_on_the_machine_is_changed_by(
    body: str, limits: Limits, launcher: Launcher, tmp_path: Path
) -> None:
    run(launcher, tmp_path, body, limits)


@pytest.mark.parametrize(("body", "limits"), cases(REACHES))
def test_nobody_outside_is_reached_by(body: str, limits: Limits, launcher: Launcher, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        names = {"name": f"gradfix-test-{os.getpid()}", "path": str(tmp_path / "s"), "host": own_address()}
        listeners = [stack.enter_context(one) for one in listening(names)]
        text = body.format(**names, port=listeners[-1].getsockname()[1])
        recording = run(launcher, tmp_path, text, limits)
        assert not select.select(listeners, [], [], 0.1)[0], recording["stdout"]


def own_address() -> str:
    """Of this machine, as others reach it; a program may speak to itself by 127.0.0.1."""
    with socket.socket(type=socket.SOCK_DGRAM) as one, contextlib.suppress(OSError):
        one.connect(("192.0.2.1", 9))
        if not one.getsockname()[0].startswith("127."):
            return str(one.getsockname()[0])
    pytest.skip("this machine has no address but its own")


def listening(names: dict[str, str]) -> Iterator[socket.socket]:
    """All who might be reached; the last two share their port."""
    for address in ("\0" + names["name"], names["path"]):
        yield bound(socket.socket(socket.AF_UNIX), address)
        yield bound(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), address + "-messages")
    stream = bound(socket.socket(), (names["host"], 0))
    yield stream
    yield bound(socket.socket(type=socket.SOCK_DGRAM), stream.getsockname())


def bound(one: socket.socket, address: object) -> socket.socket:
    one.bind(address)  # type: ignore[arg-type]
    if one.type == socket.SOCK_STREAM:
        one.listen()
    return one


GARBAGE = {
    "lines": "b'garbage\\n'",
    "a line without an end": "b'garbage'",
    "an event": """b'{"event": "end", "how": "finished", "error": 5}\\n'""",
    "brackets": "b'[' * 30_000 + b'\\n'",
    "no text": "bytes(range(256)) * 100",
    "much": "b'x' * 3_000_000 + b'\\n'",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=list(GARBAGE))
def test_what_a_program_writes_into_every_open_file_is_a_verdict(
    garbage: str, launcher: Launcher, tmp_path: Path
) -> None:
    body = (
        "for fd in range(3, 300):\n    try:\n        os.set_blocking(fd, False)\n"
        f"        os.write(fd, {garbage})\n    except OSError: pass\n"
    )
    (tmp_path / "program.py").write_text(HEAD + body)
    recording = launcher.run(Job(Command("script", "program.py"), str(tmp_path)))
    assert recording["how"] in ("garbled", "killed")


@pytest.mark.parametrize(("how", "limits"), LIMITS.items(), ids=list(LIMITS))
def test_a_program_can_not_end_the_process_that_watches_it(
    how: str, limits: Limits, launcher: Launcher, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text("import os\nos.kill(os.getppid(), 9)\n")
    recording = launcher.run(Job(Command("script", "program.py"), str(tmp_path), limits=limits))
    assert recording["how"] == "error"
    assert recording["error"] is not None and recording["error"]["type"] == "PermissionError"


def test_a_program_that_ends_the_process_that_watches_it_ends_with_its_children(tmp_path: Path) -> None:
    body = (
        "import os, subprocess, sys, time\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n"
        "os.kill(os.getppid(), 9)\ntime.sleep(600)\n"
    )
    (tmp_path / "program.py").write_text(body)
    with Launcher() as launcher:
        limits = Limits(seconds=20, landlock=False)
        assert launcher.started()
        assert launcher.server is not None
        mark = launcher.server.mark
        recording = launcher.run(Job(Command("script", "program.py"), str(tmp_path), limits=limits))
    if recording["notes"]:
        pytest.skip("without a namespace the recorder itself refuses it")
    assert recording["how"] == "broken"
    from gradfix.trace.processes import left_by

    assert not left_by(f"GRADFIX_RUN={mark}")


NOBODY = 65534


def test_the_same_as_a_user_without_any_rights() -> None:
    if os.getuid():
        pytest.skip("only root can become another user, and all other tests have run as a user")
    user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    environment = {**os.environ, "HOME": pwd.getpwuid(NOBODY).pw_dir, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)

        def python(*words: str) -> Any:
            said: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
            return subprocess.run([sys.executable, *words], cwd=folder, env=environment, **said, **user)

        try:
            reached = python("-c", "import torch, gradfix, pytest").returncode == 0
        except PermissionError:
            reached = False
        if not reached:
            pytest.skip("that user can't reach this interpreter")
        words = ["-m", "pytest", "-q", "-m", "torch", "-c", os.devnull, f"--basetemp={folder}/tests"]
        done = python(*words, "-p", "no:xdist", "-p", "no:cacheprovider", "--rootdir", folder, __file__)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
