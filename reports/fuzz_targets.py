"""Fuzz targets in Python, for what only Python reads: TOML, manifests, evidence, archives, tables.

    python3 -m reports.fuzz_targets --replay NAME FILE-OR-FOLDER...    runs the target over files
    build/fuzz-python/bin/python3 -m reports.fuzz_targets NAME ...     under libFuzzer, by Atheris

A target takes any bytes. An exception that it raises is a finding: a reader must either accept its
input or raise ValueError with a sentence, and what it accepts must be consistent.
"""

import base64
import contextlib
import faulthandler
import io
import pathlib
import re
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable

SECONDS_MAX = 60  # of one input in a replay
HEADER = re.compile(rb"(?:\A|\n)==== (\S+)\n")
NAMED_ONLY = {0x24, 0x40, 0x60}  # what C lets be named by \u below 0xA0

with contextlib.ExitStack() as instrumented:
    if "atheris" in sys.modules or (__name__ == "__main__" and "--replay" not in sys.argv):
        import atheris
        instrumented.enter_context(atheris.instrument_imports(
            include=["reports", "tomllib", "json", "tarfile", "csv"]))
    import tarfile
    from reports import (
        appendix, archive, evidence, hdr, integrity, markdown, page, requirements, tables,
        thresholds)


def sections(data: bytes) -> dict[str, bytes]:
    """The files of an input: a line "==== NAME" before each, which ends the one before."""
    parts = HEADER.split(data)
    return {name.decode(errors="replace"): content
            for name, content in zip(parts[1::2], parts[2::2])}


def files(data: bytes) -> archive.Archived:
    return archive.Archived(pathlib.Path("input"), sections(data))


def refused(read: Callable[[], object]) -> bool:
    """Whether the reader refuses, which it must say why."""
    try:
        read()
    except ValueError as error:
        assert str(error), "refused without a reason"
        return True
    return False


def check_c_string(text: str) -> None:
    """What json.dumps writes is also a C string, except for these."""
    assert "\n" not in text
    for number in re.findall(r"(?<!\\)(?:\\\\)*\\u([0-9a-f]{4})", text):
        value = int(number, 16)
        assert value in NAMED_ONLY or 0xA0 <= value < 0xD800 or value >= 0xE000, (
            f"\\u{number} is no character that C can name")


def toml(data: bytes) -> None:
    """thresholds.toml and sabotage.toml: what is accepted becomes rows that C can read."""
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        for name, content in sections(data).items():
            if name in ("thresholds.toml", "sabotage.toml"):
                pathlib.Path(folder, name).write_bytes(content)
        try:
            claims, saboteurs = thresholds.load(pathlib.Path(folder))
        except ValueError as error:
            assert str(error), "refused without a reason"
            return
    rows = thresholds.as_c(claims, saboteurs).splitlines()
    assert sum(row.startswith("HYP_CLAIM(") for row in rows) == len(claims)
    for row in rows:
        check_c_string(row)


def demands(data: bytes) -> None:
    """requirements.toml."""
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        path = pathlib.Path(folder, "requirements.toml")
        path.write_bytes(data)
        if not refused(lambda: requirements.load(path)):
            rows = requirements.load(path)[0]
            assert len({row["id"] for row in rows}) == len(rows)
            assert all(requirements.state(row, {}) for row in rows)
        if not refused(lambda: requirements.citations(path)):
            assert all(requirements.citation_row(one) for one in requirements.citations(path))


def manifest(data: bytes) -> None:
    """The list of a run's files: what is accepted is what the same files would be listed as."""
    folder = files(data)
    try:
        run = integrity.read_json(folder / "run.json")
        has_manifest = integrity.check_manifest(folder, run) is not None
    except ValueError as error:
        assert str(error), "refused without a reason"
        return
    assert has_manifest == (folder / "manifest.json").exists()
    if has_manifest:
        for name, row in integrity.read_json(folder / "manifest.json")["files"].items():
            assert row["bytes"] == len((folder / name).read_bytes())


def run(data: bytes) -> None:
    """The files of a whole run, and the report of it."""
    folder = files(data)
    try:
        found = evidence.read_folder(folder, pathlib.Path("input"))
    except ValueError as error:
        assert str(error), "refused without a reason"
        return
    assert len(found.claims) == len(found.results["claims"])
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # one sentence, too
        page.render([found], appendix.html([found]))
        markdown.render([found], appendix.text([found]))
    assert sum(found.count(verdict) for verdict in evidence.VERDICTS) == len(found.claims)


def check_histogram(histogram: hdr.Histogram) -> None:
    values = [value for value, _ in histogram.buckets]
    assert values == sorted(set(values)) and all(count > 0 for _, count in histogram.buckets)
    assert not values or values[-1] < 1 << 64
    assert histogram.percentile(50) <= histogram.percentile(100) == histogram.maximum
    merged = histogram.merged(histogram)
    assert merged.total == 2 * histogram.total and len(merged.buckets) == len(values)


def histogram(data: bytes) -> None:
    """A histogram before its compression, whose checksum no fuzzer guesses."""
    packed = zlib.compress(data, 1)
    text = base64.b64encode(struct.pack(">ii", hdr.COMPRESSED_V2, len(packed)) + packed)
    try:
        found = hdr.decode(text.decode())
    except ValueError as error:
        assert str(error), "refused without a reason"
        return
    check_histogram(found)


def hlog(data: bytes) -> None:
    """A log of histograms, as the reports read it."""
    folder = archive.Archived(pathlib.Path("input"), {"a.hlog": data})
    try:
        series = hdr.read_log(folder / "a.hlog")
    except ValueError as error:
        assert str(error), "refused without a reason"
        return
    for _, found in series:
        check_histogram(found)


def table(data: bytes) -> None:
    """A table of an attack."""
    folder = archive.Archived(pathlib.Path("input"), {"attack.name.csv": data})
    refused(lambda: tables.read("H1", "attack", 1, folder))


def tar(data: bytes) -> None:
    """The members of an archive, without its compression: no name leads out of it."""
    try:
        members = archive.members(data)
    except (ValueError, tarfile.TarError, OverflowError, RecursionError, struct.error):
        return  # what archive.load turns into ValueError
    for name in members:
        assert ".." not in name.split("/") and not name.startswith("/"), name


TARGETS = {"toml": toml, "demands": demands, "manifest": manifest, "evidence": run,
           "report-hlog": hlog, "report-hdr": histogram,
           "report-table": table, "tar": tar}
FAST = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None


def replay(target: Callable[[bytes], None], paths: list[str]) -> int:
    count = 0
    for path in map(pathlib.Path, paths):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            faulthandler.dump_traceback_later(SECONDS_MAX, exit=True)
            try:
                target(file.read_bytes())
            except BaseException:
                print(f"replay: this input ended the target: {file}", file=sys.stderr)
                raise
            count += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"replay: {count} inputs")
    return 0


def main() -> int:
    words = sys.argv[1:]
    is_replay = words[:1] == ["--replay"]
    if len(words) <= is_replay or words[is_replay] not in TARGETS:
        print(__doc__)
        print("Targets:", ", ".join(TARGETS))
        return 2
    target = TARGETS[words[is_replay]]
    if is_replay:
        return replay(target, words[2:])
    sys.stdout = io.StringIO()
    # Merging starts this program again, by a shell.
    own = f"{sys.executable} -m reports.fuzz_targets {words[0]}"
    atheris.Setup([own, *words[1:]], target)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
