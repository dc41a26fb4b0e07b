"""Earlier runs of the same kind: the baseline of a report, and the trend of each effect.

Only results.json and run.json of an earlier run are read, so a long history costs little.
"""

import pathlib
from dataclasses import dataclass, field

from . import archive, change, schema
from .evidence import Claim, Evidence
from .integrity import read_json

RUNS_MAX = 12  # a small plot shows no more


@dataclass
class History:
    """What a run is compared with. past: earlier runs, oldest first; the last is the baseline."""

    past: list[Evidence] = field(default_factory=list)

    @property
    def baseline(self) -> Evidence | None:
        return self.past[-1] if self.past else None

    def results(self, name: str) -> list[dict[str, object]]:
        """The rows of a claim, of those runs that measured its effect."""
        return [claim.result for run in self.past if (claim := run.claim(name)) is not None
                and claim.result["effect"] is not None]


def outline(path: pathlib.Path) -> Evidence:
    """A run without its attacks. ValueError: the path has no evidence."""
    folder = archive.open_folder(path)
    results, run = read_json(folder / "results.json"), read_json(folder / "run.json")
    faults = schema.check_results(results)
    if faults:
        raise ValueError(f"{folder / 'results.json'} does not match its schema: {faults[0]}")
    return Evidence(path, results, {}, run, [Claim(row, {}, []) for row in results["claims"]])


def begin(run: Evidence) -> float:
    return float(run.run.get("begin_s") or 0.0)


def earlier(folder: pathlib.Path, run: Evidence) -> list[Evidence]:
    """The runs in a folder of runs that began before this one and can be compared with it, oldest
    first. Incomplete folders, which an interrupted run leaves, are skipped."""
    found = []
    for path in folder.iterdir():
        if not (path / "results.json").is_file() or not (path / "run.json").is_file():
            continue
        try:
            one = outline(path)
            if begin(one) < begin(run) and not change.difference(one, run):
                found.append(one)
        except (ValueError, OSError, KeyError, TypeError, AttributeError):
            continue
    return sorted(found, key=begin)[-RUNS_MAX:]


def of_run(run: Evidence, baseline: pathlib.Path | None,
           folder: pathlib.Path | None) -> History:
    """ValueError: the baseline has no evidence, or cannot be compared with the run."""
    past = earlier(folder, run) if folder is not None and folder.is_dir() else []
    if baseline is not None:
        chosen = outline(baseline)
        why = change.difference(chosen, run)
        if why:
            raise ValueError(f"{why}: no baseline; reports compare --across compares them anyway")
        past = [one for one in past if begin(one) < begin(chosen)] + [chosen]
    return History(past)
