#!/usr/bin/env python3
"""What ci/sanitize must notice, with a stand-in for compute-sanitizer and the soft device; and that
the sweep's list of images is that of the library."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import kernel_image
import trial

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import configure  # noqa: E402  (the images of the library)

SOFT = ROOT / "build/libtollens-soft.so"

# Takes the real one's options, runs the program, and says what STAND_IN wants about it.
STAND_IN = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --tool) tool=$2 ;;
    --log-file) log=$2 ;;
    --port | --print-limit | --check-api-memory-access | --report-api-errors) ;;
    --version) echo "Version 0.0 stand-in"; exit ;;
    *) break ;;
    esac
    shift 2
done
case $STAND_IN in
slow) exec sleep 60 ;;
idle) echo "kernel-sweep: 9 cases, 0 wrong, 0 skipped; 9 launches of 9 kernels; 0 of 9 missed" ;;
less) "$@" | grep -v '^launched swiglu_f16 ' ;;
*) "$@" ;;
esac
code=$?
case $STAND_IN-$tool in
silent-*) ;;
hazard-racecheck) echo "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)" ;;
error-memcheck) echo "========= ERROR SUMMARY: 20 errors" ;;
*-racecheck) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
*) echo "========= ERROR SUMMARY: 0 errors" ;;
esac >"$log"
exit $code
"""


# What the stand-in does, the options, and what the summary says.
FOUND = (
    ("error", "", "errors: ERROR SUMMARY: 20 errors"),
    ("hazard", "--tools racecheck", "NOT clean: 0 of 1"),
    ("silent", "--one-by-one", "errors: no summary"),
    ("idle", "--tools memcheck", "37 of 37 kernels were not launched"),
    ("less", "--tools memcheck", "1 of 37 kernels were not launched: swiglu_f16"),
    ("slow", "--tools memcheck --seconds 1", "not done after 1 s"))


class Sanitize(trial.Trial):
    def setUp(self) -> None:
        super().setUp()
        self.write("compute-sanitizer", STAND_IN)

    def sanitize(self, code: int, said: str, behaviour: str, *options: str, **more: str) -> str:
        return self.expect(code, said, ROOT / "ci/sanitize", self.folder / "out", *options, env={
            "STAND_IN": behaviour, "TOLLENS_LIBCUDA": str(SOFT), "TOLLENS_DEVICE": "soft",
            "PATH": f"{self.folder}:{os.environ['PATH']}", **more})

    def test_nothing_found_is_clean(self) -> None:
        text = self.sanitize(0, "all clean: 5 of 5", "clean", "--groups", "decoder threads")
        self.assertRegex(text, r"ok  initcheck +decoder +58 launches of 37 kernels +errors: none")
        self.assertEqual(text, (self.folder / "out/sanitize.txt").read_text(encoding="utf-8"))

    def test_what_a_tool_finds_and_what_did_not_run_is_told(self) -> None:
        for behaviour, options, said in FOUND:
            self.sanitize(1, said, behaviour, "--groups", "decoder", *options.split())

    def test_a_launch_that_fails_is_told(self) -> None:
        rules = self.write("faults.json", '{"rules": [{"function": "cuLaunchKernel", "nth": 3, '
                           '"action": "return", "code": "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}]}')
        self.sanitize(1, "58 cases, 1 wrong", "clean", "--groups", "decoder", "--tools",
                      "memcheck", TOLLENS_SOFT_FAULTS=str(rules))
        self.assertIn("WRONG swiglu f32 5 x 9001", (
            self.folder / "out/sanitize/memcheck-decoder.program").read_text(encoding="utf-8"))

    def test_what_cannot_be_run_is_refused(self) -> None:
        for options in (("--tools", "leakcheck"), ("--groups", "everything"), ("--seconds", "x"),
                        ("--fast",), ("--groups", "threads", "--tools", "memcheck")):
            self.sanitize(2, "sanitize: ", "clean", *options)
        (self.folder / "compute-sanitizer").unlink()
        self.sanitize(2, "no compute-sanitizer", "clean", CUDA_HOME="/nowhere")


class Sweep(unittest.TestCase):
    def test_all_kernels_of_the_library_are_on_it(self) -> None:
        listed = subprocess.run([ROOT / "build/kernel-sweep", "--list"], capture_output=True,
                                text=True, check=True).stdout.splitlines()
        names = [pathlib.Path(image).name for image in configure.IMAGES]
        kept = ROOT / "fixtures/ptx/kernels"
        wanted = {(name, entry) for name in names
                  if not re.search("planted|defects|read_words", name)
                  for entry in re.findall(r"\.entry (\w+)", kernel_image.kept_text(
                      kept / f"{name}.ptx.xz").decode())}
        self.assertEqual({tuple(line.split()[1:]) for line in listed}, wanted)


if __name__ == "__main__":
    sys.exit(unittest.main())
