"""What ci/mutate knows of mutants: the committed file of survivors, in which a person argues that a
mutant is equivalent."""

import json
import pathlib
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib  # type: ignore[no-redef]

from mutation.operators import Mutant
from mutation.running import MutateError

HEAD = """\
# Mutants that no test notices. Written by ci/mutate, except "equivalent": there a person says why
# no test can notice this one. An entry with a reason is kept, and ci/mutate --check demands that
# its line is still in the file; one without a reason is a test that somebody owes.
"""
IDENTITY = ("file", "operator", "before", "after", "nth")  # what Mutant.key is made of
KEYS = {*IDENTITY, "line", "tests", "equivalent"}


class Survivors:
    """The committed file."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.entries: dict[str, dict[str, Any]] = {}
        if not self.path.exists():
            return
        try:
            read = tomllib.loads(self.path.read_text(encoding="utf-8"))
            for entry in read.get("survivors", []):
                if set(entry) - KEYS or not isinstance(entry["equivalent"], str):
                    raise ValueError(f"the entry of {entry['file']}:{entry['line']} is not one")
                self.entries["\t".join(str(entry.get(key, 0)) for key in IDENTITY)] = entry
        except (ValueError, KeyError, OSError) as error:
            raise MutateError(f"{self.path}: {error!r}") from error

    def argument(self, key: str) -> str:
        return str(self.entries.get(key, {}).get("equivalent", "")).strip()

    def note(self, mutant: Mutant, tests: str | None) -> None:
        """Takes up a survivor of these tests, with the argument that is there. Without tests drops
        it, unless it is argued: then its argument is wrong, and the run says so."""
        argument = self.argument(mutant.key)
        if tests is not None:
            row = {key: getattr(mutant, key) for key in ("file", "line", *IDENTITY[1:])
                   if key != "nth" or mutant.nth}
            self.entries[mutant.key] = {**row, "tests": tests, "equivalent": argument}
        elif not argument:
            self.entries.pop(mutant.key, None)

    def forget(self, file: str, keys: set[str]) -> None:
        """Of a file that was read again: what is no mutant of it any more and was not argued."""
        self.entries = {key: entry for key, entry in self.entries.items()
                        if entry["file"] != file or key in keys or self.argument(key)}

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entries = sorted(self.entries.values(), key=lambda entry: (
            entry["file"], entry["line"], entry["operator"], entry["after"]))
        # One line per entry. A JSON string of these characters is also one of TOML.
        body = "".join("  { " + ", ".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items())
            + " },\n" for entry in entries)
        new = self.path.with_suffix(".new")
        new.write_text(f"{HEAD}\nsurvivors = [\n{body}]\n", encoding="utf-8")
        new.rename(self.path)
