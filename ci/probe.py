"""What differs by machine: compilers, libraries, what is missing. configure.py asks this for
build/config.ninja.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def compiles(cc: str, flags: str, source: str, code: int | None = None) -> bool:
    """Also whether the program ends with a code; one for another processor does not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "probe.c")
        path.write_text(source)
        command = [*cc.split(), str(path), "-o", str(path.with_suffix("")), *flags.split()]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0 and (
                code is None or subprocess.run([path.with_suffix("")], capture_output=True,
                                               check=False).returncode == code)
        except OSError:
            return False


def find_criterion(cc: str) -> tuple[str, str]:
    """Static where it can be: then a test binary needs libnanomsg alone, and starts four times as
    fast. The stub stands in for libgit2 (hypotheses/harness/run/git2_stub.c)."""
    probe = "#include <criterion/criterion.h>\nTest(a, b) {}\n"
    static = ("-Wl,-Bstatic -lcriterion -lboxfort -lprotobuf-nanopb -lffi -Wl,-Bdynamic -lnanomsg "
              "-lrt")
    stub = str(ROOT / "hypotheses/harness/run/git2_stub.c")
    if compiles(f"{cc} {stub}", static + " -lpthread -lm", probe):
        return "", static
    if compiles(cc, "-lcriterion", probe):
        return "", "-lcriterion"
    return "", ""


def find_fuzzer() -> str:
    """A clang that has libFuzzer; empty if there is none."""
    target = "#include <stddef.h>\nint LLVMFuzzerTestOneInput(const char *, size_t);\n" \
             "int LLVMFuzzerTestOneInput(const char *d, size_t n) { return d != 0 && n == 0; }\n"
    for clang in ("clang", *(f"clang-{version}" for version in range(22, 13, -1))):
        if shutil.which(clang) and compiles(clang, "-fsanitize=fuzzer,address", target):
            return clang
    return ""


def find_cuda() -> str:
    """The folder of a toolkit's headers, if cuda.h is 13.0 or newer: older ones lack names that
    cuda_result.def has. $CUDA_HOME, if it is set, is the only place to look."""
    nvcc = shutil.which("nvcc")
    homes = ["/usr/local/cuda", str(pathlib.Path(nvcc).resolve().parent.parent) if nvcc else ""]
    for home in filter(None, [os.environ["CUDA_HOME"]] if os.environ.get("CUDA_HOME") else homes):
        header = pathlib.Path(home, "include/cuda.h")
        text = header.read_text(errors="replace") if header.exists() else ""
        version = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.MULTILINE)
        if version and int(version[1]) >= 13000:
            return str(header.parent)
    return ""


def find_nvcc() -> str:
    """nvcc, if it is 12.0 or newer; empty if there is none. $NVCC, if it is set, is the only one to
    try. Through ccache where that is, since it takes seconds a kernel."""
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(nvcc, os.X_OK):
        return ""
    release = re.search(r"release (\d+)", ask(nvcc, "--version"))
    if release is None or int(release.group(1)) < 12:
        return ""
    return f"ccache {nvcc}" if shutil.which("ccache") else nvcc


def ask(cc: str, question: str) -> str:
    """What the compiler says of itself."""
    return subprocess.run([*cc.split(), question], capture_output=True, text=True,
                          check=False).stdout.strip()


def find_runner(cc: str, target: str) -> str:
    """What runs a program that is compiled for another processor than this one: qemu, with the
    compiler's own libraries."""
    processor = target.split("-")[0]
    if processor == os.uname().machine:
        return ""
    names = (f"qemu-{processor}", f"qemu-{processor}-static")
    found = next(filter(shutil.which, names), names[0])
    return f"{found} -L {ask(cc, '-print-sysroot').rstrip('/') or '/usr/' + target}"


MISALIGNED = """#include <stdint.h>
static int stray(const volatile void *p) { return (uintptr_t)p % 64 != 0; }
int main(void) {
    _Alignas(64) volatile char map[128] = {0};
    return stray(map) ? 64 : 0;
}
"""


def sound_frames(cc: str) -> str:
    """The flag without which ASan moves local variables to where they are not aligned, if the
    compiler makes that mistake: gcc 13.2 does (PR sanitizer/110027), which Ubuntu 24.04 has."""
    wrong = compiles(cc, "-fsanitize=address", MISALIGNED, 64)
    return "--param asan-use-after-return=0" if wrong else ""


# The compilers that this repository is checked with. What others warn of is for its people to
# mend, and no reason to leave a newcomer without a program.
CHECKED = {"gcc": ("12",), "clang": ("14",)}


def strictness(cc: str, clang: bool) -> str:
    major = ask(cc, "-dumpversion").split(".")[0]
    strict = os.environ.get("TOLLENS_WERROR") or major in CHECKED["clang" if clang else "gcc"]
    return "-Werror" if strict else ""


def config(cc: str) -> str:
    """The text of build/config.ninja."""
    target = ask(cc, "-dumpmachine")
    x86 = target.startswith("x86_64")
    clang = "clang" in ask(cc, "--version")
    criterion_cflags, criterion_libs = find_criterion(cc)
    cuda = find_cuda()
    width = "" if clang else " -mprefer-vector-width=512"
    values = {
        "cc": cc,
        "python": sys.executable,
        "runner": find_runner(cc, target),
        "configure_args": f"--cc '{cc}'",
        "werror": strictness(cc, clang),
        "defs": "-Wl,-z,defs",
        # Clang says so where it cannot vectorize a loop that was marked; gcc keeps quiet.
        "core_cflags": "-Wno-pass-failed" if clang else "",
        "soft_levels": "-DSOFT_HAS_LEVELS" if x86 else "",
        "march_x3": "-march=x86-64-v3" if x86 else "",
        "march_x4": f"-march=x86-64-v4{width}" if x86 else "",
        "criterion_cflags": criterion_cflags,
        "criterion_libs": criterion_libs,
        "sound_frames": sound_frames(cc),
        "fuzz_cc": find_fuzzer() or "echo no clang with libFuzzer: && false",
        "nvcc": find_nvcc(),
        "cuda_cflags": f"-DTOL_HAS_CUDA_H -isystem {cuda}" if cuda else "",
    }
    return "".join(f"{name} = {value}\n" for name, value in values.items())
