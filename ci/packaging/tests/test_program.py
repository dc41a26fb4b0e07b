"""The command tollens as it is installed: away from its sources, and from any folder."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import tollens

HERE = pathlib.Path(__file__).resolve().parent
TOLLENS = pathlib.Path(sys.executable).with_name("tollens")
CLIENT = [sys.executable, str(HERE / "device.py")]


def run(*words: str | pathlib.Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], text=True, capture_output=True,
                          env={**os.environ, **more}, check=False)


def test_help_names_the_programs_commands_and_the_packages() -> None:
    for words in ((), ("--help",)):
        said = run(TOLLENS, *words)
        assert "\n  soft [options] -- PROGRAM ARGUMENTS\n" in said.stdout + said.stderr
        assert "\n  report EVIDENCE...  write a page about runs: " in said.stdout + said.stderr
        assert said.returncode == (0 if words else 2)
    assert run(sys.executable, "-m", "tollens", "soft", "--help").stdout.startswith("usage: ")


def test_a_program_runs_on_the_soft_device() -> None:
    clean = run(TOLLENS, "soft", "--error-exitcode", "7", "--", *CLIENT, "store", "15")
    assert clean.returncode == 0 and "0 findings" in clean.stderr, clean
    wrong = run(TOLLENS, "soft", "--error-exitcode", "7", "--", *CLIENT, "store", "16")
    assert wrong.returncode == 7 and "1 finding: 1 illegal address" in wrong.stderr, wrong


def test_the_cuda_runtime_is_found_by_its_name() -> None:
    for major in (12, 13):
        code = f"import ctypes; d = ctypes.c_int(); r = ctypes.CDLL('libcudart.so.{major}')." \
               "cudaGetDeviceCount(ctypes.byref(d)); print(r, d.value)"
        said = run(TOLLENS, "soft", "--devices", "3", "--", sys.executable, "-c", code)
        assert said.stdout == "0 3\n", said


def test_nvml_has_a_stand_in() -> None:
    code = "import ctypes, tollens; print(ctypes.CDLL(str(tollens.soft_library_path().with_name(" \
           "'libnvml-stand-in.so'))).nvmlInit_v2())"
    assert run(sys.executable, "-c", code, TOLLENS_TEST_NVML="init=999").stdout == "999\n"
    assert run(sys.executable, "-c", code, TOLLENS_TEST_NVML="free=1").stdout == "0\n"


def test_claims_are_tested_and_reported(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "evidence"
    done = run(TOLLENS, "run", "H1", "H7", "--device", "soft", "--seed", "1", "--sabotage",
               "--out", out)
    assert done.returncode == 0, done
    read = tollens.open_run(out)
    assert [claim.verdict for claim in read] == ["survived"] * 2 and read.device_kind == "soft"
    found = json.loads((out / "results.json").read_text())["claims"]
    for claim, row in zip(read, found, strict=True):
        noticed = [one.as_expected for one in claim.saboteurs if one.expected == "falsified"]
        assert noticed.count(True) == len(noticed) == row["severity"]["of"] > 0
    report = run(TOLLENS, "report", out)
    assert report.returncode == 0 and "H7" in (out / "report/report.html").read_text(), report
    merged = run(TOLLENS, "merge", out, out, "--no-png", "--out", tmp_path / "merged")
    assert merged.returncode == 0 and "counted once" in merged.stdout, merged
    assert (tmp_path / "merged/merge.html").exists()
    compared = run(TOLLENS, "compare", out, out, "--out", tmp_path / "compared")
    assert compared.returncode == 0 and (tmp_path / "compared/compare.html").exists(), compared
    # Without matplotlib it says that there are no plots, and does the rest.
    assert ("pip install matplotlib" in report.stderr) != (out / "report/plots").exists()


def test_the_report_refuses_in_one_sentence(tmp_path: pathlib.Path) -> None:
    said = run(TOLLENS, "report", tmp_path)
    assert said.returncode == 2 and said.stderr.splitlines()[-1].startswith("reports: "), said
    assert "Traceback" not in said.stderr


def test_a_package_that_is_not_whole_says_so(monkeypatch: pytest.MonkeyPatch,
                                             tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(tollens.program, "FOLDER", tmp_path)
    with pytest.raises(tollens.Missing, match="is not installed as a whole"):
        tollens.program_path()


def test_the_version_is_that_of_the_package() -> None:
    assert tollens.__version__.count(".") == 2 and tollens.__version__ == tollens.version()


def test_findings_are_read(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.jsonl"
    run(TOLLENS, "soft", "--check", "memory,leak", "--report", report, "--", *CLIENT, "store", "16")
    first, *others = tollens.read_findings(report)
    assert (first.kind, first.kernel, first.severity) == ("illegal address", "store", "error")
    assert first.place == "in kernel store, block (0,0,0), thread (0,0,0), at PTX line 8"
    assert str(first).startswith(f"illegal address {first.place}: a store of 4 bytes at ")
    assert {other.kind for other in others} == {"leak"}
    note = {**json.loads(report.read_text().splitlines()[0]), "severity": "note"}
    report.write_text(json.dumps(note) + "\n")
    assert tollens.read_findings(report) == []
    assert [one.severity for one in tollens.read_findings(report, notes=True)] == ["note"]
    report.write_text("{}\n")
    with pytest.raises(ValueError, match="not a line of a report"):
        tollens.read_findings(report)
