"""What differs by machine: compilers, libraries, what is missing. configure.py asks this for
build/config.ninja.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def compiles(cc: str, flags: str, source: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "probe.c")
        path.write_text(source)
        command = [*cc.split(), str(path), "-o", str(path.with_suffix("")), *flags.split()]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def find_criterion(cc: str) -> tuple[str, str]:
    """Static where it can be: then a test binary needs libnanomsg alone, and starts four times as
    fast. The stub stands in for libgit2 (hypotheses/harness/git2_stub.c)."""
    probe = "#include <criterion/criterion.h>\nTest(a, b) {}\n"
    static = ("-Wl,-Bstatic -lcriterion -lboxfort -lprotobuf-nanopb -lffi -Wl,-Bdynamic -lnanomsg "
              "-lrt -Wl,-rpath,$$ORIGIN/lib")
    stub = str(ROOT / "hypotheses/harness/git2_stub.c")
    if compiles(f"{cc} {stub}", static.replace("$$", "$") + " -lpthread -lm", probe):
        return "", static
    if compiles(cc, "-lcriterion", probe):
        return "", "-lcriterion"
    return "", ""


def find_cuda() -> str:
    """The folder of a toolkit's headers, if cuda.h is 13.0 or newer: older ones lack names that
    cuda_result.def has."""
    nvcc = shutil.which("nvcc")
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda",
             str(pathlib.Path(nvcc).resolve().parent.parent) if nvcc else ""]
    for home in filter(None, homes):
        header = pathlib.Path(home, "include/cuda.h")
        if not header.exists():
            continue
        for line in header.read_text(errors="replace").splitlines():
            words = line.split()
            if words[:2] == ["#define", "CUDA_VERSION"] and int(words[2]) >= 13000:
                return str(header.parent)
    return ""


def config(cc: str) -> str:
    """The text of build/config.ninja."""
    x86 = platform.machine() in ("x86_64", "AMD64")
    clang = "clang" in subprocess.run([*cc.split(), "--version"], capture_output=True, text=True,
                                      check=False).stdout
    criterion_cflags, criterion_libs = find_criterion(cc)
    cuda = find_cuda()
    width = "" if clang else " -mprefer-vector-width=512"
    values = {
        "cc": cc,
        "python": sys.executable,
        "configure_args": f"--cc {cc}",
        "defs": "-Wl,-z,defs",
        # Clang says so where it cannot vectorize a loop that was marked; gcc keeps quiet.
        "core_cflags": "-Wno-pass-failed" if clang else "",
        "soft_levels": "-DSOFT_HAS_LEVELS" if x86 else "",
        "march_x3": "-march=x86-64-v3" if x86 else "",
        "march_x4": f"-march=x86-64-v4{width}" if x86 else "",
        "criterion_cflags": criterion_cflags,
        "criterion_libs": criterion_libs,
        "cuda_cflags": f"-DTOL_HAS_CUDA_H -isystem {cuda}" if cuda else "",
    }
    return "".join(f"{name} = {value}\n" for name, value in values.items())
