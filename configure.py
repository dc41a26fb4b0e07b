#!/usr/bin/env python3
"""Writes build.ninja, which is committed and the same on every machine, and build/config.ninja, which
says what differs by machine: compilers, libraries, what is missing.

    ./configure.py [--cc clang] [--check]

Reads from top to bottom: the sources, room by room; what every variant of the build has; the file.
"""

import argparse
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "ci"))
import probe  # noqa: E402  (what this machine has)

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

HARNESS = """hdr hdr_encode hlog folder session machine claim sabotage record verdict worker watch
             runner evidence evidence_text attack""".split()
COMMANDS = "tollens command_run command_show".split()

HYPOTHESES = """h01_modules_load h02_launches_execute h03_transfers_return""".split()

HARNESS_TESTS = """hdr_test hlog_test record_test verdict_test claim_test evidence_test
                   program_test""".split()

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
    n.rule("run", "$in", pool="console", description="RUN $in")
    n.rule("script", "$arguments", pool="console", description="$arguments")
    n.rule("refuse", "ci/must_fail $out $cc $cflags -c $in", description="REFUSED $in")
    n.rule("claims", "$python reports/thresholds.py --c $out", description="CLAIMS $out")
    n.rule("configure", "$python configure.py $configure_args", generator="1",
           description="CONFIGURE")


def write_soft(n: Ninja, folder: str, flags: str, ldflags: str,
               levels: list[str]) -> tuple[str, list[str]]:
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
    soft = n.build(f"{folder}/libtollens-soft.so", "so", " ".join(objects), libs="-lpthread -lm",
                   ldflags=f"{ldflags} -Wl,-soname,libtollens-soft.so{defs}")
    return soft, objects


def write_runtime(n: Ninja, folder: str, flags: str, ldflags: str) -> tuple[str, str]:
    cflags = f"{COMMON} {flags} -Iruntime"
    objects = " ".join(n.build(f"{folder}/runtime/{source}.o", "cc", f"runtime/{source}.c",
                               cflags=cflags) for source in RUNTIME)
    archive = n.build(f"{folder}/libtollens.a", "ar", objects)
    defs = "" if "sanitize" in ldflags else " $defs"  # the sanitizers are found at run time
    shared = n.build(f"{folder}/libtollens.so", "so", objects, libs="-lpthread -ldl",
                     ldflags=f"{ldflags} -Wl,-soname,libtollens.so{defs}")
    return archive, shared


def write_variant(n: Ninja, name: str) -> None:
    folder, flags, ldflags, levels = VARIANTS[name]
    n.comment(f"---- {name} ----")
    archive, shared = write_runtime(n, folder, flags, ldflags)
    soft, soft_objects = write_soft(n, folder, flags, ldflags, levels)

    # Criterion's own macros convert implicitly, so its users cannot warn of it.
    test_flags = f"{COMMON} {flags} -Iruntime -Wno-conversion $criterion_cflags"
    harness_flags = f"{test_flags} -Ihypotheses/harness -Ibuild/generated"

    def objects(where: str, room: str, sources: list[str], cflags: str, after: str = "") -> list[str]:
        return [n.build(f"{folder}/{where}/{source}.o", "cc", f"{room}/{source}.c", cflags=cflags,
                        after=after) for source in sources]

    def program(target: str, parts: list[str], after: str = "") -> str:
        return n.build(f"{folder}/{target}", "exe", " ".join(parts), after=f"{soft} {after}".rstrip(),
                       ldflags=ldflags,
                       libs="$criterion_libs -ljansson -lz -lpthread -ldl -lm")

    claims = "build/generated/claims.def"
    stub = objects("harness", "hypotheses/harness", ["git2_stub"], test_flags)
    harness = objects("harness", "hypotheses/harness", HARNESS, harness_flags, claims)
    commands = objects("harness", "hypotheses/harness", COMMANDS, harness_flags, claims)
    attacks = objects("hypotheses", "hypotheses", HYPOTHESES, harness_flags, claims)
    tollens = program("tollens", [*attacks, *commands, *harness, *stub, archive])
    tests = [
        program("test-runtime", [*objects("tests", "runtime", RUNTIME_TESTS,
                                          f"{test_flags} $cuda_cflags"), *stub, archive]),
        program("test-soft", [*objects("tests", "runtime/soft", SOFT_TESTS, test_flags), *stub,
                              *soft_objects]),
        program("test-harness", [*objects("tests", "hypotheses/harness", HARNESS_TESTS,
                                          harness_flags, claims), *harness, *stub, archive],
                tollens)]
    n.build(name, "phony", " ".join([archive, shared, soft, tollens, *tests]))
    suffix = "" if name == "dev" else f"-{name}"
    for test in tests:
        n.build(pathlib.Path(test).name + suffix, "run", test, after=name)
    if name == "dev":
        n.build("libs", "phony", f"{archive} {shared} {soft}")


def write_ninja() -> str:
    n = Ninja()
    n.comment("Written by configure.py; do not edit. What differs by machine is in the include.")
    n.variable("ninja_required_version", "1.8")
    n.variable("builddir", "build")
    n.lines.append("include build/config.ninja")
    write_rules(n)
    n.build("build/generated/claims.def", "claims", needs="reports/thresholds.py "
            "hypotheses/thresholds.toml hypotheses/sabotage.toml")
    for name in VARIANTS:
        write_variant(n, name)
    n.comment("---- the whole ----")
    refused = [n.build(f"build/refused/{name}.ok", "refuse", f"runtime/refused/{name}.c",
                       needs="ci/must_fail", cflags=f"{COMMON} -O2 -Iruntime")
               for name in REFUSED]
    n.build("refused", "phony", " ".join(refused))
    n.build("test", "phony", "test-runtime test-soft test-harness refused")
    n.build("ptx", "script", arguments="ci/ptx --write")
    n.build("install", "script", after="libs", arguments="ci/install")
    n.build("build.ninja", "configure", needs="configure.py ci/probe.py")
    n.lines.append("default dev")
    return "\n".join(n.lines) + "\n"


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
    (ROOT / "build/config.ninja").write_text(probe.config(arguments.cc))
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
