"""The build in which every mutant of a sample is at once, each behind its number (schemata.py).

The objects of the files that have mutants are replaced in the build's folder, and everything is
linked once. What is in the place of ninja's objects is written down, so that it is undone where the
next run wants another sample.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess

from mutation.operators import Mutant
from mutation.schemata import SEEN_BYTES, schema
from mutation.workshop import MutateError, Workshop, build, digest

ALONE = "no switch can stand around it"


class Switches:
    def __init__(self, workshop: Workshop, jobs: int = 1) -> None:
        self.workshop, self.tree, self.jobs = workshop, workshop.tree, jobs
        self.objects = workshop.work / "objects"
        self.objects.mkdir(exist_ok=True)
        self.journal = workshop.work / "switched.json"
        self.ledger = workshop.work / "numbers.json"
        self.numbers: dict[str, int] = _read(self.ledger)  # of each mutant of a file's text
        self.refused: dict[str, str] = {}  # why a mutant is in no program, by its key

    def number(self, mutant: Mutant, text: str) -> int:
        """From 1. Another one where the file has changed."""
        name = f"{mutant.key}\t{digest(text.encode())}"
        if name not in self.numbers:
            self.numbers[name] = max(self.numbers.values(), default=0) + 1
            if self.numbers[name] >= SEEN_BYTES:
                raise MutateError(f"all numbers are given away; remove {self.workshop.work}")
        return self.numbers[name]

    def prepare(self, mutants: list[Mutant], texts: dict[str, str]) -> None:
        """Compiles and links them all."""
        files: dict[str, dict[int, Mutant]] = {}
        for mutant in mutants:
            if self.workshop.has(mutant.file):
                number = self.number(mutant, texts[mutant.file])
                files.setdefault(mutant.file, {})[number] = mutant
            else:
                self.refused[mutant.key] = "no program that was asked for has it"
        _write(self.ledger, self.numbers)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            made = list(pool.map(lambda file: self._compile(file, texts[file], files[file]), files))
        self._install({self.workshop.commands[file][1]: data
                       for file, data in zip(files, made) if data is not None})
        build(self.tree, self.tree.folder)

    def _compile(self, file: str, text: str, mutants: dict[int, Mutant]) -> bytes | None:
        """The object with those that compile; None without any."""
        while mutants:
            whole = schema(file, text, mutants)
            command = self.workshop.commands[file][0]
            kept = self.objects / f"{digest((command + whole).encode())}.o"
            if not kept.exists():
                made = self.workshop.compile(file, whole)
                if made is None:
                    mutants = self._without_refused(file, text, mutants)
                    continue
                kept.write_bytes(made)
            return kept.read_bytes()
        return None

    def _without_refused(self, file: str, text: str,
                         mutants: dict[int, Mutant]) -> dict[int, Mutant]:
        good = {number: mutant for number, mutant in mutants.items()
                if self.workshop.compile(file, schema(file, text, {number: mutant})) is not None}
        if len(good) == len(mutants):  # each alone, but not together
            first = min(good)
            good = {first: good[first]}
        for number, mutant in mutants.items():
            if number not in good:
                alone = self.workshop.compile(file, mutant.apply(text)) is not None
                self.refused[mutant.key] = ALONE if alone else "the compiler"
        return good

    def _install(self, wanted: dict[str, bytes]) -> None:
        """Puts these objects into the build's folder, and the original where none is wanted."""
        entries: dict[str, dict[str, object]] = _read(self.journal)
        changed = False
        for output in sorted({*entries, *wanted}):
            place, kept = self.tree.root / output, self.objects / output.replace("/", "+")
            there = place.read_bytes() if place.exists() else b""
            entry = entries.get(output)
            if entry is None or digest(there) not in entry["digests"]:  # ninja made it again
                if output not in wanted:
                    entries.pop(output)
                    continue
                kept.write_bytes(there)
                entry = {"mtime_ns": place.stat().st_mtime_ns, "digests": []}
            data = wanted.get(output)
            if data is not None and entry["digests"] == [digest(data)]:
                continue
            new = [digest(data)] if data is not None else []
            entries[output] = {**entry, "digests": [digest(there), *new]}
            _write(self.journal, entries)
            place.write_bytes(kept.read_bytes() if data is None else data)
            mtime_ns = int(str(entry["mtime_ns"]))
            os.utime(place, ns=(mtime_ns, mtime_ns))  # ninja takes it for its own
            entries[output] = {**entry, "digests": new}
            if data is None:
                entries.pop(output)
            changed = True
        _write(self.journal, entries)
        if changed:
            self._unlink_all()

    def _unlink_all(self) -> None:
        """So that ninja links again what may have such an object in it."""
        listed = subprocess.run(["ninja", "-t", "compdb"], cwd=self.tree.root, text=True,
                                stdout=subprocess.PIPE, check=True).stdout
        for entry in json.loads(listed):
            output = entry["output"]
            if output.startswith(f"{self.tree.folder}/") and not output.endswith(".o"):
                (self.tree.root / output).unlink(missing_ok=True)


def _read(path: pathlib.Path) -> dict:  # type: ignore[type-arg]
    return json.loads(path.read_text()) if path.exists() else {}


def _write(path: pathlib.Path, what: object) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(what))
    new.rename(path)
