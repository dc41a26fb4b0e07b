"""Evidence from Python: a run on a GPU as it was published."""

import json
import os
import pathlib
import shutil
import tarfile

import pytest
import tollens

PUBLISHED = pathlib.Path(os.environ["TOLLENS_TRY_EVIDENCE"])
TIMED, OTHER = PUBLISHED / "limits-h4/evidence.tar.xz", PUBLISHED / "h8-h9/evidence.tar.xz"


@pytest.fixture(scope="module")
def run() -> tollens.Run:
    return tollens.open_run(TIMED)


@pytest.mark.parametrize("archive", [TIMED, OTHER])
def test_a_run_has_its_verdicts(archive: pathlib.Path) -> None:
    rows = {row["id"]: row for row in json.loads(
        archive.with_name("results.json").read_text())["claims"]}
    read = tollens.open_run(archive)
    assert read.device == "NVIDIA H200" and read.device_kind == "cuda" and read.mode == "full"
    assert [claim.id for claim in read] == list(rows)
    for claim in read.claims:
        row = rows[claim.id]
        assert (claim.verdict, claim.effect, claim.low, claim.high, claim.threshold) == (
            row["verdict"], row["effect"], row["low"], row["high"], row["threshold"])
    assert read.count("survived") == sum(row["verdict"] == "survived" for row in rows.values())


def test_a_claims_histograms_are_those_of_all_processes(run: tollens.Run) -> None:
    series = {one.name: one for one in run.claim("H4").series}["launch_1_argument_runtime"]
    assert series.processes == 6 and series.histogram.total == 12000
    middle, late = (series.histogram.percentile(percent) for percent in (50, 99))
    assert 500 < middle <= late <= series.histogram.maximum  # nanoseconds


def test_a_claim_that_is_not_there_is_named(run: tollens.Run) -> None:
    with pytest.raises(KeyError, match="has no claim H99; it has H4"):
        run.claim("H99")


def test_what_was_changed_is_refused(tmp_path: pathlib.Path) -> None:
    with tarfile.open(TIMED) as archive:
        archive.extractall(tmp_path)
    folder = min((path.parent for path in tmp_path.rglob("results.json")),
                 key=lambda path: len(path.parts))
    assert tollens.open_run(folder).count("falsified") == 0
    text = (folder / "results.json").read_text()
    (folder / "results.json").write_text(text.replace('"survived"', '"falsified"', 1))
    with pytest.raises(ValueError, match="results.json"):
        tollens.open_run(folder)
    shutil.rmtree(folder)
    with pytest.raises((ValueError, OSError), match="there is no evidence folder"):
        tollens.open_run(folder)
