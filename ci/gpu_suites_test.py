#!/usr/bin/env python3
"""Which suites of tests ci/gpu runs on a day, and what it says of claims that run beside others,
with stand-ins for the programs."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

TOLLENS = """#!/bin/sh
[ "$1" = run ] || exit 0
mkdir -p "$4" && echo '{"exit_code": 0}' >"$4/run.json"
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


class Suites(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(ROOT / "ci/gpu", self.folder)
        for name, text in (("tollens", TOLLENS), ("test-runtime", SUITES),
                           ("test-kernels", SUITES), ("test-worker", SUITES)):
            (self.folder / name).write_text(text, encoding="utf-8")
            (self.folder / name).chmod(0o755)

    def run_it(self, *words: str, **more: str) -> int:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TOLLENS_TEST_")}
        return subprocess.run(
            [self.folder / "gpu", self.folder / "out", *words], check=False, capture_output=True,
            env={**kept, "TOLLENS_DEVICE": "soft", "TOLLENS_GPU_PARTS": "tests", **more}).returncode

    def pattern(self, *words: str, **more: str) -> tuple[int, str]:
        code = self.run_it(*words, **more)
        return code, (self.folder / "test-worker.pattern").read_text(encoding="utf-8")

    def test_every_sixth_suite_runs_and_another_sixth_each_day(self) -> None:
        chosen = [self.pattern(TOLLENS_TEST_SEED=str(20784 + day)) for day in range(7)]
        self.assertEqual(chosen[0], (0, "@(suite_0|suite_6)/*\n"))
        self.assertEqual(chosen[1:6], [(0, f"@(suite_{day})/*\n") for day in range(1, 6)])
        self.assertEqual(chosen[6], chosen[0])

    def test_all_run_with_full_and_on_request(self) -> None:
        self.assertEqual(self.pattern("--full"), (0, "all\n"))
        self.assertEqual(self.pattern(TOLLENS_TEST_SUITES_ONE_IN="1"), (0, "all\n"))
        self.assertEqual(self.pattern(CRITERION_TEST_PATTERN="s*"), (0, "all\n"))
        self.assertEqual(self.pattern(TOLLENS_TEST_SUITES_ONE_IN="some")[0], 2)

    def test_a_claim_on_memory_that_falls_is_told(self) -> None:
        fallen = TOLLENS + "case $* in *S2*) echo '{\"exit_code\": 1}' >\"$4/run.json\" ;; esac\n"
        self.assertEqual(self.run_it(TOLLENS_GPU_PARTS="worker"), 0)
        (self.folder / "tollens").write_text(fallen, encoding="utf-8")
        self.assertEqual(self.run_it(TOLLENS_GPU_PARTS="worker"), 1)

    def test_what_memory_costs_is_measured_where_it_is_named(self) -> None:
        for name in ("pool", "transfer", "seal", "watch"):
            (self.folder / f"bench-{name}").write_text(f"#!/bin/sh\necho {name} $*\n",
                                                       encoding="utf-8")
            (self.folder / f"bench-{name}").chmod(0o755)
        self.assertEqual(self.run_it(TOLLENS_GPU_PARTS="pool"), 0)
        out = self.folder / "out/pool"
        self.assertEqual((out / "seal.txt").read_text(encoding="utf-8"),
                         f"seal --json {out}/seal.json\n")
        self.assertEqual((out / "watch.txt").read_text(encoding="utf-8"), "watch\n")
        self.assertTrue(list((self.folder / "out").glob("pool.tar.*")))
        (self.folder / "bench-transfer").write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        self.assertEqual(self.run_it(TOLLENS_GPU_PARTS="pool"), 1)
        self.assertEqual((out / "watch.txt").read_text(encoding="utf-8"), "watch\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
