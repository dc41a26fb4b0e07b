#!/usr/bin/env python3
"""Writes build.ninja, which is committed and the same on every machine, and build/config.ninja, which
says what differs by machine: compilers, libraries, what is missing.

    ./configure.py [--cc clang] [--check]

Reads from top to bottom: the sources, room by room; what every variant of the build has; the file.
"""

import argparse
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent

# ---- the rooms ------------------------------------------------------------------------------

RUNTIME = """library status driver interpose device context deadline
             retire stream event module memory pinned copy launch""".split()

PUBLIC_HEADERS = """tollens.h auto.h status.h status.def each.h cuda_abi.h cuda_abi.def cuda_result.def
                    driver.h driver.def interpose.h device.h context.h stream.h event.h module.h
                    memory.h pinned.h copy.h launch.h""".split()

SOFT = """arena diagnostic token symbol opcode read_constant read_operand read_variable read_function
          read_module lower lower_operand lower_arithmetic lower_compare lower_move lower_memory
          lower_control graph slots image options space report warp cta grid access core queue
          driver_state api_init api_context api_memory api_stream api_module api_launch
          exports""".split()

# Compiled once for each processor level.
SOFT_CORE = """ops_integer ops_bits ops_compare ops_move ops_float ops_round ops_approx ops_convert
               ops_global ops_shared ops_atomic ops_lane ops_control core_table""".split()

RUNTIME_TESTS = """status_test driver_test interpose_test device_test context_test module_test
                   stream_test event_test memory_test copy_test launch_test failure_test
                   cuda_abi_test test_device""".split()

SOFT_TESTS = "half_test".split()

# Programs of the runtime's own mistakes: each must be refused by the compiler.
REFUSED = """kernel_is_not_a_name pinned_is_not_a_buffer event_is_not_a_stream
             async_source_is_pinned""".split()

# ---- the variants ---------------------------------------------------------------------------

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
COMMON = f"-std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden {WARNINGS}"
# What the soft device's arithmetic relies on: no contraction, no guesses about aliasing.
EXACT = "-fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math $core_cflags"
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

LEVELS = {"x1": "", "x3": "$march_x3", "x4": "$march_x4"}
VARIANTS = {
    # name: (folder, flags of the compiler, flags of the linker, processor levels)
    "dev": ("build", "-O2 -g", "", ["x1", "x3", "x4"]),
    "release": ("build/release", "-O3 -g -DNDEBUG", "", ["x1", "x3", "x4"]),
    "asan": ("build/asan", f"-O1 -g {SANITIZE}", SANITIZE, ["x1"]),
    "coverage": ("build/coverage", "-O0 -g --coverage", "--coverage", ["x1"]),
}


class Ninja:
    """The few words of ninja's language that the build needs."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def comment(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def variable(self, name: str, value: str) -> None:
        self.lines.append(f"{name} = {value}")

    def rule(self, name: str, command: str, **more: str) -> None:
        self.lines.append(f"\nrule {name}\n  command = {command}")
        self.lines += [f"  {key} = {value}" for key, value in more.items()]

    def build(self, outputs: str, rule: str, inputs: str = "", needs: str = "", after: str = "",
              **variables: str) -> str:
        line = f"build {outputs}: {rule} {inputs}".rstrip()
        line += f" | {needs}" if needs else ""
        line += f" || {after}" if after else ""
        self.lines.append(line)
        self.lines += [f"  {key} = {value}" for key, value in variables.items() if value]
        return outputs


def write_rules(n: Ninja) -> None:
    n.rule("cc", "$cc -MMD -MF $out.d $cflags -c $in -o $out", depfile="$out.d", deps="gcc",
           description="CC $out")
    n.rule("ar", "rm -f $out && ar rcs $out $in", description="AR $out")
    n.rule("so", "$cc -shared $ldflags -o $out $in $libs", description="LINK $out")
    n.rule("exe", "$cc $ldflags -o $out $in $libs", description="LINK $out")
    n.rule("run", "$environment $in $arguments", pool="console", description="RUN $in")
    n.rule("refuse", "ci/must_fail $out $cc $cflags -c $in", description="REFUSED $in")
    n.rule("configure", "$python configure.py $configure_args", generator="1",
           description="CONFIGURE")


def write_soft(n: Ninja, folder: str, flags: str, ldflags: str, levels: list[str]) -> str:
    """The soft device: what is common, and the instruction bodies once for each level."""
    defs = "" if "sanitize" in ldflags else " $defs"
    has_levels = "$soft_levels" if len(levels) > 1 else ""
    objects = [n.build(f"{folder}/soft/{name}.o", "cc", f"runtime/soft/{name}.c",
                       cflags=f"{COMMON} {flags} {has_levels}") for name in SOFT]
    fast = flags.replace("-O2", "-O3")
    for level in levels:
        for name in SOFT_CORE:
            rounding = "-frounding-math" if name == "ops_round" else ""
            objects.append(n.build(
                f"{folder}/soft/{name}.{level}.o", "cc", f"runtime/soft/{name}.c",
                cflags=f"{COMMON} {fast} {EXACT} {rounding} {LEVELS[level]} -DSOFT_CORE={level}"))
    return n.build(f"{folder}/libtollens-soft.so", "so", " ".join(objects), libs="-lpthread -lm",
                   ldflags=f"{ldflags} -Wl,-soname,libtollens-soft.so{defs}")


def write_variant(n: Ninja, name: str) -> list[str]:
    folder, flags, ldflags, levels = VARIANTS[name]
    n.comment(f"---- {name} ----")
    cflags = f"{COMMON} {flags} -Iruntime"
    runtime = [n.build(f"{folder}/runtime/{source}.o", "cc", f"runtime/{source}.c", cflags=cflags)
               for source in RUNTIME]
    archive = n.build(f"{folder}/libtollens.a", "ar", " ".join(runtime))
    defs = "" if "sanitize" in ldflags else " $defs"  # the sanitizers are found at run time
    shared = n.build(f"{folder}/libtollens.so", "so", " ".join(runtime), libs="-lpthread -ldl",
                     ldflags=f"{ldflags} -Wl,-soname,libtollens.so{defs}")
    soft = write_soft(n, folder, flags, ldflags, levels)

    stub = n.build(f"{folder}/harness/git2_stub.o", "cc", "hypotheses/harness/git2_stub.c",
                   cflags=cflags)
    # Criterion's own macros convert implicitly, so its users cannot warn of it.
    test_flags = f"{cflags} -Wno-conversion $criterion_cflags $cuda_cflags"

    def test(program: str, sources: list[str], more: str) -> str:
        objects = [n.build(f"{folder}/tests/{pathlib.Path(source).name}.o", "cc", f"{source}.c",
                           cflags=test_flags) for source in sources]
        return n.build(f"{folder}/{program}", "exe", " ".join([*objects, more, stub]), after=soft,
                       ldflags=ldflags, libs="$criterion_libs -lpthread -ldl -lm")

    soft_objects = " ".join(f"{folder}/soft/{source}.o" for source in SOFT)
    soft_objects += "".join(f" {folder}/soft/{source}.{level}.o"
                            for level in levels for source in SOFT_CORE)
    tests = [test("test-runtime", [f"runtime/{source}" for source in RUNTIME_TESTS], archive),
             test("test-soft", [f"runtime/soft/{source}" for source in SOFT_TESTS], soft_objects)]
    everything = [archive, shared, soft, *tests]
    n.build(name, "phony", " ".join(everything))
    for program in tests:
        target = pathlib.Path(program).name + ("" if name == "dev" else f"-{name}")
        n.build(target, "run", program, after=name, environment="$test_environment",
                arguments="$test_arguments")
    return everything


def write_ninja() -> str:
    n = Ninja()
    n.comment("Written by configure.py; do not edit. What differs by machine is in the include.")
    n.variable("ninja_required_version", "1.8")
    n.variable("builddir", "build")
    n.lines.append("include build/config.ninja")
    write_rules(n)
    everything = {name: write_variant(n, name) for name in VARIANTS}
    n.comment("---- the whole ----")
    refused = [n.build(f"build/refused/{name}.ok", "refuse", f"runtime/refused/{name}.c",
                       needs="ci/must_fail", cflags=f"{COMMON} -O2 -Iruntime")
               for name in REFUSED]
    n.build("refused", "phony", " ".join(refused))
    n.build("test", "phony", "test-runtime test-soft refused")
    n.build("build.ninja", "configure", needs="configure.py")
    n.build("all", "phony", "dev refused")
    n.lines.append("default dev")
    del everything
    return "\n".join(n.lines) + "\n"


# ---- the machine ----------------------------------------------------------------------------

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


def write_config(arguments: argparse.Namespace) -> str:
    cc = arguments.cc
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
        "test_environment": "",
        "test_arguments": "",
    }
    return "".join(f"{name} = {value}\n" for name, value in values.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"), help="the C compiler")
    parser.add_argument("--check", action="store_true",
                        help="only say whether build.ninja is what this program would write")
    arguments = parser.parse_args()
    text = write_ninja()
    path = ROOT / "build.ninja"
    if arguments.check:
        stale = not path.exists() or path.read_text() != text
        print("build.ninja is stale: run ./configure.py" if stale else "build.ninja is up to date")
        return 1 if stale else 0
    if not shutil.which(arguments.cc.split()[0]):
        print(f"configure.py: there is no compiler named {arguments.cc}", file=sys.stderr)
        return 2
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build/config.ninja").write_text(write_config(arguments))
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
