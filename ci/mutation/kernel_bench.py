"""Compiles mutants of kernels, and links the programs that run kernels with one.

A mutant is compiled to PTX by nvcc, for its one target, from a copy of the kernels' folders, as
ci/ptx does it. Copies of the programs are linked with images of the mutant's PTX in front of the
library's own, so that the build stays as it is.
"""

import fcntl
import pathlib
import re
import shlex
import shutil
import subprocess

from mutation.kernel_parts import Kernels
from mutation.operators import Mutant
from mutation.workshop import MutateError, digest

TARGET = re.compile(r"^// Target: (compute_\d+a?)$", re.M)
VERSION = {"compute_75": "6.4", "compute_80": "7.0"}  # of the text, as in ci/ptx; else 8.0
ENTRY = re.compile(r"^\.(?:visible|weak) \.entry (\w+)\(", re.M)


def changed_entries(before: str, after: str) -> list[str]:
    """The entries of two texts of PTX that are not alike. All, if functions may have changed that
    they call, or if what differs is outside of them."""
    one, other = (dict(zip(["", *parts[1::2]], parts[::2])) for parts in (
        ENTRY.split(before), ENTRY.split(after)))
    if one == other:
        return []
    entries = [name for name in one if name]
    if one[""] != other[""] and ".func" in one[""] + other[""]:
        return entries
    return [name for name in entries if one[name] != other.get(name)] or entries


class Bench:
    def __init__(self, root: pathlib.Path, folder: pathlib.Path, kernels: Kernels,
                 nvcc: str) -> None:
        self.root, self.folder, self.kernels, self.nvcc = root, folder, kernels, nvcc
        self.copy = folder / "copy"
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MutateError(f"another ci/mutate is at work in {folder}") from error
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(root / "kernels", self.copy / "kernels",
                        ignore=shutil.ignore_patterns("*.c", "*.md"))
        device = folder / "libtollens-soft.so"
        device.unlink(missing_ok=True)
        device.symlink_to(root / "build/libtollens-soft.so")
        self.release = subprocess.run([nvcc, "--version"], stdout=subprocess.PIPE, text=True,
                                      check=True).stdout
        self.commands: dict[str, list[str]] = {}  # that link each program
        self.image = folder  # the latest

    def close(self) -> None:
        self.lock.close()

    def _compile(self, name: str) -> str | None:
        """A kernel's PTX, from the copy as it is; None where nvcc refuses it."""
        source = self.copy / self.kernels.source[name]
        target = TARGET.search(source.read_text(encoding="utf-8"))
        kind = target[1] if target else "compute_75"
        out = self.folder / f"{name}.ptx"
        done = subprocess.run([self.nvcc, "-ptx", f"-arch={kind}", "-o", str(out), str(source)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return None
        text = re.sub(r"^\.version [0-9.]+$", f".version {VERSION.get(kind, '8.0')}",
                      out.read_text(encoding="utf-8"), flags=re.M)
        return re.sub(r'^\t\.pragma "used_bytes_mask .*\n', "", text, flags=re.M)

    def original(self, name: str) -> str:
        """A kernel's PTX without a mutant, compiled in the same place, once for these sources."""
        stamp = digest(f"{self.release}{self.kernels.stamp(name)}".encode())
        kept = self.folder / "originals" / f"{name}-{stamp}.ptx"
        if not kept.exists():
            text = self._compile(name)
            if text is None:
                raise MutateError(f"{name} does not compile without a mutant")
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.rename(kept)
        return kept.read_text(encoding="utf-8")

    def size(self, name: str) -> int:
        """How long it is likely to take to compile: what the committed PTX has."""
        kept = self.root / "fixtures/ptx/kernels" / f"{name}.ptx"
        return kept.stat().st_size if kept.exists() else 0

    def mutant(self, name: str, mutant: Mutant) -> str | None:
        """The PTX of a kernel with a mutant; None where nvcc refuses it."""
        text = (self.root / mutant.file).read_text(encoding="utf-8")
        changed = self.copy / mutant.file
        changed.write_text(mutant.apply(text), encoding="utf-8")
        try:
            return self._compile(name)
        finally:
            changed.write_text(text, encoding="utf-8")

    def pack(self, name: str, ptx: str) -> None:
        """Makes an image of a kernel, which takes its name from the file, for link."""
        text, source, self.image = (self.folder / f"{name}{end}" for end in (".S", ".ptx", ".o"))
        source.write_text(ptx, encoding="utf-8")
        subprocess.run(["ci/kernel_image.py", str(text), self.kernels.source[name], str(source)],
                       cwd=self.root, check=True)
        subprocess.run(["cc", "-c", str(text), "-o", str(self.image)], check=True)

    def link(self, program: str) -> None:
        """A copy of a program, with the latest image."""
        if program not in self.commands:
            listed = subprocess.run(["ninja", "-t", "commands", "-s", f"build/{program}"],
                                    text=True, cwd=self.root, stdout=subprocess.PIPE, check=True)
            self.commands[program] = shlex.split(listed.stdout.strip().split("\n")[-1])
        words = list(self.commands[program])
        words[words.index(f"build/{program}")] = str(self.folder / program)
        at = words.index("build/libtollens-kernels.a")
        subprocess.run([*words[:at], str(self.image), *words[at:]], cwd=self.root,
                       check=True)
