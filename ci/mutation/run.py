"""One run of ci/mutate: draws mutants, tries each, and says what came of it."""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import pathlib
import queue
import random
import subprocess
import threading
import time
from collections.abc import Iterable

from mutation.lanes import open_lanes
from mutation.second import Second
from mutation.tests import run_tests
from mutation.workshop import MutateError, Tree, Workshop, build, digest, say
from mutation.cover import Map
from mutation.operators import Mutant, Operators, statuses
from mutation.results import Log, Survivors, Verdict

STATUSES = "runtime/include/tollens/status.def"
BATCH_S = 2.0  # how much of the tests' time is started at once
PATIENCE = 10  # times the time that a test took without a mutant, and the tree's patience
KINDS = ("killed", "timeout", "same code", "refused", "survived", "untried")


@dataclasses.dataclass(frozen=True)
class Draw:
    sample: int | None  # how many mutants; all, if None
    seed: int
    files: str  # as the user named them
    limit_s: float  # of tests for one mutant; 0 for all that execute the line
    time_s: float = 0  # no mutant is begun when so much has passed; 0 for no end


class Run:
    def __init__(self, tree: Tree, out: pathlib.Path, limit_s: float = 0, jobs: int = 1) -> None:
        self.tree = tree
        self.out = out
        self.limit_s = limit_s
        self.jobs = jobs
        self.lock = threading.Lock()  # of the log
        self.end = float("inf")  # of the time in which mutants are begun
        status = tree.root / STATUSES
        self.operators = Operators(statuses(status.read_text() if status.exists() else ""))
        self.texts: dict[str, str] = {}

    def mutants(self, files: list[str]) -> list[Mutant]:
        for file in files:
            self.texts[file] = (self.tree.root / file).read_text()
        return [mutant for file in files
                for mutant in self.operators.mutants(file, self.texts[file])]

    def prepare(self, workshop: Workshop) -> None:
        """Builds, and finds out what the tests execute."""
        build(self.tree, self.tree.folder)
        workshop.read_commands()
        self.map = Map(self.tree)
        self.map.update(say, lambda: build(self.tree, self.tree.coverage), self.jobs)
        self.log = Log(workshop.work / "verdicts.jsonl")
        self.stamp = "+".join([workshop.stamp(),
                               *(each.folder for each in self.tree.sanitizers)])
        self.lanes = open_lanes(self.tree, workshop, self.jobs)
        self.free: queue.SimpleQueue[Workshop] = queue.SimpleQueue()
        for lane in self.lanes:
            self.free.put(lane)
        self.survivors = Survivors(self.out)
        self.second: list[Second] = [Second(self.tree, each) for each in self.tree.sanitizers]

    def close(self) -> None:
        for each in self.second:
            each.close()
        for lane in self.lanes[1:]:
            lane.close()

    def judge(self, mutant: Mutant) -> Verdict:
        """In any lane that is free; several threads may call it at once."""
        text = self.texts[mutant.file]
        if (self.tree.root / mutant.file).read_text() != text:
            raise MutateError(f"{mutant.file} was edited while its mutants were tried")
        file_stamp = digest(text.encode())
        known = self.log.verdicts.get(mutant.key)
        if known and known.holds(file_stamp, self.stamp):
            return known
        if time.monotonic() > self.end:
            return Verdict("untried", "", 0.0, file_stamp, self.stamp)
        lane = self.free.get()
        try:
            kind, by, seconds = self._try(lane, mutant, text)
        finally:
            self.free.put(lane)
        verdict = Verdict(kind, by, round(seconds, 2), file_stamp, self.stamp)
        with self.lock:
            self.log.add(mutant, verdict)
        return verdict

    def _try(self, lane: Workshop, mutant: Mutant, text: str) -> tuple[str, str, float]:
        if not lane.has(mutant.file):
            return "refused", "no program that was asked for has it", 0.0
        original = lane.original(mutant.file)
        changed = lane.compile(mutant.file, mutant.apply(text))
        if changed is None:
            return "refused", "the compiler", 0.0
        if changed == original:
            return "same code", "", 0.0
        last = mutant.line + text.count("\n", mutant.begin, mutant.end)
        tests = self.map.covering(mutant.file, mutant.line, last)
        lane.install(mutant.file, changed)
        try:
            kind, by, seconds = self._run(lane, tests)
        finally:
            lane.restore()
        for second in self.second if kind == "survived" and tests else ():
            found, more_s = second.notices(mutant, text, self._batches(tests), self.limit_s)
            seconds += more_s
            if found:
                return "killed", found, seconds
        return kind, by, seconds

    def _run(self, lane: Workshop, tests: list[str]) -> tuple[str, str, float]:
        seconds = 0.0
        ran: list[str] = []
        linked: set[str] = set()
        for program, batch, limit_s in self._batches(tests):
            if program not in linked and not lane.link([program]):
                return "refused", "the linker", seconds
            linked.add(program)
            outcome = run_tests(lane.tree, self.tree.folder, program, batch, limit_s)
            seconds += outcome.seconds
            if outcome.verdict != "passed":
                return ("timeout" if outcome.verdict == "timeout" else "killed",
                        outcome.what, seconds)
            ran += batch
            if self.limit_s and seconds > self.limit_s and len(ran) < len(tests):
                return "survived", f"of {len(tests)} tests {_names(ran)}", seconds
        return "survived", _names(tests), seconds

    def _batches(self, tests: list[str]) -> list[tuple[str, list[str], float]]:
        """Program, tests and the time limit of each call, in order."""
        found: list[tuple[str, list[str], float]] = []
        rounds: dict[str, tuple[list[str], float]] = {}

        def finish() -> None:
            found.extend((program, names, self.tree.patience_s + PATIENCE * seconds)
                         for program, (names, seconds) in rounds.items())
            rounds.clear()

        for name in tests:
            test = self.map.tests[name]
            names, seconds = rounds.get(test["program"], ([], 0.0))
            rounds[test["program"]] = [*names, name], seconds + test["seconds"]
            if sum(seconds for _, seconds in rounds.values()) >= BATCH_S:
                finish()
        finish()
        return found


def _names(tests: list[str]) -> str:
    """For a person: few by name, many by suite."""
    if not tests:
        return "no test executes the line"
    if len(tests) <= 4:
        return ", ".join(tests)
    suites = sorted({name.split("/")[0] for name in tests})
    some = ", ".join(suites[:8]) + (", ..." if len(suites) > 8 else "")
    return f"{len(tests)} tests of {len(suites)} suites: {some}"


def commit(tree: Tree) -> str:
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=tree.root, text=True,
                          capture_output=True, check=False)
    return done.stdout.strip() or "unknown"


def go(run: Run, files: list[str], draw: Draw) -> int:
    everything = run.mutants(files)
    sample = everything
    if draw.sample and draw.sample < len(everything):
        sample = random.Random(draw.seed).sample(everything, draw.sample)
    if draw.time_s:
        run.end = time.monotonic() + draw.time_s
    with contextlib.closing(Workshop(run.tree)) as workshop:
        run.prepare(workshop)
        with contextlib.closing(run):
            return _go(run, everything, sample, draw)


def _say_all(run: Run, sample: list[Mutant], verdicts: Iterable[Verdict],
             counts: dict[str, int]) -> tuple[int, int]:
    """Prints and notes each verdict; how many survivors are argued, and how many are left."""
    argued = left = 0
    for number, (mutant, verdict) in enumerate(zip(sample, verdicts), 1):
        counts[verdict.kind] += 1
        if verdict.kind == "untried":
            continue
        run.survivors.note(mutant, verdict)
        argument = run.survivors.argument(mutant.key)
        say(f"{number:4}/{len(sample)} {verdict.kind:9} {mutant.file}:{mutant.line} "
            f"{mutant.operator}  {verdict.by}  {verdict.seconds:.1f} s")
        if verdict.kind == "survived":
            say(f"         - {mutant.before}\n         + {mutant.after}")
            run.survivors.write()
            argued, left = argued + bool(argument), left + (not argument)
        elif argument and verdict.kind in ("killed", "timeout"):
            say("         it is argued to be equivalent, and a test noticed it")
            left += 1
    return argued, left


def _go(run: Run, everything: list[Mutant], sample: list[Mutant], draw: Draw) -> int:
    say(f"{len(sample)} of {len(everything)} mutants of {len(run.texts)} files")
    keys: dict[str, set[str]] = {}
    for mutant in everything:
        keys.setdefault(mutant.file, set()).add(mutant.key)
    for file, of_file in keys.items():
        run.survivors.forget(file, of_file)
    counts = dict.fromkeys(KINDS, 0)
    with concurrent.futures.ThreadPoolExecutor(run.jobs) as pool:
        argued, left = _say_all(run, sample, pool.map(run.judge, sample), counts)
    dead = counts["killed"] + counts["timeout"]
    run.survivors.note_run({
        "sample": len(sample), "seed": draw.seed, "files": draw.files,
        "of": len(everything), "limit_s": draw.limit_s, "commit": commit(run.tree),
        "date": datetime.date.today().isoformat(), "killed": dead,
        "same_code": counts["same code"], "refused": counts["refused"], "argued": argued,
        "survived": left, **({"untried": counts["untried"]} if counts["untried"] else {})})
    run.survivors.write()
    if counts["untried"]:
        say(f"the time is up: {counts['untried']} of {len(sample)} were not tried")
    judged = dead + left
    say(f"{dead} killed ({counts['timeout']} of them ran too long), {counts['same code']} same "
        f"code, {counts['refused']} refused by the compiler, {argued} argued to be equivalent, "
        f"{left} survived")
    if judged:
        say(f"{100 * dead / judged:.1f} % of {judged} noticed; the survivors are in "
            f"{run.survivors.path}")
    return 1 if left else 0
