"""What the build is for: this machine's processor, or another's, by the compiler that configure.py
wrote into build/config.ninja.
"""

import functools
import pathlib
import platform
import subprocess

CONFIG = pathlib.Path(__file__).resolve().parent.parent.parent / "build/config.ninja"


def output(*words: str | pathlib.Path) -> str:
    return subprocess.run([str(word) for word in words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


@functools.cache
def setting(name: str) -> list[str]:
    """The words of a line of build/config.ninja; none where it has no such line."""
    for line in CONFIG.read_text().splitlines() if CONFIG.exists() else []:
        if line.startswith(f"{name} = "):
            return line.split(" = ", 1)[1].split()
    return []


def compiler() -> list[str]:
    return setting("cc") or ["gcc"]


def runner() -> list[str]:
    """What a program that was built is run with: nothing where it is for this processor."""
    return setting("runner")


@functools.cache
def triple() -> str:
    """As aarch64-linux-gnu."""
    return output(*compiler(), "-dumpmachine").strip()


def machine() -> str:
    """The processor, as platform.machine() calls it."""
    return triple().split("-")[0] if runner() else platform.machine()


def tool(name: str) -> str:
    """One of the binutils: that of the target's own, where it is not this machine's."""
    return f"{triple()}-{name}" if runner() else name


def root() -> str:
    """The folder here that is the root of the target; empty if it is this machine."""
    words = runner()
    return words[words.index("-L") + 1] if "-L" in words else ""


def run(program: pathlib.Path, *words: str) -> str:
    """Runs a program of the build. Returns what it printed."""
    return output(*runner(), program, *words)


def loaded(program: pathlib.Path) -> str:
    """What ldd says of a program, which another processor's loader has to be asked for."""
    if not runner():
        return output("ldd", program)
    return output(*runner(), "-E", "LD_TRACE_LOADED_OBJECTS=1", program)
