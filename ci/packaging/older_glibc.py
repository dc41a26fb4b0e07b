"""Makes packaged programs and libraries run with glibc 2.28, of RHEL 8 and Debian 10.

What is linked on a newer system asks for newer versions of symbols: glibc 2.34 gave those of
libpthread and libdl the version 2.34 when it took them over, and mathematical functions got new
ones in 2.29. The functions do the same. So references to versions newer than 2.28 lose their
version, and the libraries that had the functions are named as needed; newer systems have them
still, empty. What an older glibc lacks is in older_glibc.c, which programs find in lib/ beside
them.

    python3 ci/packaging/older_glibc.py FOLDER    all programs and libraries in it and in its lib/

Needs patchelf; without it nothing is changed, and the files need the newer glibc.
"""

import pathlib
import re
import shutil
import struct
import subprocess
import sys

import target
from contents import ROOT, glibc_needed, output

NEWEST = (2, 28)
OLDEST = b"GLIBC_2.2.5" if target.machine() == "x86_64" else b"GLIBC_2.17"
SHIM = "libtollens-older-glibc.so"
# Where functions were before glibc 2.34.
HOMES = {"libdl.so.2": ("dl",), "libpthread.so.0": ("pthread_", "sem_"), "librt.so.1": ("shm_",),
         "libanl.so.1": ("getaddrinfo_a", "gai_")}
SHIMMED = {"stat", "fstat", "lstat", "stat64", "mallinfo2", "__libc_start_main"}
GNU_VERSYM, GNU_VERNEED, DYNSYM = 0x6FFFFFFF, 0x6FFFFFFE, 11
GLOBAL = 1  # the version of a symbol without a version


class Elf:
    """A little-endian file of 64 bits, as far as versions of symbols go."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.bytes = path, bytearray(path.read_bytes())
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no ELF file of 64 bits")
        offset, = struct.unpack_from("<Q", self.bytes, 0x28)
        size, count = struct.unpack_from("<HH", self.bytes, 0x3A)
        # type, offset, size, and the number of the section with the names
        rows = (struct.unpack_from("<IIQQQQII", self.bytes, offset + i * size)
                for i in range(count))
        self.sections = [(row[1], row[4], row[5], row[6]) for row in rows]

    def section(self, kind: int) -> tuple[int, int, int] | None:
        """Offset, size, and the offset of its names."""
        for found, offset, size, link in self.sections:
            if found == kind:
                return offset, size, self.sections[link][1]
        return None

    def text(self, at: int) -> str:
        return self.bytes[at:self.bytes.index(0, at)].decode()

    def forget_versions(self) -> set[str]:
        """Takes newer versions of glibc away. Returns the names that had them."""
        needs, symbols, versions = map(self.section, (GNU_VERNEED, DYNSYM, GNU_VERSYM))
        if needs is None or symbols is None or versions is None:
            return set()
        gone = self.unlink(needs[0], needs[2])
        names = set()
        for i in range(versions[1] // 2):
            at = versions[0] + 2 * i
            if struct.unpack_from("<H", self.bytes, at)[0] & 0x7FFF in gone:
                struct.pack_into("<H", self.bytes, at, GLOBAL)
                name, = struct.unpack_from("<I", self.bytes, symbols[0] + 24 * i)
                names.add(self.text(symbols[2] + name))
        return names

    def write(self) -> None:
        self.path.write_bytes(self.bytes)

    def unlink(self, needed: int, names: int) -> set[int]:
        """Takes the newer versions out of the lists of each library. Returns their numbers."""
        gone = set()
        while True:
            _, count, _, first, following = struct.unpack_from("<HHIII", self.bytes, needed)
            at, before = needed + first, 0
            kept = 0
            for _ in range(count):
                _, _, number, name, step = struct.unpack_from("<IHHII", self.bytes, at)
                after = at + step
                version = self.text(names + name)
                if version.startswith("GLIBC_2.") and newer(version):
                    gone.add(number)
                    if before:  # the entry before it is linked to the one after it
                        struct.pack_into("<I", self.bytes, before + 12,
                                         after - before if step else 0)
                    elif step:
                        struct.pack_into("<I", self.bytes, needed + 8, after - needed)
                else:
                    before, kept = at, kept + 1
                at = after
            if kept == 0:  # a library must be asked for something: for its oldest version
                self.rename(needed + first, names)
                kept = 1
                struct.pack_into("<I", self.bytes, needed + 8, first)
            struct.pack_into("<H", self.bytes, needed + 2, kept)
            if following == 0:
                return gone
            needed += following

    def rename(self, at: int, names: int) -> None:
        """Makes an entry the only one, and one for the oldest version."""
        name = self.bytes.find(b"\0" + OLDEST + b"\0", names)
        if name < 0:
            raise ValueError(f"{self.path} asks a library for newer versions alone")
        struct.pack_into("<I", self.bytes, at, elf_hash(OLDEST))
        struct.pack_into("<II", self.bytes, at + 8, name + 1 - names, 0)


def elf_hash(name: bytes) -> int:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def newer(version: str) -> bool:
    return tuple(map(int, version.removeprefix("GLIBC_").split("."))) > NEWEST


def known_before() -> set[str]:
    """The names that this machine's glibc has for programs linked against 2.28, too."""
    known: set[str] = set()
    for library in ("libc.so.6", "libm.so.6", "libanl.so.1"):
        path = output(*target.compiler(), f"-print-file-name={library}").strip()
        known |= {name for version, name in re.findall(r"\(?(GLIBC_2[\d.]+)\)?\s+(\S+)",
                                                       output(target.tool("objdump"), "-T", path))
                  if not newer(version)}
    return known


def can() -> bool:
    return shutil.which("patchelf") is not None


def make_shim(folder: pathlib.Path) -> None:
    path = folder / SHIM
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([*target.compiler(), "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra",
                    "-Werror", "-fPIC", "-shared", f"-Wl,-soname,{SHIM}", "-o", str(path),
                    str(ROOT / "ci/packaging/older_glibc.c"), "-ldl"], check=True)
    subprocess.run([target.tool("strip"), "--strip-debug", str(path)], check=True)
    make_older(path)


def make_older(path: pathlib.Path) -> None:
    """Of one file, in place. ValueError: it needs what cannot be had in an older glibc, and is as
    it was."""
    elf = Elf(path)
    names = elf.forget_versions()
    needed = [library for library, beginnings in HOMES.items()
              if any(name.startswith(beginnings) for name in names)]
    shimmed = names & SHIMMED
    unknown = names - SHIMMED - known_before()
    if unknown:
        raise ValueError(f"{path.name} needs {', '.join(sorted(unknown))}, which glibc 2.28 "
                         "lacks")
    if shimmed and ".so" in path.name:
        raise ValueError(f"{path.name} needs {', '.join(sorted(shimmed))}, which libraries lack")
    if shimmed:
        needed.append(SHIM)
    elf.write()
    for library in needed:  # patchelf puts each before the others
        subprocess.run(["patchelf", "--add-needed", library, str(path)], check=True)
    if glibc_needed(path) > NEWEST:
        raise ValueError(f"{path} still needs a newer glibc: "
                         f"{output(target.tool('objdump'), '-T', path)}")


def make_all(folder: pathlib.Path) -> None:
    """Of all programs and libraries in a folder, and in lib/ below it, which gets the shim.
    ValueError: of some it cannot be done; the others are done."""
    make_shim(folder / "lib")
    wrong = []
    for path in sorted([*folder.iterdir(), *(folder / "lib").iterdir()]):
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            try:
                make_older(path)
            except ValueError as error:
                wrong.append(str(error))
    if wrong:
        raise ValueError("; ".join(wrong))


def main() -> int:
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    if not can():
        print("older_glibc: there is no patchelf: the programs need the glibc of this machine")
        return 0
    try:
        make_all(pathlib.Path(sys.argv[1]))
    except (ValueError, OSError, subprocess.CalledProcessError) as error:
        print(f"older_glibc: {error}: the others run with 2.28", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
