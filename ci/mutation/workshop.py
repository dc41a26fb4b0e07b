"""The build that ci/mutate changes one object of.

A mutant is compiled beside the tree, with the command that ninja has for its source, and its object
replaces the original in the build's folder; ninja links what depends on it. The sources stay as
they are. A copy of the original object is kept until it is back, so that an interrupted run is
undone by the next.
"""

import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import threading


class MutateError(Exception):
    """An error, as the sentence that the user sees."""


QUIET_NINJA = str(pathlib.Path(__file__).resolve().parents[1] / "quiet_ninja")


@dataclasses.dataclass(frozen=True)
class Sanitizer:
    """A build of the same tests whose sanitizer may notice what no test asks for."""
    name: str
    folder: str
    programs: list[str]
    environment: dict[str, str]  # {temporary}: a folder whose files found* are what it reports
    ignored: str = ""  # a pattern of lines in these files that report nothing
    criterion: bool = True  # else the programs are run whole


@dataclasses.dataclass(frozen=True)
class Tree:
    root: pathlib.Path
    sources: list[str]  # what may be mutated
    programs: list[str]  # Criterion's
    folder: str = "build/mutate"
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    patience_s: float = 10.0  # until tests that do not end count as failed, and more for slow ones
    sanitizers: tuple[Sanitizer, ...] = ()  # asked about what survives


@dataclasses.dataclass(frozen=True)
class Outcome:
    verdict: str  # passed, failed, timeout
    what: str  # the test that failed
    seconds: float


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def say(text: str) -> None:
    print(text, flush=True)


def ninja(tree: Tree, targets: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([QUIET_NINJA, *targets], cwd=tree.root, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def build(tree: Tree, folder: str, programs: list[str] | None = None) -> None:
    """All test programs in a folder, or these, as they are without a mutant."""
    try:
        done = ninja(tree, [f"{folder}/{program}" for program in programs or tree.programs])
    except FileNotFoundError as error:
        raise MutateError("there is no ninja; ci/setup installs it") from error
    if done.returncode == 0:
        return
    lines = done.stdout.strip().split("\n")
    missing = re.search(r".*(criterion/.*: No such file|cannot find .*criterion).*", done.stdout)
    if missing:
        raise MutateError("Criterion is missing, and without tests no mutant dies; ci/setup check "
                          f"installs it: {missing[0]}")
    raise MutateError("\n".join([f"the tree does not build in {folder}, even without a mutant:",
                                 *lines[-20:]]))


class Workshop:
    """Compiles mutants and puts them into the build's folder, and the originals back."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.folder = tree.root / tree.folder
        self.work = self.folder / "mutant"
        self.work.mkdir(parents=True, exist_ok=True)
        self.lock = (self.work / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.lock.close()
            raise MutateError(f"another ci/mutate is at work in {tree.folder}") from error
        self.journal, self.kept = self.work / "installed.json", self.work / "kept.o"
        self.parts: dict[str, list[str]] = {}  # of each object: what it is linked into
        self.output = self.installed = ""  # the object that is a mutant's, and its digest
        self.restore()
        self.commands: dict[str, tuple[str, str]] = {}  # of each source: command and object
        self.originals: dict[str, bytes] = {}

    def close(self) -> None:
        self.lock.close()

    def read_commands(self) -> None:
        listed = subprocess.run(["ninja", "-t", "compdb"], cwd=self.tree.root, text=True,
                                stdout=subprocess.PIPE, check=True).stdout
        self.commands = {entry["file"]: (entry["command"], entry["output"])
                         for entry in json.loads(listed)
                         if entry["output"].startswith(f"{self.tree.folder}/")
                         and entry["output"].endswith(".o")}

    def compile(self, file: str, text: str) -> bytes | None:
        """The object of a file with another text; None where the compiler refuses it. The line
        directive makes __FILE__ and __LINE__ those of the file."""
        if file not in self.commands:
            raise MutateError(f"{file} is in no program of {self.tree.folder}")
        command, output = self.commands[file]
        at = self.work / f"compiler-{threading.get_ident()}"
        at.mkdir(exist_ok=True)
        source, made = at / pathlib.Path(file).name, at / "object.o"
        source.write_text(f'#line 1 "{file}"\n{text}')
        words = shlex.split(command)
        words[words.index(file)] = str(source)
        for index, word in enumerate(words):
            words[index] = str(made) if word == output else (
                f"{made}.d" if word == f"{output}.d" else word)
        folder = str(pathlib.Path(file).parent)
        done = subprocess.run([*words, "-w", "-iquote", folder], cwd=self.tree.root, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return made.read_bytes() if done.returncode == 0 else None

    def has(self, file: str) -> bool:
        """Whether the programs that were built have the file: --programs leaves some out."""
        return file not in self.commands or (self.tree.root / self.commands[file][1]).exists()

    def original(self, file: str) -> bytes:
        """The object of a file as it is, compiled in the same way, to be compared with."""
        if file not in self.originals:
            data = self.compile(file, (self.tree.root / file).read_text())
            if data is None:
                raise MutateError(f"{file} does not compile, even without a mutant")
            self.originals[file] = data
        return self.originals[file]

    def install(self, file: str, data: bytes) -> None:
        output = self.commands[file][1]
        place = self.tree.root / output
        self.kept.write_bytes(place.read_bytes())
        entry = {"object": output, "mtime_ns": place.stat().st_mtime_ns}
        self.journal.write_text(json.dumps(entry))
        self._replace(data, output, entry["mtime_ns"])
        self.output, self.installed = output, digest(data)

    def restore(self) -> None:
        """Puts the original back, if a mutant is in its place."""
        if not self.journal.exists():
            return
        entry = json.loads(self.journal.read_text())
        self._replace(self.kept.read_bytes(), entry["object"], entry["mtime_ns"])
        self.journal.unlink()

    def _replace(self, data: bytes, output: str, mtime_ns: int) -> None:
        """ninja makes an object again whose time is not the one that it knows, so the time stays,
        and what was linked with the object is removed instead."""
        for made in self._made_with(output):
            (self.tree.root / made).unlink(missing_ok=True)
        (self.tree.root / output).write_bytes(data)
        os.utime(self.tree.root / output, ns=(mtime_ns, mtime_ns))

    def _made_with(self, output: str) -> list[str]:
        """Everything in the folder that an object ends up in."""
        if output not in self.parts:
            found: list[str] = []
            fresh = [output]
            while fresh:
                answer = subprocess.run(["ninja", "-t", "query", *fresh], cwd=self.tree.root,
                                        text=True, stdout=subprocess.PIPE, check=True).stdout
                after = re.findall(r"^    (\S+)$", re.sub(
                    r"^  input:.*\n(?:    .*\n)*", "", answer, flags=re.M), re.M)
                fresh = [name for name in dict.fromkeys(after)
                         if name.startswith(f"{self.tree.folder}/") and name not in found]
                found += fresh
            self.parts[output] = found
        return self.parts[output]

    def link(self, programs: list[str], mutated: bool = True) -> bool:
        """False where the linker refuses the mutant."""
        done = ninja(self.tree, [f"{self.tree.folder}/{program}" for program in programs])
        if mutated and digest((self.tree.root / self.output).read_bytes()) != self.installed:
            raise MutateError(f"ninja has made {self.output} again, so that no mutant is in it; "
                              "was a file edited while mutants were tried?")
        other = re.search(r"^FAILED: (\S+\.o) ", done.stdout, re.M)
        if other:
            raise MutateError(f"{other[1]} does not compile any more; was a file edited while "
                              "mutants were tried?")
        return done.returncode == 0
