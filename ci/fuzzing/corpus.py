"""The committed inputs of the fuzz targets, for ci/fuzz: fixtures/corpus/TARGET.tar.xz, so that a
folder of hundreds of small files is one file. Each input's name is the SHA-1 of its bytes, as
libFuzzer names them, with found- before it where the input once was a finding: those stay, whatever
they reach. The same inputs make the same archive.
"""

import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from reports import archive  # noqa: E402  (the other folder)

CORPUS = ROOT / "fixtures/corpus"
INPUTS_MAX, BYTES_MAX = 1000, 1 << 20  # xz makes about a tenth of it


def archive_of(target: str) -> pathlib.Path:
    return CORPUS / f"{target}.tar.xz"


def unpack(target: str, folder: pathlib.Path) -> int:
    """Writes the inputs of a target to a folder; returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    if not archive_of(target).exists():
        return 0
    inputs = archive.members(archive.decompressed(archive_of(target).read_bytes()))
    for name, content in inputs.items():
        if "/" in name:
            raise OSError(f"{archive_of(target)}: {name} is in a folder")
        (folder / name).write_bytes(content)
    return len(inputs)


def write(target: str, folder: pathlib.Path, findings: list[pathlib.Path]) -> dict[str, bytes]:
    """Packs all findings, and a folder's smallest files up to the limit. Returns what it packed."""
    kept: dict[str, bytes] = {}
    for data in (path.read_bytes() for path in findings):
        kept[f"found-{hashlib.sha1(data).hexdigest()}"] = data
    size = sum(map(len, kept.values()))
    for data in sorted((path.read_bytes() for path in folder.iterdir()), key=lambda d: (len(d), d)):
        if len(kept) < INPUTS_MAX and size + len(data) <= BYTES_MAX:
            kept[hashlib.sha1(data).hexdigest()] = data
            size += len(data)
    CORPUS.mkdir(parents=True, exist_ok=True)
    archive_of(target).write_bytes(archive.packed(kept))
    return kept
