"""pytest --tollens: which test a finding fails. Each case runs its own pytest."""

import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BEGIN = f"""
import subprocess, sys, unittest
import pytest
sys.path.insert(0, {str(HERE)!r})
from device import Device, INSIDE, OUTSIDE
CHILD = [sys.executable, {str(HERE / "device.py")!r}, "store"]
"""


def run(pytester: pytest.Pytester, source: str, *words: str,
        ini: str = "") -> subprocess.CompletedProcess[str]:
    pytester.makepyfile(test_it=BEGIN + source)
    pytester.makeini(f"[pytest]\naddopts = -p no:cacheprovider {ini}\n")
    return subprocess.run([sys.executable, "-m", "pytest", *words, "-rA"], text=True,
                          capture_output=True, check=False)


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The last word of -rA about each test."""
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[1].rpartition("::")[2]: words[0] for words in lines
            if len(words) > 1 and words[0] in ("PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL")}


def test_a_finding_fails_the_test_that_launched(pytester: pytest.Pytester) -> None:
    done = run(pytester, """
def test_before(): Device().launch("store")
def test_wrong(): Device().launch("store", OUTSIDE)   # does not wait for it
def test_no_device(): pass
def test_after(): Device().launch("store")
""", "--tollens")
    assert outcomes(done) == {"test_before": "PASSED", "test_wrong": "FAILED",
                              "test_no_device": "PASSED", "test_after": "FAILED"}, done
    assert done.returncode == 1
    assert "tollens: illegal address in kernel store, block (0,0,0)" in done.stdout
    assert "takes no more work since an error in test_it.py::test_wrong" in done.stdout
    assert "tollens: 1 finding in 1 test\n" in done.stdout
    assert "on the soft device, checks: memory,init,sync\n" in done.stdout


def test_without_findings_all_is_as_ever(pytester: pytest.Pytester) -> None:
    source = "def test_right(): Device().launch('store')\ndef test_plain(): assert 1 + 1 == 3\n"
    done = run(pytester, source, "--tollens", "-k", "right")
    assert done.returncode == 0 and "tollens: 0 findings in 0 tests\n" in done.stdout, done
    done = run(pytester, source, "-k", "plain")
    assert done.returncode == 1 and "tollens: " not in done.stdout, done


def test_a_run_that_tested_nothing_is_no_success(pytester: pytest.Pytester) -> None:
    for code, words in ((2, []), (0, ["--tollens-options=--allow-unused"])):
        done = run(pytester, "def test_plain(): pass\n", "--tollens", *words)
        assert done.returncode == code, done


def test_a_parent_that_ignores_its_children_hides_no_failure(
        pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_wrong(): assert False\n")
    start = ("import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
             "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])")
    done = subprocess.run([sys.executable, "-c", start, "-m", "pytest", "--tollens", "-p",
                           "no:cacheprovider"], text=True, capture_output=True, check=False)
    assert done.returncode == 1, done


def test_children_count(pytester: pytest.Pytester) -> None:
    done = run(pytester, """
def test_right(): assert subprocess.run([*CHILD, "15"]).returncode == 0
def test_wrong(): assert subprocess.run([*CHILD, "16"]).returncode == 0
def test_others(): Device().launch("store")
""", "--tollens")
    assert outcomes(done) == {"test_right": "PASSED", "test_wrong": "FAILED",
                              "test_others": "PASSED"}, done


def test_fixtures_xfail_skip_and_unittest(pytester: pytest.Pytester) -> None:
    done = run(pytester, """
def wrong(): assert subprocess.run([*CHILD, "16"]).returncode == 0
@pytest.fixture
def before(): wrong()
@pytest.fixture
def behind():
    yield
    wrong()
def test_setup(before): pass
def test_teardown(behind): pass
@pytest.mark.xfail
def test_expected(): wrong()
def test_skipped():
    wrong()
    pytest.skip("no reason")
class Old(unittest.TestCase):
    def test_unit(self): wrong()
    def test_both(self):
        wrong()
        self.assertEqual(1, 2)
def test_last(): pass
""", "--tollens")
    assert outcomes(done) == {
        "test_setup": "ERROR", "test_teardown": "ERROR", "test_expected": "XFAIL",
        "test_skipped": "FAILED", "test_unit": "FAILED", "test_both": "FAILED",
        "test_last": "PASSED"}, done
    assert "tollens: 6 findings in 6 tests\n" in done.stdout


def test_checks_are_chosen(pytester: pytest.Pytester) -> None:
    source = "def test_it(): Device().launch('race', threads=64)\n"
    assert outcomes(run(pytester, source, "--tollens")) == {"test_it": "PASSED"}
    for words in (["--tollens=race"], ["--tollens", "race,init"]):
        done = run(pytester, source, *words)
        assert outcomes(done) == {"test_it": "FAILED"} and "data race" in done.stdout, done
    done = run(pytester, source, "--tollens=rcae")
    assert done.returncode == 4 and "--tollens=rcae: the checks are memory, init" in done.stderr


def test_a_path_behind_the_option_is_a_path(pytester: pytest.Pytester) -> None:
    source = "def test_it(): Device().launch('store', OUTSIDE)\n"
    pytester.makepyfile(test_other="def test_other(): pass")
    done = run(pytester, source, "--tollens", "test_it.py")
    assert outcomes(done) == {"test_it": "FAILED"}, done
    for words in ([], ["test_it.py"]):  # from the configuration, too
        found = outcomes(run(pytester, source, *words, ini="--tollens"))
        assert found == {"test_it": "FAILED", **({} if words else {"test_other": "PASSED"})}


def test_options_reach_the_device(pytester: pytest.Pytester) -> None:
    done = run(pytester, """
import ctypes
def test_it():
    count = ctypes.c_int()
    Device().call("cuDeviceGetCount", ctypes.byref(count))
    assert count.value == 2
""", "--tollens", "--tollens-options=--devices 2 --memory 64M")
    assert done.returncode == 0, done
    done = run(pytester, "def test_it(): pass\n", "--tollens", "--tollens-options=--nonsense")
    assert done.returncode == 2 and "--nonsense" in done.stderr, done


def test_what_belongs_to_no_test_fails_the_run(pytester: pytest.Pytester) -> None:
    done = run(pytester, "def test_it(): Device()\n", "--tollens=leak")
    assert outcomes(done) == {"test_it": "PASSED"} and done.returncode == 1, done
    assert re.search("^tollens: of no test, when a process ended: leak .*: 64 bytes of device",
                     done.stderr, re.MULTILINE), done


def test_workers_have_their_own_findings(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    done = run(pytester, """
import time
@pytest.mark.parametrize("i", range(8))
def test_it(i):
    time.sleep(0.05)
    assert subprocess.run([*CHILD, "16" if i % 4 == 1 else "15"]).returncode == 0
""", "--tollens", "-n", "2")
    wrong = {name for name, word in outcomes(done).items() if word == "FAILED"}
    assert wrong == {"test_it[1]", "test_it[5]"} and len(outcomes(done)) == 8, done
    assert "tollens: 2 findings in 2 tests\n" in done.stdout
    assert "tollens soft: 2 findings at 1 place: 2 illegal address" in done.stderr


def test_inside_of_tollens_soft_nothing_starts_twice(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=BEGIN + "def test_it(): Device().launch('store', OUTSIDE)\n")
    tollens = pathlib.Path(sys.executable).with_name("tollens")
    command = [tollens, "soft", "--", sys.executable, "-m", "pytest", "-rA", "--tollens"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert outcomes(done) == {"test_it": "FAILED"}, done
    assert done.stderr.count("tollens soft: ") == 3
