"""Which mutants a run of ci/mutate tries, and what it costs."""

import dataclasses
import hashlib
import resource

from mutation.operators import Mutant


@dataclasses.dataclass(frozen=True)
class Draw:
    sample: int | None  # how many mutants; all, if None
    seed: int
    files: str  # as the user named them
    limit_s: float  # of tests for one mutant; 0 for all that execute the line
    time_s: float = 0  # no mutant is begun when so much has passed; 0 for no end
    lines: dict[str, set[int]] = dataclasses.field(default_factory=dict)  # of a file these alone


def drawn(everything: list[Mutant], draw: Draw) -> list[Mutant]:
    """At random, and nearly the same ones where some of the sources have changed: each mutant has
    a place that depends on nothing but itself and the seed."""
    everything = [mutant for mutant in everything
                  if mutant.line in draw.lines.get(mutant.file, {mutant.line})]
    if not draw.sample or draw.sample >= len(everything):
        return everything
    return sorted(everything, key=lambda mutant: hashlib.sha256(
        f"{draw.seed}\t{mutant.key}".encode()).digest())[:draw.sample]


class Costs:
    """Seconds of processors, of this process and what it started, by what they were for."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.before = self._now()

    def _now(self) -> float:
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in both)

    def note(self, what: str) -> None:
        now = self._now()
        self.spent[what], self.before = now - self.before, now
