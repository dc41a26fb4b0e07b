"""Second opinions: whether a sanitizer notices a mutant that no test noticed."""

import dataclasses

from mutation.operators import Mutant
from mutation.tests import run_tests
from mutation.workshop import Outcome, Sanitizer, Tree, Workshop, build, say

PATIENCE = 10  # times what the tests have without it


class Second:
    """Asks a sanitizer about what no test noticed."""

    def __init__(self, tree: Tree, sanitizer: Sanitizer) -> None:
        self.tree, self.sanitizer = tree, sanitizer
        self.workshop: Workshop | None = None
        if (tree.root / sanitizer.folder / "mutant/installed.json").exists():
            self._open()  # a run was ended before the original was back

    def close(self) -> None:
        if self.workshop is not None:
            self.workshop.close()

    def _open(self) -> Workshop:
        if self.workshop is None:
            say(f"building {self.sanitizer.folder} for {self.sanitizer.name}")
            self.workshop = Workshop(dataclasses.replace(
                self.tree, folder=self.sanitizer.folder, programs=self.sanitizer.programs))
            build(self.tree, self.sanitizer.folder, self.sanitizer.programs)
            self.workshop.read_commands()
        return self.workshop

    def notices(self, mutant: Mutant, text: str, batches: list[tuple[str, list[str], float]],
                limit_s: float) -> tuple[str, float]:
        """What noticed it, or nothing, and the seconds that its tests took: as long as without the
        sanitizer and three times that."""
        seconds = 0.0
        workshop = self._open()
        if mutant.file not in workshop.commands:
            return "", 0.0
        changed = workshop.compile(mutant.file, mutant.apply(text))
        if changed is None:
            return "", 0.0
        if not self.sanitizer.criterion:
            batches = [(program, [program], self.tree.patience_s * PATIENCE)
                       for program in self.sanitizer.programs]
        for program, tests, patience_s in batches:
            if limit_s and seconds > 3 * limit_s:
                break
            workshop.install(mutant.file, changed)
            try:
                linked = workshop.link([program])
                outcome = self._run(program, tests, patience_s) if linked else None
            finally:
                workshop.restore()
            if outcome is None:
                continue
            seconds += outcome.seconds
            if outcome.verdict == "passed":
                continue
            # What the sanitizer reports without the mutant too is no word on it.
            workshop.link([program], mutated=False)
            if self._run(program, tests, patience_s).verdict == "passed":
                return f"{self.sanitizer.name}: {outcome.what}", seconds
        return "", seconds

    def _run(self, program: str, tests: list[str], limit_s: float) -> Outcome:
        return run_tests(self.tree, self.sanitizer.folder, program, tests, PATIENCE * limit_s,
                         sanitizer=self.sanitizer)
