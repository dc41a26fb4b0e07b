"""One run of ci/mutate: draws mutants, tries each, and says what came of it."""

import contextlib
import datetime
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterable

from mutation.second import Second
from mutation.switches import Switches
from mutation.tests import at_once, run_tests
from mutation.workshop import MutateError, Tree, Workshop, build, digest, say
from mutation.draw import Costs, Draw, drawn
from mutation.operators import Mutant, Operators, statuses
from mutation.reached import Reached
from mutation.results import Log, Survivors, Verdict

STATUSES = "runtime/include/tollens/status.def"
BATCH_S = 2.0  # how much of the tests' time is started at once
PATIENCE = 5  # times the time that a test took without a mutant, and the tree's patience
KINDS = ("killed", "timeout", "same code", "refused", "survived", "untried")


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

    def prepare(self, workshop: Workshop, sample: list[Mutant]) -> None:
        """Builds with all mutants, and finds out which tests reach them."""
        self.workshop = workshop
        self.costs = Costs()
        build(self.tree, self.tree.folder)
        workshop.read_commands()
        self.costs.note("build")
        self.switches = Switches(workshop, self.jobs)
        self.switches.prepare(sample, self.texts)
        self.costs.note("mutants")
        self.reached = Reached(self.tree, workshop.work)
        self.reached.update(say, sorted(self._number(mutant) for mutant in sample), self.jobs)
        self.costs.note("asking")
        self.log = Log(workshop.work / "verdicts.jsonl")
        self.survivors = Survivors(self.out)
        self.second: list[Second] = [Second(self.tree, each) for each in self.tree.sanitizers]
        self.asks = "+".join(["", *(each.folder for each in self.tree.sanitizers)])

    def close(self) -> None:
        for each in self.second:
            each.close()

    def _number(self, mutant: Mutant) -> int:
        return self.switches.number(mutant, self.texts[mutant.file])

    def judge(self, mutant: Mutant) -> Verdict:
        """Several threads may call it at once."""
        text = self.texts[mutant.file]
        if (self.tree.root / mutant.file).read_text() != text:
            raise MutateError(f"{mutant.file} was edited while its mutants were tried")
        number = self._number(mutant)
        tests = self.reached.covering(mutant.file, number)
        file_stamp, stamp = digest(text.encode()), self.reached.stamps(tests) + self.asks
        known = self.log.verdicts.get(mutant.key)
        if known and known.holds(file_stamp, stamp):
            return known
        if time.monotonic() > self.end:
            return Verdict("untried", "", 0.0, file_stamp, stamp)
        kind, by, seconds = self._try(mutant, text, number, tests)
        verdict = Verdict(kind, by, round(seconds, 2), file_stamp, stamp)
        with self.lock:
            self.log.add(mutant, verdict)
        return verdict

    def _try(self, mutant: Mutant, text: str, number: int,
             tests: list[str]) -> tuple[str, str, float]:
        if mutant.key in self.switches.refused:
            return "refused", self.switches.refused[mutant.key], 0.0
        kind, by, seconds = self._run(number, tests)
        if kind != "survived":
            return kind, by, seconds
        with self.lock:
            changed = self.workshop.compile(mutant.file, mutant.apply(text))
            if changed == self.workshop.original(mutant.file):
                return "same code", "", seconds
        for second in self.second if tests else ():
            found, more_s = second.notices(mutant, text, self._batches(tests), self.limit_s)
            seconds += more_s
            if found:
                return "killed", found, seconds
        return kind, by, seconds

    def _run(self, number: int, tests: list[str]) -> tuple[str, str, float]:
        seconds = 0.0
        ran: list[str] = []
        for program, batch, limit_s in self._batches(tests):
            slowest = max(self.reached.tests[name]["seconds"] for name in batch)
            outcome = run_tests(self.tree, self.tree.folder, program, batch, limit_s,
                                {"TOLLENS_MUTANT": str(number)},
                                each_s=self.tree.patience_s / 2 + PATIENCE * slowest)
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
            test = self.reached.tests[name]
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
    sample = drawn(everything, draw)
    if draw.time_s:
        run.end = time.monotonic() + draw.time_s
    with contextlib.closing(Workshop(run.tree)) as workshop:
        run.prepare(workshop, sample)
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
    known = len(run.log.verdicts)
    with at_once(run.jobs) as pool:
        argued, left = _say_all(run, sample, pool.map(run.judge, sample), counts)
    run.costs.note("tests")
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
    spent = ", ".join(f"{what} {seconds:.0f}" for what, seconds in run.costs.spent.items())
    say(f"seconds of processors: {spent}, for {len(run.log.verdicts) - known} new verdicts")
    judged = dead + left
    say(f"{dead} killed ({counts['timeout']} of them ran too long), {counts['same code']} same "
        f"code, {counts['refused']} refused by the compiler, {argued} argued to be equivalent, "
        f"{left} survived")
    if judged:
        say(f"{100 * dead / judged:.1f} % of {judged} noticed; the survivors are in "
            f"{run.survivors.path}")
    return 1 if left else 0
