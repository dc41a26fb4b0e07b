"""What every package of Tollens holds: the built files, without what debuggers read, and the
libraries that a machine may lack.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import target
from target import output

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
QUIET_NINJA = str(ROOT / "ci/quiet_ninja")
PACKAGES = BUILD / "packages"
# Beside the program, where it looks for them.
LIBRARIES = (*(f"libtollens-{n}.so" for n in ("soft", "audit", "torch")), "libnvml-stand-in.so",
             *(f"lib{name}.so.1{n}" for n in (2, 3)
               for name in ("cudart", "cublas", "cublasLt", "nvrtc", "nvJitLink")))
# Of every Linux that wheels are for (PEP 600's policies), or of the driver.
EVERYWHERE = re.compile(r"(lib(c|m|dl|pthread|rt|gcc_s|cuda)|ld-linux-.*)\.so\b")
FIXTURES = ("ptx/bad", "ptx/faults", "ptx/handwritten", "ptx/kernels", "ptx/sanitizer",
            "attention", "quant")
PLAIN = 0o644
PROGRAM = 0o755


class Unmade(Exception):
    """A package cannot be made: why."""


def attempt(*words: str | pathlib.Path, why: str, **more: Any) -> str:
    """What a command prints. Unmade: it failed, with why and the end of what it printed."""
    done = subprocess.run(list(map(str, words)), check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        raise Unmade(f"{why}:\n{done.stdout[-1500:]}")
    return done.stdout


def python_with(folder: pathlib.Path, *packages: str, base: str = sys.executable) -> pathlib.Path:
    """The interpreter of a virtual environment with these packages of PyPI, which is made once.
    Unmade: there is no network, or worse."""
    python, made, wanted = folder / "bin/python3", folder / "packages.txt", "\n".join(packages)
    if not (made.exists() and made.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        why = f"{packages[0]} could not be installed"
        attempt(base, "-m", "venv", folder, why=why)
        attempt(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                "--retries", "1", *packages, why=why)
        made.write_text(wanted)
    return python


def version() -> str:
    """The newest version in ci/CHANGELOG.md."""
    found = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "ci/CHANGELOG.md").read_text(), re.MULTILINE)
    if found is None:
        raise Unmade("ci/CHANGELOG.md names no version")
    return found.group(1)


def commit_time() -> int:
    """Seconds since 1970: $SOURCE_DATE_EPOCH, or when the commit was made."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or output("git", "-C", ROOT, "log", "-1", "--format=%ct").strip())


def compiler_of(source: pathlib.Path, compiler: str) -> str:
    """The same bytes wherever the source lies: compilers write paths into what they make, and the
    linker's build id depends on them."""
    cached = "ccache " if shutil.which("ccache") else ""
    return f"{cached}{compiler} -ffile-prefix-map={source}=."


def copy_tree(target: pathlib.Path, names: list[str]) -> None:
    """Files of this repository, those that changed, so that what was built of the others stays."""
    for name in names:
        source, copy = ROOT / name, target / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def tracked(folder: str) -> list[str]:
    """The files of a folder that git knows, or all of them in a copy without git."""
    if (ROOT / ".git").exists():
        listed = output("git", "-C", ROOT, "ls-files", "-zco", "--exclude-standard", folder)
        return sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*")
                  if path.is_file() and "__pycache__" not in path.parts)


def needed_libraries(program: pathlib.Path) -> list[pathlib.Path]:
    """Shared libraries that come along."""
    found = (line.split() for line in target.loaded(program).splitlines())
    return sorted(pathlib.Path(target.root() + words[2]) for words in found
                  if words[1:2] == ["=>"] and not EVERYWHERE.match(words[0]))


def stripped(source: pathlib.Path, copy: pathlib.Path) -> None:
    """Half of all bytes are for debuggers; names for traces of calls stay."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, copy)
    subprocess.run([target.tool("strip"), "--strip-debug", str(copy)], check=True)
    copy.chmod(PROGRAM)


def glibc_needed(path: pathlib.Path) -> tuple[int, int]:
    """The oldest glibc that has all symbols of a file: those of newer versions are not there."""
    found = re.findall(r"\bGLIBC_(\d+)\.(\d+)", output(target.tool("objdump"), "-T", path))
    return max(((int(major), int(minor)) for major, minor in found), default=(2, 2))
