"""Makes the wheel for a processor that is not this machine's, and tries it under qemu.

    ci/package pip --arch aarch64

The build is separate, in build/cross: the sources, and a root with that processor's libraries of
Debian 12, which mmdebstrap unpacks. The wheel goes where this machine's goes. The
soft device has one level there, without what x86-64 has for AVX2 and AVX-512.

Then the program of the wheel says what it finds (doctor), and attacks a claim on the soft device.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

from contents import (
    BUILD, PACKAGES, QUIET_NINJA, Unmade, attempt, commit_time, compiler_of, copy_tree, tracked)
from fresh_system import DEBIAN, SYSTEMS

# By processor: the name that compilers have for it, and Debian's.
OTHERS = {"aarch64": ("aarch64-linux-gnu", "arm64")}
# What ci/setup asks for, of that processor.
LIBRARIES = ("libc6-dev", "linux-libc-dev", "libcriterion-dev", "libboxfort-dev", "libnanopb-dev",
             "libffi-dev", "libnanomsg-dev", "zlib1g-dev", "liblzma-dev", "libjansson-dev")
PROGRAMS = ("libs", "build/tollens", "build/libnvml-stand-in.so")
CLAIM = ("run", "H1", "--quick", "--seeds", "1", "--device", "soft")
# qemu keeps a note of each page that a program reserves: of 16 TiB it would be 20 GB.
ADDRESSES_KB = 60 << 20
# What is started by a program for the other processor is run by qemu as well, in this namespace.
ENTER = r"""
set -e
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf '%s' ":other:M::$1:$2:$3:F" >/proc/sys/fs/binfmt_misc/register
export QEMU_LD_PREFIX="$4"
shift 4
exec "$@"
"""
# The beginning of a program: 64 bits, little-endian, and the processor.
MACHINES = {"aarch64": r"\xb7\x00"}
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"


def qemu_of(machine: str) -> str | None:
    return shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")


def missing(machine: str) -> list[str]:
    """Debian's packages that it takes and this machine lacks."""
    triple, _ = OTHERS[machine]
    needed = {f"gcc-{triple}": shutil.which(f"{triple}-gcc"),
              "mmdebstrap": shutil.which("mmdebstrap"), "qemu-user-static": qemu_of(machine),
              "patchelf": shutil.which("patchelf")}
    return [name for name, found in needed.items() if not found]


def root_of(machine: str, folder: pathlib.Path) -> pathlib.Path:
    """With the libraries; made once."""
    root, partial = folder / "root", folder / "root.partial"
    if root.exists():
        return root
    shutil.rmtree(partial, ignore_errors=True)
    suite, _ = SYSTEMS["debian-12"]
    attempt("mmdebstrap", "--quiet", f"--architectures={OTHERS[machine][1]}", "--variant=extract",
            f"--include={','.join(LIBRARIES)}", suite, partial, DEBIAN.format(suite=suite),
            why=f"the libraries for {machine} could not be installed")
    partial.rename(root)
    return root


def build(machine: str, tree: pathlib.Path, root: pathlib.Path) -> pathlib.Path:
    """The wheel, as the tree's own ci/packaging/wheel.py makes it."""
    compiler = compiler_of(tree, f"{OTHERS[machine][0]}-gcc --sysroot={root}")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(commit_time()), "NVCC": "/nonexistent",
                   "CUDA_HOME": "/nonexistent"}
    (tree / "build").mkdir(exist_ok=True)
    (tree / "build/python").write_text(sys.executable + "\n")
    for words in ([sys.executable, "configure.py", "--cc", compiler],
                  [QUIET_NINJA, *PROGRAMS], [sys.executable, "ci/packaging/wheel.py"]):
        subprocess.run(words, cwd=tree, env=environment, check=True, stdout=subprocess.DEVNULL)
    return next((tree / "build/packages/dist").glob(f"*_{machine}.whl"))


def run(machine: str, root: pathlib.Path, words: list[str]) -> str:
    """What a program for the other processor printed. Unmade: it failed."""
    return attempt(
        "sh", "-c", f'ulimit -v {ADDRESSES_KB}; exec "$@"', "sh", "unshare", "--user",
        "--map-root-user", "--mount", "sh", "-c", ENTER, "enter", MAGIC + MACHINES[machine], MASK,
        str(qemu_of(machine)), root, *words, why=f"{' '.join(words)} failed")


def wheel_verdict(machine: str, root: pathlib.Path, wheel: pathlib.Path) -> str:
    """The verdict of the wheel's program. Unmade: it does not run, or the claim did not survive."""
    with tempfile.TemporaryDirectory(prefix="tollens-cross-") as name:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                path = archive.extract(member, name)
                os.chmod(path, member.external_attr >> 16 & 0o777)
        program = pathlib.Path(name, "tollens/program/tollens")
        said = run(machine, root, [str(program), "doctor"])
        if "a context can be created" not in said:
            raise Unmade(f"doctor found no device:\n{said}")
        said = run(machine, root, [str(program), *CLAIM, "--out", f"{name}/out"])
        lines = [line for line in said.splitlines() if line.startswith("H1  survived")]
        if not lines:
            raise Unmade(f"H1 did not survive:\n{said}")
        return lines[0]


def make(machine: str) -> tuple[pathlib.Path, str]:
    """The wheel and its verdict."""
    if machine not in OTHERS:
        raise Unmade(f"there is no --arch {machine}: {', '.join(OTHERS)}")
    lacking = missing(machine)
    if lacking:
        raise Unmade(f"please install: {' '.join(lacking)}")
    folder = BUILD / "cross" / machine
    folder.mkdir(parents=True, exist_ok=True)
    root = root_of(machine, folder)
    copy_tree(folder / "tollens", [name for name in tracked(".")
                                   if not name.startswith("reports/published/")])
    made = build(machine, folder / "tollens", root)
    verdict = wheel_verdict(machine, root, made)
    (PACKAGES / "dist").mkdir(parents=True, exist_ok=True)
    for old in (PACKAGES / "dist").glob(f"*_{machine}.whl"):
        old.unlink()
    return pathlib.Path(shutil.copy(made, PACKAGES / "dist")), verdict
