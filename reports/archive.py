"""An evidence archive, read as if it were the folder it was made from.

reports/pack.py writes such archives. The archive is checked and read into memory; nothing is
unpacked to disk, so no member can write anywhere. One that is damaged, foreign, too large or has
links in it raises ValueError.
"""

import errno
import io
import lzma
import pathlib
import struct
import tarfile
from collections.abc import Iterator
from typing import TextIO

NAME = "evidence.tar.xz"
BYTES_MAX = 256 << 20    # of an archive's files together; the largest published run has 9 MB
FILES_MAX = 100_000
MEMORY_MAX = 128 << 20   # of the decompressor, which needs 65 MiB for archives of reports/pack.py


class Archived:
    """A file or a folder in an archive, with those methods of pathlib.Path that readers call."""

    def __init__(self, archive: pathlib.Path, files: dict[str, bytes], inner: str = "") -> None:
        self.archive, self.files, self.inner = archive, files, inner

    def __truediv__(self, name: str) -> "Archived":
        return Archived(self.archive, self.files, f"{self.inner}/{name}" if self.inner else name)

    def __str__(self) -> str:
        return f"{self.archive}/{self.inner}" if self.inner else str(self.archive)

    def __lt__(self, other: "Archived") -> bool:
        return self.inner.split("/") < other.inner.split("/")

    @property
    def name(self) -> str:
        return self.inner.rpartition("/")[2]

    def below(self) -> Iterator[str]:
        """The names of all files in this folder, relative to it."""
        prefix = f"{self.inner}/" if self.inner else ""
        return (name[len(prefix):] for name in self.files if name.startswith(prefix))

    def is_dir(self) -> bool:
        return next(self.below(), None) is not None

    def exists(self) -> bool:
        return self.inner in self.files or self.is_dir()

    def iterdir(self) -> "Iterator[Archived]":
        return (self / name for name in dict.fromkeys(n.split("/")[0] for n in self.below()))

    def glob(self, pattern: str) -> "Iterator[Archived]":
        """As pathlib's; ** may stand only at the beginning."""
        tail = pattern.removeprefix("**/")
        for name in self.below():
            if ((tail != pattern or name.count("/") == tail.count("/"))
                    and pathlib.PurePosixPath(name).match(tail)):
                yield self / name

    def read_bytes(self) -> bytes:
        if self.inner not in self.files:
            raise FileNotFoundError(errno.ENOENT, "the archive has no such file", str(self))
        return self.files[self.inner]

    def open(self, newline: "str | None" = None, encoding: str = "utf-8",
             errors: str = "strict") -> TextIO:
        return io.TextIOWrapper(io.BytesIO(self.read_bytes()), encoding, errors, newline)

    def read_text(self, encoding: str = "utf-8") -> str:
        text = self.read_bytes().decode(encoding)
        # As a text file's ends of lines are read.
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


Folder = pathlib.Path | Archived


def packed(files: dict[str, bytes]) -> bytes:
    """An archive of files: the same for the same files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)  # time, user and group 0, mode 0644
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def decompressed(packed: bytes) -> bytes:
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, MEMORY_MAX)
    plain = stream.decompress(packed, BYTES_MAX + 1)
    if len(plain) > BYTES_MAX:
        raise ValueError(f"it unpacks to more than {BYTES_MAX >> 20} MiB")
    if not stream.eof:
        raise ValueError("it is cut off")
    if stream.unused_data:
        raise ValueError(f"{len(stream.unused_data)} bytes follow its end")
    return plain


def checked_name(member: tarfile.TarInfo) -> str:
    """The member's name without "./"; "" for the top folder itself."""
    parts = [part for part in member.name.split("/") if part != "."]
    if ".." in parts or "" in parts or "\\" in member.name or not member.name.isprintable():
        raise ValueError(f"the name of its member {member.name!r} leads outside of it")
    if not member.isdir() and (member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE)
                               or member.issparse()):
        raise ValueError(f"its member {member.name!r} is a link or a special file")
    return "/".join(parts)


def members(plain: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
        for count, member in enumerate(archive, 1):
            if count > FILES_MAX:
                raise ValueError(f"it has more than {FILES_MAX} members")
            name = checked_name(member)
            if member.isdir():
                continue
            if name in files:
                raise ValueError(f"it has the member {name!r} twice")
            file = archive.extractfile(member)
            files[name] = file.read() if file else b""
            if len(files[name]) != member.size:
                raise ValueError(f"its member {name!r} is cut off")
    return files


def load(path: pathlib.Path) -> Archived:
    """Reads an archive. ValueError says why it cannot be evidence."""
    try:
        if path.stat().st_size > BYTES_MAX:
            raise ValueError(f"it is larger than {BYTES_MAX >> 20} MiB")
        return Archived(path, members(decompressed(path.read_bytes())))
    except (ValueError, lzma.LZMAError, tarfile.TarError, OverflowError, RecursionError,
            struct.error) as error:
        why = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise ValueError(f"{path} is not an evidence archive (.tar.xz): {why}") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def is_folder(path: pathlib.Path) -> bool:
    """Whether it is an evidence folder itself, and neither an archive nor a folder with one."""
    return path.is_dir() and ((path / "run.json").exists() or not (path / NAME).is_file())


def open_folder(path: pathlib.Path) -> Folder:
    """An evidence folder, an archive of one, or a folder with such an archive in it."""
    if path.is_dir():
        return path if is_folder(path) else load(path / NAME)
    if not path.exists():
        raise ValueError(f"there is no evidence folder or archive {path}")
    return load(path)


def sizes(folder: Folder) -> dict[str, int]:
    """The bytes of each file by its name, sorted; without a report that was written there."""
    if isinstance(folder, Archived):
        return {name: len(data) for name, data in sorted(folder.files.items())}
    found = {path.relative_to(folder).as_posix(): path.stat().st_size
             for path in folder.rglob("*") if path.is_file()}
    return {name: found[name] for name in sorted(found) if not name.startswith("report/")}


def unpack(path: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Writes an archive's files below a folder, and returns that folder; a folder stays what it
    is."""
    folder = open_folder(path)
    if not isinstance(folder, Archived):
        return folder
    for name, data in folder.files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(data)
    return out
