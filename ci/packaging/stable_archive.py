"""Archives and sums that depend on contents alone: the same files give the same bytes, whenever,
where and by whom they were made.
"""

import hashlib
import io
import lzma
import os
import pathlib
import tarfile

SUMS = "SHA256SUMS"


def sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") \
            else hashlib.sha256(file.read()).hexdigest()


def member(path: pathlib.Path, name: str, when: int) -> tarfile.TarInfo:
    """Owner, time and modes are the archive's: those of this machine are nobody's business."""
    info = tarfile.TarInfo(name)
    info.mtime = when
    info.uname = info.gname = "root"
    runs = path.is_dir() or os.access(path, os.X_OK)
    info.mode = 0o755 if runs else 0o644
    if path.is_symlink():
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
    elif path.is_dir():
        info.type = tarfile.DIRTYPE
    else:
        info.size = path.stat().st_size
    return info


def pack(folder: pathlib.Path, top: str, when: int, target: pathlib.Path) -> None:
    """Writes a folder as TARGET, a .tar.xz in which it is called top."""
    with lzma.open(target, "wb", preset=6) as out, \
            tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            inner = path.relative_to(folder)
            info = member(path, (pathlib.PurePosixPath(top) / inner).as_posix(), when)
            if info.isreg():
                with path.open("rb") as file:
                    archive.addfile(info, file)
            else:
                archive.addfile(info)


def compress(content: bytes, target: pathlib.Path) -> None:
    target.write_bytes(lzma.compress(content, preset=6))


def files_of(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def write_sums(folder: pathlib.Path) -> None:
    """In the form that `sha256sum -c` reads."""
    lines = io.StringIO()
    for path in files_of(folder):
        if path.name != SUMS:
            lines.write(f"{sha256(path)}  {path.name}\n")
    (folder / SUMS).write_text(lines.getvalue())


def check_sums(folder: pathlib.Path) -> list[str]:
    """What is wrong with a folder: a sentence for each file. Empty: nothing."""
    if not (folder / SUMS).is_file():
        return [f"{folder} has no {SUMS}"]
    listed = dict(reversed(line.split("  ", 1)) for line in
                  (folder / SUMS).read_text().splitlines())
    here = {path.name: path for path in files_of(folder) if path.name != SUMS}
    wrong = [f"{name} is missing" for name in sorted(listed.keys() - here.keys())]
    wrong += [f"{name} is not in {SUMS}" for name in sorted(here.keys() - listed.keys())]
    wrong += [f"{name} was changed" for name in sorted(listed.keys() & here.keys())
              if sha256(here[name]) != listed[name]]
    return wrong


def differences(first: pathlib.Path, second: pathlib.Path) -> list[str]:
    """How two folders of files differ, a sentence for each file. Empty: not at all."""
    ours, theirs = ({path.name: path for path in files_of(folder)} for folder in (first, second))
    wrong = [f"{name} was made only once" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        a, b = ours[name].read_bytes(), theirs[name].read_bytes()
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            wrong.append(f"{name} differs from byte {at} on ({len(a)} and {len(b)} bytes)")
    return wrong
