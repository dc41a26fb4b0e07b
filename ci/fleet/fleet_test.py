#!/usr/bin/env python3
"""A fleet of soft devices on a Slurm cluster of this machine, as ci/check --fleet runs it.

    ci/fleet/fleet_test.py [NAME...]    as unittest takes names: Slurm, ReFrame

Slurm is Debian's, ReFrame that of build/reframe; where one is missing its tests are not run, and a
line says so. An array of 64 tasks loses two nodes to an administrator and one to a power cut, and
one task is cancelled; the merge then has each of the 63 others once, and names the one.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLUSTER = ROOT / "ci/fleet/cluster"
REFRAME = ROOT / "build/reframe/bin/reframe"
TASKS = 64
CLAIM = "H9"  # takes a second


def cannot() -> str:
    """Why there is no cluster here; "" if there is."""
    if ROOT.is_relative_to("/tmp"):
        return f"{ROOT} is below /tmp, of which each node has its own"
    return subprocess.run([CLUSTER, "can"], text=True, capture_output=True,
                          check=False).stdout.strip()


class Cluster(unittest.TestCase):
    nodes = 6
    top: pathlib.Path
    env: dict[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        why = cannot()
        if why:
            print(f"not run here: {cls.__name__}: {why}", flush=True)
            raise unittest.SkipTest(why)
        cls.temporary = tempfile.TemporaryDirectory(prefix="fleet-", dir=ROOT / "build")
        cls.top = pathlib.Path(cls.temporary.name)
        (cls.top / "bundle").mkdir()  # what a node needs for claims on the soft device
        for name in ("build/tollens", "build/libtollens-soft.so", "fixtures"):
            (cls.top / "bundle" / pathlib.Path(name).name).symlink_to(ROOT / name)
        kept = {name: text for name, text in os.environ.items()
                if not name.startswith(("SLURM", "TOLLENS_", "SBATCH_"))}
        cls.env = {**kept, "SLURM_CONF": str(cls.top / "cluster/slurm.conf"),
                   "TOLLENS_BUNDLE": str(cls.top / "bundle"), "TOLLENS_DEVICE": "soft",
                   "TOLLENS_FLEET": str(cls.top / "fleet"), "TOLLENS_OPTIONS": CLAIM}
        subprocess.run([CLUSTER, "start", cls.top / "cluster", str(cls.nodes)], check=True)

    @classmethod
    def tearDownClass(cls) -> None:
        subprocess.run([CLUSTER, "stop", cls.top / "cluster"], check=True)
        cls.temporary.cleanup()

    def say(self, *words: object, code: int | None = 0) -> str:
        """What a command of Slurm or ours prints."""
        done = subprocess.run(list(map(str, words)), env=self.env, text=True, cwd=self.top,
                              capture_output=True, check=False, timeout=300)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def until(self, what: str, seconds: float, holds: Any) -> None:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                self.fail(f"after {seconds:.0f} s still not: {what}\n{self.say('squeue')}\n"
                          f"{self.say('sinfo', '-N', '-l')}")
            time.sleep(0.3)

    def until_ended(self, job: str, seconds: float) -> None:
        self.until(f"job {job} ended", seconds,
                   lambda: not self.say("squeue", "-h", "-j", job, code=None).strip())

    def ended(self) -> list[str]:
        return sorted(path.name for path in (self.top / "fleet").glob("task-*"))

    def merge(self, paths: list[pathlib.Path], code: int, *words: str) -> dict[str, Any]:
        return json.loads(self.say(ROOT / "build/tollens", "merge", *paths, "--no-png", "--json",
                                   "--out", self.top / "merged", *words, code=code))

    def nodes_of(self, said: dict[str, Any]) -> set[str]:
        return {machine["node"] for machine in said["machines"]}


class Slurm(Cluster):
    def submit(self, array: str) -> str:
        return self.say("sbatch", "--parsable", f"--array={array}", "--output=%x-%a.txt",
                        ROOT / "ci/fleet/tollens.sbatch").strip()

    def attempt(self, task: int, **more: str) -> subprocess.Popen[str]:
        """One task of the array, started without Slurm."""
        return subprocess.Popen(
            [ROOT / "ci/fleet/tollens.sbatch"], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**self.env, "SLURM_ARRAY_TASK_ID": str(task), **more})

    def test_an_array_survives_drained_and_dead_nodes_and_names_what_is_missing(self) -> None:
        job = self.submit(f"0-{TASKS - 1}")
        self.until("some tasks ended", 120, lambda: len(self.ended()) >= 6)
        for node in ("n5", "n6"):
            self.say("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
        # Midway: while the node runs a task.
        self.until("n4 runs a task", 60,
                   lambda: self.say("squeue", "-h", "-t", "R", "-w", "n4").strip())
        lost = self.say("squeue", "-h", "-t", "R", "-w", "n4", "-o", "%K").split()
        self.say(CLUSTER, "kill", self.top / "cluster", "n4")
        self.say("scancel", f"{job}_{TASKS - 1}")
        # A merge of incomplete tasks needs --partial; then the missing tasks are named.
        here = self.ended()
        self.assertLess(len(here), TASKS)
        tasks = [self.top / "fleet" / f"task-{at}" for at in range(TASKS)]
        self.merge(tasks, 2)
        self.assertIn(str(tasks[-1]), self.merge(tasks, 3, "--partial")["missing"])
        # Slurm notices the dead node and starts its task again elsewhere.
        self.until_ended(job, 240)
        said = self.merge(tasks, 3, "--partial")
        self.assertEqual(said["missing"], [str(tasks[-1])])
        self.assertEqual((said["refused"], said["duplicates"]), ([], []))
        [claim] = said["claims"]
        self.assertEqual((claim["id"], claim["verdict"], claim["runs"]),
                         (CLAIM, "survived", TASKS - 1))
        self.assertLessEqual(self.nodes_of(said), {f"n{at}" for at in range(1, 7)})
        self.assertLessEqual({"n1", "n2", "n3"}, self.nodes_of(said))
        again = (self.top / f"tollens-{lost[0]}.txt").read_text()
        self.assertIn("1 survived", again)
        self.assertEqual(list((self.top / "fleet").glob(".task-*")), [], "attempts are left")
        # The missing task alone, once more: now the fleet is whole.
        self.until_ended(self.submit(str(TASKS - 1)), 60)
        said = self.merge(tasks, 0)
        self.assertEqual((said["missing"], said["claims"][0]["runs"]), ([], TASKS))
        print(f"\nsummary: {TASKS} tasks, node n4 lost with task {lost[0]}, n5 and n6 drained: "
              f"{len(here)} at the cut, {TASKS - 1} and the missing one named, then {TASKS}")

    def test_an_attempt_after_a_whole_one_does_nothing_and_a_preempted_one_leaves_nothing(
            self) -> None:
        job = self.submit("900")
        self.until("task 900 ended", 60, lambda: "task-900" in self.ended())
        self.until_ended(job, 60)
        before = (self.top / "fleet/task-900/run.json").read_bytes()
        with self.attempt(900) as task:
            said, _ = task.communicate(timeout=120)
        self.assertEqual((task.returncode, said), (0, "task-900: an earlier attempt has ended\n"))
        self.assertEqual((self.top / "fleet/task-900/run.json").read_bytes(), before)
        with self.attempt(901, TOLLENS_OPTIONS="H12") as task:
            self.until("the attempt began", 60,
                       lambda: list((self.top / "fleet").glob(".task-901.*/*")))
            task.terminate()
            _, errors = task.communicate(timeout=120)
        self.assertEqual(task.returncode, 143, errors)
        self.assertIn("task-901: interrupted on", errors)
        self.assertEqual(list((self.top / "fleet").glob("*task-901*")), [])


class ReFrame(Cluster):
    """ReFrame starts the same runs, here and on the cluster's nodes."""

    nodes = 3

    @classmethod
    def setUpClass(cls) -> None:
        if not REFRAME.exists():
            print("not run here: ReFrame: ci/setup fleet makes build/reframe", flush=True)
            raise unittest.SkipTest("no ReFrame")
        super().setUpClass()

    def reframe(self, partition: str, code: int, *words: str) -> tuple[str, pathlib.Path]:
        """What it printed, and where evidence is."""
        prefix = self.top / f"reframe-{partition}"
        said = self.say(REFRAME, "-C", ROOT / "ci/fleet/reframe_settings.py", "-c",
                        ROOT / "ci/fleet/reframe_tollens.py", "--system", f"here:{partition}",
                        "--prefix", prefix, "--nocolor", "-r", *words, code=code)
        return said, prefix

    def evidence(self, prefix: pathlib.Path) -> list[pathlib.Path]:
        return sorted(path.parent for path in (prefix / "output").rglob("run.json"))

    def test_effects_are_its_performance_and_verdicts_its_sanity(self) -> None:
        said, prefix = self.reframe("alone", 0, "-S", "claims=H8,H12", "-S", "options=")
        self.assertRegex(said, r"P: H12_effect: 1\.0\d+ ratio \(r:1\.1")
        self.assertNotIn("H8_effect", said)
        self.assertIn("there is no device 7", said)
        self.assertEqual(len(self.evidence(prefix)), 1)
        for claim, options, fault in (("H8", "--under=pool_no_reuse", "H8 falsified"),
                                      ("H10", "", "no claim was tested")):
            said, _ = self.reframe("alone", 1, "-S", f"claims={claim}", "-S", f"options={options}")
            self.assertIn(fault, said)

    def test_each_node_of_the_cluster_is_a_test_and_their_evidence_is_one_report(self) -> None:
        said, prefix = self.reframe("cluster", 0, "-S", "claims=H8", "--distribute=idle")
        self.assertIn("0 failure(s)", said)
        merged = self.merge(self.evidence(prefix), 0)
        self.assertEqual(self.nodes_of(merged), {"n1", "n2", "n3"})
        self.assertEqual(merged["claims"][0]["survived"], 3)
        print("\nsummary: ReFrame: 3 nodes, 3 runs, one report")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
