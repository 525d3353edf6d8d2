"""`python -m tests.torches 2.2.0 2.15.0`: the recorder's and the judge's tests under other versions of torch.

Each version gets an environment of its own in a folder outside of the repository, kept for the next time. On
Linux the registry's wheels are built for CUDA and want gigabytes of libraries that nothing here calls: where
they are missing, empty ones of the same names stand in, and torch finds no device.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("2.2.0", "2.4.1", "2.6.0", "2.8.0", "2.10.0", "2.12.1", "2.14.1", "2.15.0")
TESTS = ("trace/test_trace_recorder.py", "trace/test_trace_watch.py", "verify/test_verify_judge.py")
NEEDED = (
    "filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "setuptools>=77,<81",
    "click", "libcst", "pathspec", "rich", "unidiff", "tomli", "pytest", "pytest-xdist",
)  # fmt: skip
CUDA_LIBRARY = re.compile(r"lib(cu|nccl|nv)")
CUDA_SYMBOL = re.compile(r"(cu|nccl|nv)[A-Za-z]")
NO_DEVICE = 100


def main(words: list[str]) -> int:
    options = parsed(words)
    table = [(version, *tried(version, options)) for version in options.versions]
    for version, passed, summary, seconds in table:
        print(f"torch {version:<8} {'passed' if passed else 'FAILED'}  {summary}  ({seconds:.0f} s)")
    return int(not all(passed for _, passed, *_ in table))


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torches", description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "gradfix-torches"))
    parser.add_argument("--python", default=sys.executable, help="what the environments are made with")
    parser.add_argument("--tests", nargs="*", default=TESTS)
    parser.add_argument("-k", dest="only", default="")
    return parser.parse_args(words)


def tried(version: str, options: argparse.Namespace) -> tuple[bool, str, float]:
    """Whether the tests pass under a version, their last line, and how long it took."""
    begun = time.monotonic()
    try:
        python = environment(options.folder / version, version, options.python)
    except subprocess.CalledProcessError as error:
        return False, f"no environment: {str(error.stderr).strip()[-300:]}", time.monotonic() - begun
    words = [
        python,
        "-m",
        "pytest",
        "-q",
        "-m",
        "torch",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
        "-k",
        options.only,
    ]
    words += [f"tests/{name}" for name in options.tests]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-300:]]
    for line in lines:
        if line.startswith(("FAILED", "ERROR", "E  ")):
            print(f"{version}: {line}")
    return done.returncode == 0, lines[-1], time.monotonic() - begun


def environment(folder: Path, version: str, base: str) -> str:
    """The interpreter of an environment with one version of torch, made when it is not there."""
    python = folder / "bin" / "python"
    numpy = "numpy<2" if version.startswith("2.2.") else "numpy"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(base, "-m", "venv", folder)
        run(python, "-m", "pip", "install", "-q", "--no-deps", f"torch=={version}")
        run(python, "-m", "pip", "install", "-q", *NEEDED, numpy)
        run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", ROOT)
        if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode:
            stand_in(next(folder.glob("lib/python3*/site-packages/torch/lib")))
        run(python, "-c", "import torch; torch.ones(1)")
        (folder / "ready").touch()
    return str(python)


def run(*words: object) -> str:
    """What a command prints; if it fails, so does this."""
    said = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True, cwd=ROOT)
    return said.stdout


def stand_in(folder: Path) -> None:
    """Lay empty libraries beside torch's own for all those of CUDA that they are linked to."""
    libraries, symbols = wanted(folder)
    for name, versions in libraries.items():
        own = symbols[""].union(*(symbols[version] for version in versions))
        with tempfile.TemporaryDirectory() as room:
            source, script = Path(room, "empty.c"), Path(room, "empty.map")
            source.write_text("".join(f"long {one}(void) {{ return {NO_DEVICE}; }}\n" for one in sorted(own)))
            listed = ((version, "; ".join(sorted(symbols[version]))) for version in sorted(versions))
            script.write_text("".join(f"{version} {{ global: {names}; }};\n" for version, names in listed))
            flags = [f"-Wl,-soname,{name}", *([f"-Wl,--version-script,{script}"] if versions else [])]
            run("cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", folder / name, source, *flags)


def wanted(folder: Path) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The missing libraries with the versions asked of them, and the symbols asked for under each version."""
    libraries: dict[str, set[str]] = {}
    symbols: dict[str, set[str]] = defaultdict(set)
    for path in folder.glob("*.so*"):
        said = run("readelf", "-d", "-V", "-W", path)
        for name in re.findall(r"NEEDED.*\[(.+?)\]", said):
            if CUDA_LIBRARY.match(name) and not (folder / name).exists():
                libraries.setdefault(name, set())
        for name, versions in re.findall(r"File: (\S+)  Cnt.*\n((?:.*Name: .*\n?)*)", said):
            if name in libraries:
                libraries[name].update(re.findall(r"Name: (\S+)", versions))
        for line in run("nm", "-D", "--undefined-only", path).splitlines():
            name, _, version = line.split()[-1].partition("@")
            if version or CUDA_SYMBOL.match(name):
                symbols[version].add(name)
    return libraries, symbols


if __name__ == "__main__":
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    sys.exit(main(sys.argv[1:]))
