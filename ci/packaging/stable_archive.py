"""Archives and sums that depend only on contents: the same files give the same bytes at any time,
in any place."""

import hashlib
import lzma
import os
import pathlib
import subprocess

SUMS = "SHA256SUMS"


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pack(folder: pathlib.Path, top: str, when: int, target: pathlib.Path) -> None:
    """Writes a folder as TARGET, a .tar.xz in which it is called top. The archive has no owner,
    time or mode of this machine."""
    content = subprocess.run(
        ["tar", "-C", str(folder), "-c", "--format=gnu", "--sort=name", f"--mtime=@{when}",
         "--owner=root:0", "--group=root:0", "--mode=u=rwX,go=rX",
         f"--transform=flags=r;s,^\\.,{top},", "."],
        check=True, stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}).stdout
    compress(content, target)


def compress(content: bytes, target: pathlib.Path) -> None:
    target.write_bytes(lzma.compress(content, preset=6))


def files_of(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def write_sums(folder: pathlib.Path) -> None:
    """In the form that `sha256sum -c` reads."""
    lines = [f"{sha256(path)}  {path.name}\n" for path in files_of(folder) if path.name != SUMS]
    (folder / SUMS).write_text("".join(lines))


def differences(first: pathlib.Path, second: pathlib.Path) -> list[str]:
    """One sentence per file in which two folders differ."""
    ours, theirs = ({path.name: path for path in files_of(folder)} for folder in (first, second))
    wrong = [f"{name} was made only once" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        a, b = ours[name].read_bytes(), theirs[name].read_bytes()
        if a != b:
            at = len(os.path.commonprefix([a, b]))
            wrong.append(f"{name} differs from byte {at} on ({len(a)} and {len(b)} bytes)")
    return wrong
