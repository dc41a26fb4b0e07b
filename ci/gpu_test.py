#!/usr/bin/env python3
"""What ci/gpu reports of test programs and claims, and which suites it runs on a day, with
stand-ins for the programs; and that it understands what Criterion writes."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time
import unittest

import trial

ROOT = pathlib.Path(__file__).resolve().parent.parent

TOLLENS = """#!/bin/sh
[ "$1" = run ] || exit 0
mkdir -p "$4" && echo '{"exit_code": 0}' >"$4/run.json"
"""

GOOD = """#!/bin/sh
for i in 01 02 03 04 05 06 07 08 09 10 11; do
    echo "[RUN ] numbers::number_$i"
    echo "[PASS] numbers::number_$i: ($i.25s)"
done
echo "[====] Synthesis: Tested: 11 | Passing: 11 | Failing: 0 | Crashing: 0 "
"""

HANGING = """#!/bin/sh
echo "[RUN ] life::ends"
echo "[RUN ] life::never_ends"
echo "[RUN ] life::is_too_slow"
echo "[PASS] life::ends: (0.25s)"
echo "[FAIL] life::is_too_slow: Timed out. (3.50s)"
exec sleep 600
"""

# The loader of an older system prints this.
TOO_NEW = """#!/bin/sh
for version in 2.9 2.34 2.28; do
    echo "$0: /lib/libc.so.6: version \\`GLIBC_$version' not found (required by $0)" >&2
done
exit 1
"""

# A program of seven suites, which keeps the pattern that it is given.
SUITES = """#!/bin/sh
if [ "$1" = --list ]; then
    echo 'suite_0: 1 test'
    for i in 1 2 3 4 5 6; do printf 'suite_%d: 2 tests\\n├── first\\n└── second\\n' $i; done
    exit
fi
echo "${6:-all}" >"$0.pattern"
echo "[====] Synthesis: Tested: 11 | Passing: 11 | Failing: 0 | Crashing: 0 "
"""

NOTHING = "#!/bin/sh\necho '[====] Synthesis: Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0 '\n"


def fallen(claim: str) -> str:
    """A program whose run of this claim is falsified."""
    return TOLLENS + f"case $* in *{claim}*) echo '{{\"exit_code\": 1}}' >\"$4/run.json\" ;; esac\n"


# What a stand-in does, the words and variables, the exit code, and what the output matches.
OUTCOMES = (
    ("test-runtime", HANGING, (), {"TOLLENS_SUITE_SECONDS": "1"}, 1,
     r"it did not finish\n        3\.50 s  life::is_too_slow\n        0\.25 s  life::ends\n"
     r"gpu: test-runtime was ended after 1 s, while these ran:\n    life::never_ends\n"
     r"gpu: test-kernels: (.|\n)*gpu: tests failed"),
    ("tollens", TOO_NEW, (), {}, 2, r"\Agpu: these programs need glibc 2\.34 or newer; this "
     r"machine has glibc 2\.[0-9]+\n\Z"),
    ("test-kernels", NOTHING, (), {}, 1, "gpu: tests failed"),
    ("tollens", fallen("W1"), (), {}, 1, "gpu: worker: done"),
    ("tollens", fallen("W1"), (), {"TOLLENS_GPU_PARTS": "claims"}, 0, r"\A[^T]*\Z"),
    ("tollens", fallen("W1"), (), {"TOLLENS_GPU_PARTS": "worker"}, 1, "worker: done"),
    ("tollens", fallen("S2"), (), {"TOLLENS_GPU_PARTS": "worker"}, 1, "worker: done"),
    ("tar", "#!/bin/sh\necho tar: no space >&2\nexit 2\n", (), {}, 2,
     "gpu: the evidence was not packed: tar: no space"),
    ("guard_trial", "#!/bin/sh\necho \"jobs in $1\"\nexit 1\n", (),
     {"TOLLENS_GPU_PARTS": "guard"}, 1,
     r"jobs in .*/out/guard\ngpu: a guard lost or repeated a job"),
    ("tollens", TOLLENS, ("--quick",), {}, 0,
     r"\A[^T]*gpu: claims: done after \d+ s; left: nothing\n[^T]*\Z"),
    ("tollens", TOLLENS, (), {"TOLLENS_GPU_PARTS": "tests"}, 0, "Tested: 11"),
    ("tollens", TOLLENS, (), {"TOLLENS_GPU_PARTS": "tests,all"}, 2, "TOLLENS_GPU_PARTS has all;"),
    ("tollens", TOLLENS, (), {"TOLLENS_GPU_PARTS": ","}, 2, "TOLLENS_GPU_PARTS has nothing;"),
    ("bench-seal", "#!/bin/sh\nexit 3\n", (), {"TOLLENS_GPU_PARTS": "benches",
     "TOLLENS_DEVICE": "cuda"}, 1, "gpu: bench-seal ended with 3"),
    *(("tollens", TOLLENS, (), {name: "soon"}, 2, f"{name} must be a whole number") for name in (
        "TOLLENS_SUITE_SECONDS", "TOLLENS_SABOTEUR_SECONDS", "TOLLENS_TEST_SUITES_ONE_IN")))

FULL_PARTS = "guard, tables, benches"
WAY = "xz" if shutil.which("xz") else "gz"  # how evidence is packed here


class Gpu(trial.Trial):
    def setUp(self) -> None:
        super().setUp()
        self.furnish()

    def furnish(self) -> None:
        (self.folder / "tar").unlink(missing_ok=True)
        for name in ("gpu", "help", "lane"):
            shutil.copy(ROOT / "ci" / name, self.folder)
        self.write("tollens", TOLLENS)
        self.write("guard_trial", "#!/bin/sh\n")
        for name in ("test-runtime", "test-kernels", "test-worker"):
            self.write(name, GOOD)

    def gpu(self, expected: int, *words: str, **more: str) -> str:
        """What ci/gpu prints, without what ci/check has for tests, which chooses the calls that are
        refused."""
        unset = [f"-u{name}" for name in os.environ if name.startswith("TOLLENS_TEST_")]
        return self.expect(expected, "", "env", *unset, "TOLLENS_DEVICE=soft", *(
            f"{name}={value}" for name, value in more.items()), "./gpu", self.folder / "out",
            *words)

    def log(self, name: str) -> str:
        return (self.folder / "out" / name).read_text(encoding="utf-8")

    def test_each_outcome_is_reported(self) -> None:
        path = f"{self.folder}:{os.environ['PATH']}"  # which has the stand-in for tar
        for program, text, words, more, expected, pattern in OUTCOMES:
            with self.subTest(program=program, more=more, words=words):
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                self.furnish()
                self.write(program, text)
                self.assertRegex(self.gpu(expected, *words, PATH=path, **more), pattern)

    def test_the_slowest_ten_are_told_and_the_evidence_is_packed(self) -> None:
        text = self.gpu(0)
        self.assertIn("of all its tests 69 s: Tested: 11", text)
        numbers = [line.split()[2] for line in text.splitlines() if "numbers::" in line]
        self.assertEqual(numbers, 3 * [f"numbers::number_{i:02}" for i in range(11, 1, -1)])
        # The verdicts come first, and each part says what is left.
        said = [line for line in text.splitlines() if "; left: " in line]
        self.assertEqual([line.split()[1] for line in said], ["claims:", "worker:", "tests:",
                                                                 "guard:"])
        self.assertRegex(said[0], r"left: worker, tests, guard$")
        self.assertLess(text.index("gpu: claims: done"), text.index("Tested"))
        with tarfile.open(self.folder / f"out/evidence.tar.{WAY}") as tar:
            self.assertEqual(sorted(tar.getnames()), [".", "./run.json"])
        self.assertEqual(len(list(self.folder.glob(f"out/[wm]*r*.tar.{WAY}"))), 2)

    def test_quick_passes_few_words_on(self) -> None:
        self.write("tollens", TOLLENS + 'echo "$*" >>"$0.words"\n')
        self.gpu(0, "--quick")
        self.gpu(2, "--quick", TOLLENS_GPU_PARTS="peers", TOLLENS_SABOTEUR_SECONDS="7")
        words = (self.folder / "tollens.words").read_text(encoding="utf-8")
        self.assertEqual(words, f"run --seeds=1 --out {self.folder}/out/evidence --quick\n"
                         "run P1 P2 --quick --seeds 1 --sabotage --saboteur-deadline 7 "
                         f"--verbose --out {self.folder}/out/peers/evidence\n")

    def test_a_lane_that_left_no_results_is_no_success(self) -> None:
        self.write("tollens", "#!/bin/sh\n")
        for lane in ("report", "cpu", "gpu"):
            self.expect(2, "so nothing was tested", "./lane", lane, "out", "--list")

    def test_peers_are_tried_where_they_are_named(self) -> None:
        for name in ("bench-peers", "test-runtime", "bench-collectives", "test-kernels"):
            self.write(name, f"#!/bin/sh\necho $* for {name}\n")
        text = self.gpu(2, TOLLENS_GPU_PARTS="peers")
        self.assertRegex(text, r"(?m)^gpu: peers: done after \d+ s; left: nothing$")
        self.assertTrue((self.folder / f"out/peers.tar.{WAY}").is_file(), text)
        for name, words in (("bench-peers", "bench-peers.json"), ("bus", "bus/*"),
                            ("test-collectives", "collective*/*"),
                            ("bench-collectives", "--processes")):
            self.assertIn(words, self.log(f"peers/{name}.txt"))
        self.write("bench-peers", "#!/bin/sh\nexit 1\n")
        self.assertIn("gpu: bench-peers ended with 1", self.gpu(2, TOLLENS_GPU_PARTS="peers"))

    def test_tables_and_every_life_are_of_a_full_run(self) -> None:
        self.write("test-runtime", '#!/bin/sh\necho "one in $TOLLENS_TEST_SCENARIOS_ONE_IN"\n' +
                   GOOD.split("\n", 1)[1])
        day = int(time.time()) // 86400
        for words, more, lives in (((), {}, "23"), (("--full",), {}, "1"),
                                   ((), {"TOLLENS_TEST_SCENARIOS_ONE_IN": "3"}, "3")):
            text = self.gpu(0, *words, **more)
            self.assertRegex(self.log("test-runtime.txt"), rf"\Aone in {lives}\n")
            self.assertEqual(f"one in {lives} driver-call failures" in text, lives != "1")
            left = re.search(rf"gpu: tests: done after \d+ s; left: {FULL_PARTS}", text)
            self.assertEqual(left is not None, "--full" in words, text)
            if lives == "23":
                self.assertRegex(text, f"TOLLENS_TEST_SEED=({day}|{day + 1})\n")

    def test_suites_run_beside_each_other_and_end_with_it(self) -> None:
        for name, other in (("test-runtime", "test-worker"), ("test-worker", "test-runtime")):
            self.write(name, f"#!/bin/sh\ntouch $0.runs\nuntil [ -e {self.folder}/{other}.runs ]\n"
                             "do sleep 0.01; done\n" + GOOD.split("\n", 1)[1])
        self.gpu(0)
        self.write("test-runtime", "#!/bin/sh\necho $$ >$0.process\nexec sleep 600\n")
        process = self.folder / "test-runtime.process"
        with subprocess.Popen([self.folder / "gpu", self.folder / "out"], text=True,
                              env=dict(os.environ, TOLLENS_DEVICE="soft"),
                              stdout=subprocess.DEVNULL) as gpu:
            while not process.exists() or not process.read_text():
                time.sleep(0.01)
            gpu.terminate()
            self.assertEqual(gpu.wait(10), 130)
        suite = pathlib.Path("/proc", process.read_text().strip())
        for _ in range(500):
            if not suite.exists() or "State:\tZ" in (suite / "status").read_text():
                return
            time.sleep(0.01)
        self.fail("the suite runs on")

    def test_criterions_words_are_understood(self) -> None:
        self.write("test-runtime", f'#!/bin/sh\nexec "{ROOT}/build/test-runtime" "$@"\n')
        text = self.gpu(0, CRITERION_TEST_PATTERN="status/*")
        self.assertRegex(text, r"(?m)^ +\d+\.\d\d s  status::what_does_not_fit_a_message_is_cut$")
        self.assertIn("Tested: 9", text)

    def test_one_sixth_of_the_suites_runs_and_another_sixth_each_day(self) -> None:
        for name in ("test-runtime", "test-kernels", "test-worker"):
            self.write(name, SUITES)
        some = [f"@(suite_{day})/*\n" for day in range(1, 6)]
        days = {str(20784 + day): pattern for day, pattern in enumerate(
            ["@(suite_0|suite_6)/*\n", *some, "@(suite_0|suite_6)/*\n"])}
        for words, more, pattern in (
                *(((), {"TOLLENS_TEST_SEED": day}, pattern) for day, pattern in days.items()),
                (("--full",), {}, "all\n"), ((), {"TOLLENS_TEST_SUITES_ONE_IN": "1"}, "all\n"),
                ((), {"CRITERION_TEST_PATTERN": "s*"}, "all\n")):
            self.gpu(0, *words, TOLLENS_GPU_PARTS="tests", **more)
            kept = (self.folder / "test-worker.pattern").read_text(encoding="utf-8")
            self.assertEqual(kept, pattern, more)

    def test_the_cost_of_memory_is_measured_where_it_is_named(self) -> None:
        for name in ("pool", "transfer", "seal", "watch"):
            self.write(f"bench-{name}", f"#!/bin/sh\necho {name} $*\n")
        self.gpu(0, TOLLENS_GPU_PARTS="pool")
        self.assertEqual(self.log("pool/seal.txt"),
                         f"seal --json {self.folder}/out/pool/seal.json\n")
        self.assertTrue((self.folder / f"out/pool.tar.{WAY}").is_file())
        self.write("bench-transfer", "#!/bin/sh\nexit 3\n")
        self.gpu(1, TOLLENS_GPU_PARTS="pool")
        self.assertEqual(self.log("pool/watch.txt"), "watch\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
