"""One run: what `tollens run` measured, and the verdicts about it."""

import os
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from .reports import evidence as files
from .reports.hdr import Histogram

__all__ = ["Claim", "Histogram", "Run", "Saboteur", "Series", "Verdict", "open_run"]
Verdict = Literal["survived", "falsified", "inconclusive", "not_tested"]


@dataclass(frozen=True)
class Series:
    """The times of one thing that an attack measured, in nanoseconds.

    histogram.total is how many there were, histogram.maximum the longest, histogram.percentile(99)
    the time that 99 % of them do not exceed, to `digits` decimal digits, and
    histogram.merged(other) the sum of two. Series of several processes have been added up.
    """

    attack: str
    name: str
    histogram: Histogram
    processes: int


@dataclass(frozen=True)
class Saboteur:
    """A deliberate fault, and whether the attacks judged it as they must."""

    name: str              # with its size, such as launch_delay_us=1.6
    expected: str          # the verdict under it; "" where the evidence does not say
    verdict: str           # the one that was reached; "" likewise
    as_expected: bool | None  # None: the run could not tell
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """A claim, the verdict about it, and what it rests on."""

    id: str                # such as H4; a plugin's claims have ids of their own
    title: str
    verdict: Verdict
    reason: str | None     # of a verdict that needs one; None: it needs none
    effect: float | None   # in `unit`; None: nothing was measured
    low: float | None      # the interval of the effect; None: the effect has none
    high: float | None
    unit: str
    threshold: float
    direction: Literal["at_most", "below", "above"]  # how the effect must lie to the threshold
    counterexamples: tuple[str, ...]
    series: tuple[Series, ...]
    saboteurs: tuple[Saboteur, ...]


@dataclass(frozen=True)
class Run:
    """One run of `tollens run`."""

    path: pathlib.Path
    device: str
    device_kind: Literal["cuda", "soft"]
    mode: Literal["quick", "full"]
    commit: str | None     # of Tollens; None: it was not built in a git repository
    under: str | None      # the saboteur that was injected throughout; None: none was
    duration_s: float
    claims: tuple[Claim, ...]

    def claim(self, name: str) -> Claim:
        """The claim of that id, such as "H4". KeyError: the run has none."""
        for claim in self.claims:
            if claim.id == name:
                return claim
        raise KeyError(f"{self.path} has no claim {name}; it has "
                       f"{', '.join(claim.id for claim in self.claims)}")

    def count(self, verdict: Verdict) -> int:
        """The number of claims with that verdict."""
        return sum(claim.verdict == verdict for claim in self.claims)

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims)


def of_claim(claim: files.Claim) -> Claim:
    row = claim.result
    return Claim(
        claim.id, row["title"], row["verdict"], row["reason"], row["effect"], row["low"],
        row["high"], row["unit"], row["threshold"], row["direction"], tuple(claim.examples),
        tuple(Series(one.attack, one.name, one.histogram, one.processes) for one in claim.series),
        tuple(Saboteur(one.name, one.must, one.verdict, one.right, tuple(one.examples))
              for one in claim.saboteurs))


def open_run(path: str | os.PathLike[str]) -> Run:
    """Reads and checks a folder that `tollens run` wrote, or an archive of one.

    ValueError: a file of it is missing, was changed, or is none of ours; the sentence names it.
    OSError: it could not be read.
    """
    read = files.read(pathlib.Path(path))
    results = read.results
    try:
        return Run(read.folder, results["device"]["name"], results["device"]["kind"],
                   results["mode"], cast("str | None", results["commit"]), results.get("under"),
                   float(read.run["duration_s"]), tuple(of_claim(claim) for claim in read.claims))
    except KeyError as error:
        raise ValueError(f"{path}: the evidence lacks {error}") from error
