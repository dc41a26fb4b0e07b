"""Reads the files of one evidence folder or archive into memory.

The folder may come from a machine that lost power, or from an attacker. Nothing outside of it is
read, links and special files are refused, sizes are bounded, and every message names the folder.
"""

import errno
import hashlib
import os
import pathlib
from typing import Any

from .. import archive
from ..archive import Archived


class Missing(ValueError):
    """No file or folder has that name."""


# Opened without waiting: a pipe would.
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FIRST = 1 << 16  # more than most files have


def read_file(path: str, left: int) -> bytes:
    """Reads a regular file of at most `most` bytes."""
    place = os.open(path, FLAGS)
    try:
        data = os.read(place, FIRST)
        if len(data) == FIRST:  # with less it has ended
            # One byte more than it has, so that one that grows is noticed.
            data += os.read(place, max(0, min(os.fstat(place).st_size, left) - FIRST) + 1)
            while len(data) <= left and (more := os.read(place, FIRST)):
                data += more
    finally:
        os.close(place)
    if len(data) > left:
        raise ValueError(f"it has more than {archive.BYTES_MAX >> 20} MiB")
    return data


def read_folder(top: str) -> dict[str, bytes]:
    """All files of a folder, by their names; a report that was written there is left out."""
    files: dict[str, bytes] = {}
    left, waiting = archive.BYTES_MAX, [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(top, below)) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if name == "report":
                    continue
                if not name.isprintable() or "\\" in name:
                    raise ValueError(f"the name {name!r} is none of a run's files")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(name + "/")
                elif not entry.is_file(follow_symlinks=False):
                    raise ValueError(f"its {name!r} is a link or a special file")
                else:
                    files[name] = read_file(entry.path, left)
                    left -= len(files[name])
                if len(files) + len(waiting) > archive.FILES_MAX:
                    raise ValueError(f"it has more than {archive.FILES_MAX} files")
    return files


def load(path: pathlib.Path) -> Archived:
    """The files of a folder, an archive, or a folder with an archive. Missing, or ValueError."""
    if not path.exists():
        raise Missing(f"there is no {path}")
    if not path.is_dir():
        if not path.is_file():
            raise ValueError(f"{path} is neither a folder nor an archive")
        return archive.load(path)
    if not archive.is_folder(path):
        return archive.load(path / archive.NAME)
    try:
        return Archived(path, read_folder(str(path)))
    except OSError as error:
        why = "a link" if error.errno == errno.ELOOP else error.strerror
        raise ValueError(f"{path} cannot be read: {error.filename}: {why}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def digest(files: dict[str, bytes]) -> str:
    """Equal for equal files. The files that a manifest lists were checked against it, so the
    manifest and run.json stand for all of them."""
    whole = hashlib.sha256()
    names = ("manifest.json", "run.json") if "manifest.json" in files else sorted(files)
    for name in names:
        whole.update(f"{name}\0{len(files[name])}\0".encode())
        whole.update(files[name])
    return whole.hexdigest()


def listed_only(folder: Archived, listed: dict[str, Any] | None) -> Archived:
    """Without files that the run did not list, where it has a list."""
    if listed is None:
        return folder
    names = {*listed, "manifest.json", "run.json"}
    return Archived(folder.archive, {name: data for name, data in folder.files.items()
                                     if name in names})


def is_file(path: Archived) -> bool:
    """Faster than exists(), which also searches all names for a folder."""
    return path.inner in path.files
