"""Checks evidence: no file may be missing, changed since the run, or of another schema.

A run ends by writing manifest.json, which lists its files with their sizes and CRC-32. Older
evidence has no such list; its files are checked against each other.
"""

import json
import zlib
from typing import Any

from .archive import Archived, Folder

SCHEMA = 1


def read_json(path: Folder) -> dict[str, Any]:
    """Reads a JSON object of the schema that this program knows. ValueError names the file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} is not a JSON object")
    if data.get("schema", SCHEMA) != SCHEMA:
        raise ValueError(f"{path} has schema {data['schema']!r}, but this program reads schema "
                         f"{SCHEMA}: the run is newer, or files of two versions are mixed")
    return data


def contents(folder: Folder, name: str) -> bytes:
    """As (folder / name).read_bytes(), which makes an object for each of many names."""
    if isinstance(folder, Archived) and not folder.inner and name in folder.files:
        return folder.files[name]
    return (folder / name).read_bytes()


def check_manifest(folder: Folder, run: dict[str, Any]) -> dict[str, Any] | None:
    """What the manifest lists, by name, or None if there is no manifest. ValueError names the first
    file that differs from it. A run.json with a CRC of the list means that there must be one."""
    path = folder / "manifest.json"
    if not path.exists():
        if run.get("list_crc32"):
            raise ValueError(f"{path} is missing, though the run wrote it")
        return None
    try:
        crc = f"{zlib.crc32(path.read_bytes()):08x}"
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if run.get("list_crc32", crc) != crc:
        raise ValueError(f"{path} has changed since the run: its CRC is {crc}, not "
                         f"{run['list_crc32']}")
    files = read_json(path).get("files")
    if not isinstance(files, dict):
        raise ValueError(f"{path} lists no files")
    for name, recorded in files.items():
        if not isinstance(recorded, dict):
            raise ValueError(f"{path} says neither size nor CRC of {name!r}")
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{path} lists {name!r}, which is outside of the folder")
        try:
            data = contents(folder, name)
        except OSError as error:
            raise ValueError(f"{folder / name} is missing or cannot be read "
                             f"({error.strerror}), though the run wrote it") from error
        crc = "%08x" % zlib.crc32(data)  # half the time of an f-string, for hundreds of files
        if len(data) != recorded.get("bytes") or crc != recorded.get("crc32"):
            raise ValueError(f"{folder / name} has changed since the run: it has {len(data)} bytes "
                             f"with CRC {crc}, not {recorded.get('bytes')} with "
                             f"{recorded.get('crc32')}")
    return files


def check_verdict(path: Folder, verdict: dict[str, Any], result: dict[str, Any]) -> None:
    """A claim's own verdict must equal its row in results.json."""
    for key, value in result.items():
        if key in verdict and verdict[key] != value:
            raise ValueError(f"{path} says that {key} is {verdict[key]!r}, but results.json says "
                             f"{value!r}: they are from two runs")


def check_series(path: Folder, recorded: list[dict[str, Any]],
                 found: "dict[str, tuple[int, int]]") -> None:
    """The log of an attack must have each series in its record. found: (count, maximum) by name."""
    for series in recorded:
        name = str(series["name"])[:60]
        if name not in found:
            raise ValueError(f"{path} has no series {name}, which the attack's record lists")
        count, maximum = found[name]
        if count != series["count"] or (count > 0 and maximum < series["max"]):
            raise ValueError(f"{path}: the series {name} has {count} values up to {maximum}, but "
                             f"the attack's record says {series['count']} up to {series['max']}")
