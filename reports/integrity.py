"""Whether an evidence folder is what the run left: nothing missing, changed, or of another schema.

A run that ended lists its files with their sizes and CRC-32 in manifest.json; evidence from before
that is held against what its files say of each other.
"""

import json
import zlib
from typing import Any

from reports.archive import Folder

SCHEMA = 1


def read_json(path: Folder) -> dict[str, Any]:
    """A JSON object of the schema that is known here. ValueError names the file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} is no JSON object")
    if data.get("schema", SCHEMA) != SCHEMA:
        raise ValueError(f"{path} is of schema {data['schema']!r}, and this program reads schema "
                         f"{SCHEMA}: the files of two versions are mixed, or the run is newer")
    return data


def check_manifest(folder: Folder, run: dict[str, Any]) -> bool:
    """Whether there is a manifest; ValueError names the first file that is not as it says. What
    run.json says of the run tells whether there must be one."""
    path = folder / "manifest.json"
    if not path.exists():
        if run.get("list_crc32"):
            raise ValueError(f"{path} is missing; the run wrote it")
        return False
    crc = f"{zlib.crc32(path.read_bytes()):08x}"
    if run.get("list_crc32", crc) != crc:
        raise ValueError(f"{path} is not what the run wrote: its CRC is {crc}, and not "
                         f"{run['list_crc32']}")
    files = read_json(path).get("files")
    if not isinstance(files, dict):
        raise ValueError(f"{path} lists no files")
    for name, told in files.items():
        try:
            data = (folder / name).read_bytes()
        except OSError as error:
            raise ValueError(f"{folder / name} is missing or cannot be read "
                             f"({error.strerror}); the run wrote it") from error
        if len(data) != told.get("bytes") or f"{zlib.crc32(data):08x}" != told.get("crc32"):
            raise ValueError(f"{folder / name} is not what the run wrote: {len(data)} bytes with "
                             f"CRC {zlib.crc32(data):08x}, and not {told.get('bytes')} with "
                             f"{told.get('crc32')}")
    return True


def check_verdict(path: Folder, verdict: dict[str, Any], result: dict[str, Any]) -> None:
    """A claim's own verdict must be its row of results.json."""
    for key, value in result.items():
        if key in verdict and verdict[key] != value:
            raise ValueError(f"{path} says {key} is {verdict[key]!r}, and results.json "
                             f"{value!r}: they are of two runs")


def check_series(path: Folder, told: list[dict[str, Any]],
                 found: "dict[str, tuple[int, int]]") -> None:
    """The log of an attack must have the series that its record tells of: (count, maximum)."""
    for series in told:
        name = str(series["name"])[:60]
        if name not in found:
            raise ValueError(f"{path} has no series {name}, of which the attack's record tells")
        count, maximum = found[name]
        if count != series["count"] or (count > 0 and maximum < series["max"]):
            raise ValueError(f"{path}: the series {name} has {count} values up to {maximum}, and "
                             f"the attack's record tells of {series['count']} up to "
                             f"{series['max']}")
