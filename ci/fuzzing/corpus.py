"""The committed inputs of the fuzz targets, for ci/fuzz: fixtures/corpus/TARGET.tar.xz, so that a
folder of hundreds of small files is one file. Each input's name is the SHA-1 of its bytes, as
libFuzzer names them, with found- before it where the input once was a finding: those stay, whatever
they reach. The same inputs make the same archive.
"""

import hashlib
import io
import lzma
import pathlib
import tarfile

CORPUS = pathlib.Path(__file__).resolve().parents[2] / "fixtures/corpus"
INPUTS_MAX, BYTES_MAX = 1000, 1 << 20  # xz makes about a tenth of it


def archive_of(target: str) -> pathlib.Path:
    return CORPUS / f"{target}.tar.xz"


def unpack(target: str, folder: pathlib.Path) -> int:
    """Writes the inputs of a target to a folder; returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    if not archive_of(target).exists():
        return 0
    count = 0
    with tarfile.open(archive_of(target), "r:xz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is None or "/" in member.name:
                raise OSError(f"{archive_of(target)}: {member.name} is no plain file")
            (folder / member.name).write_bytes(content.read())
            count += 1
    return count


def pack(inputs: dict[str, bytes]) -> bytes:
    """An archive without what differs by machine or by time."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(inputs):
            member = tarfile.TarInfo(name)
            member.size = len(inputs[name])
            archive.addfile(member, io.BytesIO(inputs[name]))
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def write(target: str, folder: pathlib.Path, findings: list[pathlib.Path]) -> dict[str, bytes]:
    """Packs all findings, and the smallest files of a folder up to the limit. Returns
    what it packed."""
    kept: dict[str, bytes] = {}
    for data in (path.read_bytes() for path in findings):
        kept[f"found-{hashlib.sha1(data).hexdigest()}"] = data
    size = sum(map(len, kept.values()))
    for data in sorted((path.read_bytes() for path in folder.iterdir()), key=lambda d: (len(d), d)):
        if len(kept) < INPUTS_MAX and size + len(data) <= BYTES_MAX:
            kept[hashlib.sha1(data).hexdigest()] = data
            size += len(data)
    CORPUS.mkdir(parents=True, exist_ok=True)
    archive_of(target).write_bytes(pack(kept))
    return kept
