"""Mutants of CUDA sources, and the cases and tests that run them on the soft device.

nvcc compiles each kernel that has the edited file, the shortest first, from a copy of the kernels'
folders. If the PTX is the same in all of them, no test can tell the mutant from the original. Else
copies of kernel-sweep and test-kernels are linked with the PTX, and the cases and suites that run
the changed entries run until one notices.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator

import ptx_sources
from mutation.judge import Bench, Made
from mutation.operators import Mutant, cuda_edits
from mutation.running import SUITE, SWEEP, MutateError, Suites, build, digest, run, say, words

TESTS, DEVICE, TRIED = "test-kernels", "libtollens-soft.so", "build/mutate-kernels"
WATCHED = {"TOLLENS_SOFT_CHECK": "memory,init,sync,race,fatal",
           "TOLLENS_SOFT_REPORT": "{temporary}/report"}
ENTRY = re.compile(r"^\.(?:visible|weak) \.entry (\w+)\(", re.M)
IMAGE = re.compile(r"^IMAGE\((\w+), (\w+)\)", re.M)
CASE = re.compile(r"^case ([\d.]+) (\S+) (.*)$", re.M)
LEFT_OUT = re.compile(r"planted|defects|read_words")  # wrong on purpose; only measures
GROUP_S = 1800.0  # the limit of all cases of a group


def changed_entries(before: str, after: str) -> list[str]:
    """The entries that differ between two texts of PTX. All, if functions may have changed that
    they call, or if only what is outside of entries differs."""
    one, other = (dict(zip(["", *parts[1::2]], parts[::2])) for parts in (
        ENTRY.split(before), ENTRY.split(after)))
    if one == other:
        return []
    entries = [name for name in one if name]
    if one[""] != other[""] and ".func" in one[""] + other[""]:
        return entries
    return [name for name in entries if one[name] != other.get(name)] or entries


class CudaBench(Bench):
    record, tried, even = "kernels.toml", TRIED, True
    edits = staticmethod(cuda_edits)

    def __init__(self, root: pathlib.Path, environment: dict[str, str]) -> None:
        super().__init__(root, root / TRIED, {**environment, **WATCHED})
        listed = (root / "kernels/sweep/sweep_images.def").read_text(encoding="utf-8")
        # The group of kernel-sweep that runs a kernel, its source, and the files it is made of.
        self.group = {name: group for group, name in IMAGE.findall(listed)}
        self.source = {path.stem: str(path.relative_to(root))
                       for path in sorted((root / "kernels").rglob("*.cu"))
                       if not LEFT_OUT.search(path.stem)}
        self.parts = {name: [str(part.relative_to(root))
                             for part in ptx_sources.sources_of(root / file)]
                      for name, file in self.source.items()}
        self.commands: dict[str, list[str]] = {}  # that link each program

    def files(self) -> list[str]:
        return sorted({file for name, parts in self.parts.items()
                       if name in self.group or self.suites_of(name)[0]
                       for file in parts if file.endswith((".cu", ".cuh"))})

    def with_file(self, file: str) -> list[str]:
        return [name for name, parts in self.parts.items() if file in parts]

    def suites_of(self, name: str) -> tuple[list[str], list[str]]:
        """Those of the kernel's operation (of gemm_1_naive, in gemm_*_test.c; if there are none,
        all of the folder), and the others of its folder, which may run it too."""
        tests = list((self.root / self.source[name]).parent.glob("*_test.c"))
        own = [path for path in tests if path.name.startswith(f"{re.split(r'_[0-9]', name)[0]}_")]
        first, every = (sorted({suite for path in paths for suite in SUITE.findall(
            path.read_text(encoding="utf-8"))}) for paths in (own or tests, tests))
        return first, [suite for suite in every if suite not in first]

    def prepare(self) -> None:
        self.nvcc = os.environ.get("NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        if shutil.which(self.nvcc) is None:
            raise MutateError("--kernels needs nvcc; NVCC names it")
        needed = [f"build/{name}" for name in (SWEEP, TESTS, DEVICE)]
        build(self.root, needed)
        self.tests_stamp = digest(b"".join((self.root / file).read_bytes() for file in needed))
        self.suites = Suites(self.root, "build", self.folder / "suites.json", self.environment)
        self.release = subprocess.run([self.nvcc, "--version"], stdout=subprocess.PIPE, text=True,
                                      check=True).stdout
        self.copy = self.folder / "copy"
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.root / "kernels", self.copy / "kernels",
                        ignore=shutil.ignore_patterns("*.c", "*.md"))
        if not (self.folder / DEVICE).is_symlink():
            (self.folder / DEVICE).symlink_to(self.root / "build" / DEVICE)

    def make(self, mutant: Mutant) -> Iterator[Made]:
        for name in sorted(self.with_file(mutant.file), key=self._size):
            text = self.texts[mutant.file]
            changed = self.copy / mutant.file
            changed.write_text(mutant.apply(text), encoding="utf-8")
            ptx = self._compile(name)
            changed.write_text(text, encoding="utf-8")
            if ptx is None:
                yield Made(name, refused=f"nvcc, of {name}")
                return
            entries = changed_entries(self._original(name), ptx)
            yield Made(name, names=self.names(name, entries, self.pack(name, ptx))
                       if entries else None)

    # ---- compiling -------------------------------------------------------------------------------

    def _size(self, name: str) -> int:
        """The size of the committed PTX, in place of the time that compiling takes."""
        return max((path.stat().st_size for path in (
            self.root / "fixtures/ptx/kernels").glob(f"{name}.ptx*")), default=0)

    def _compile(self, name: str) -> str | None:
        """A kernel's PTX, from the copy as it is; None where nvcc refuses it."""
        made = ptx_sources.kernel(self.copy / self.source[name])
        out = self.folder / f"{name}.ptx"
        done = subprocess.run([self.nvcc, "-ptx", made.options, "-o", str(out), str(made.source)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return None
        text = re.sub(r"^\.version [0-9.]+$", f".version {made.version}",
                      out.read_text(encoding="utf-8"), flags=re.M)
        return re.sub(r'^\t\.pragma "used_bytes_mask .*\n', "", text, flags=re.M)

    def _original(self, name: str) -> str:
        """A kernel's PTX without a mutant, compiled in the same place, once for these sources."""
        parts = [(self.root / part).read_bytes() for part in self.parts[name]]
        stamp = digest(b"\0".join([self.release.encode(), *parts]))
        kept = self.folder / f"{name}-{stamp}.original"
        if not kept.exists():
            text = self._compile(name)
            if text is None:
                raise MutateError(f"{name} does not compile without a mutant")
            kept.write_text(text, encoding="utf-8")
        return kept.read_text(encoding="utf-8")

    def pack(self, name: str, ptx: str) -> pathlib.Path:
        """The object of a kernel's image, which takes its name from the file."""
        text, source, image = (self.folder / f"{name}{end}" for end in (".S", ".ptx.xz", ".o"))
        ptx_sources.keep(source, ptx.encode())
        subprocess.run(["ci/kernel_image.py", str(text), self.source[name], str(source)],
                       cwd=self.root, check=True)
        subprocess.run(["cc", "-c", str(text), "-o", str(image)], check=True)
        return image

    def link(self, program: str, image: pathlib.Path) -> None:
        """A copy of a program, with this image."""
        if program not in self.commands:
            listed = subprocess.run(["ninja", "-t", "commands", "-s", f"build/{program}"],
                                    text=True, cwd=self.root, stdout=subprocess.PIPE, check=True)
            self.commands[program] = shlex.split(listed.stdout.strip().split("\n")[-1])
        command = list(self.commands[program])
        command[command.index(f"build/{program}")] = str(self.folder / program)
        at = command.index("build/libtollens-kernels.a")
        subprocess.run([*command[:at], str(image), *command[at:]], cwd=self.root, check=True)

    # ---- what runs them --------------------------------------------------------------------------

    def names(self, name: str, entries: list[str], image: pathlib.Path) -> Iterator[str]:
        """The cases that launch one of these entries, the cheapest first, then the suites of the
        operation, then the others of the folder."""
        rows = self._cases(self.group[name]) if name in self.group else []
        cases = [row[0] for row in sorted(rows, key=lambda row: row[2]) if set(entries) & {*row[1]}]
        for program, some in ((SWEEP, cases), (TESTS, sum(self.suites_of(name), []))):
            if some:
                self.link(program, image)
            yield from (f"{program} {each}" for each in some)

    def _cases(self, group: str) -> list[tuple[str, list[str], float]]:
        """The cases of a group, the entries that each launches, and its CPU seconds. They stay in
        the folder while the programs are the same."""
        kept = self.folder / f"{group}-{self.tests_stamp}.cases"
        if not kept.exists():
            command = [*words(f"build/{SWEEP}", "")[:-2], "--group", group, "--cases"]
            found, output = run(self.root, command, self.environment, GROUP_S)
            if found.kind != "passed":
                say(f"  group {group} fails without a mutant: {found.what}")
            kept.write_text(output)
        return [(name, entries.split(","), float(seconds))
                for seconds, entries, name in CASE.findall(kept.read_text())]
