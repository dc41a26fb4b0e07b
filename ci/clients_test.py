#!/usr/bin/env python3
"""How ci/clients reads what pytest prints, and what it holds against what is expected."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("clients", str(HERE / "clients"))
spec = importlib.util.spec_from_loader("clients", loader)
assert spec is not None
clients = importlib.util.module_from_spec(spec)
loader.exec_module(clients)

PRINTED = """..F.s
PASSED ../site-packages/numba_cuda/numba/cuda/tests/cudapy/test_a.py::TestA::test_one
FAILED ../numba/cuda/tests/cudapy/test_a.py::TestA::test_two - AssertionError
ERROR ../site-packages/numba_cuda/numba/cuda/tests/cudapy/test_a.py::TestA::test_two - teardown
SKIPPED [1] test_a.py:5: needs cupy
PASSED ../site-packages/numba_cuda/numba/cuda/tests/cudapy/test_a.py::test_plain
"""


class Judging(unittest.TestCase):
    def test_outcomes_are_of_tests_by_name(self) -> None:
        found = clients.outcomes(PRINTED)
        self.assertEqual(found["cudapy/test_a.py::test_one"], "PASSED")
        self.assertEqual(found["cudapy/test_a.py::test_two"], "FAILED")
        self.assertEqual(found["cudapy/test_a.py::test_plain"], "PASSED")

    def test_only_what_is_unexpected_is_wrong(self) -> None:
        found = {"a.py::test_one": "PASSED", "a.py::test_two": "FAILED", "a.py::test_3": "SKIPPED"}
        self.assertEqual(clients.judge(found, {"a.py::test_two": "why"}), [])
        self.assertEqual(clients.judge(found, {}), ["a.py::test_two: failed"])
        self.assertEqual(len(clients.judge(found, {"a.py::test_one": "", "a.py::test_two": ""})), 1)

    def test_what_is_expected_to_fail_runs_alone(self) -> None:
        expected = {"cudapy/test_a.py::test_two": "why", "cudapy/test_ab.py::test_one": "why",
                    "cudapy/test_a.py::test_3": "why"}
        names = clients.alone(expected, "cudapy/test_a.py")
        self.assertEqual(names, ["test_two", "test_3"])
        self.assertEqual(clients.chosen(names), [["-k", "not (test_two or test_3)"],
                                                 ["-k", "test_two"], ["-k", "test_3"]])
        self.assertEqual(clients.chosen([]), [[]])

    def test_an_overrun_must_be_found(self) -> None:
        program = {"file": "a.py", "says": "right", "overrun": "past the end"}
        for code, text, right in ((99, "past the end", True), (0, "right", False), (99, "", False)):
            with unittest.mock.patch.object(
                    clients, "on_soft", side_effect=[(0, "right"), (code, text)]) as on_soft:
                self.assertEqual(clients.run_program("python3", program, HERE), right)
            self.assertEqual(on_soft.call_args.args[0], ["python3", "a.py", "overrun"])

    def test_a_name_that_nothing_has_is_no_success(self) -> None:
        with tempfile.TemporaryDirectory() as home, \
                unittest.mock.patch.object(clients, "python_with", return_value=sys.executable), \
                unittest.mock.patch.dict("os.environ", CUDA_HOME=home), \
                unittest.mock.patch.object(sys, "argv", ["clients", "--short", "--only", "zzz"]):
            pathlib.Path(home, "libnvvm.so").touch()
            self.assertEqual(clients.main(), 2)


if __name__ == "__main__":
    unittest.main()
