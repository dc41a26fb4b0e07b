#!/usr/bin/env python3
"""Writes build.ninja, which is committed and the same on every machine, and build/config.ninja,
which says what differs by machine: compilers, libraries, what is missing.

    ./configure.py [--cc clang] [--check]

Reads from top to bottom: the variants of the build; what each has; the file. The sources of each
room are in ci/sources.py, and how libraries are made of them in ci/libraries.py.
"""

import argparse
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "ci"))
import probe  # noqa: E402  (what this machine has)
from libraries import (  # noqa: E402  (what programs are linked with)
    COMMON, EXACT, write_images, write_kernels, write_runtime, write_soft)
from ninja_file import Ninja  # noqa: E402  (how build.ninja is spelled)
from rules import write_rules  # noqa: E402  (what each kind of file is made with)
from sources import (  # noqa: E402  (what lies in each room)
    BENCH, COMMANDS, CORPUS_TESTS, EXAMPLES, FUZZ, FUZZ_DRIVER, FUZZ_TARGETS, HARNESS,
    HARNESS_TESTS, HYPOTHESES, KERNELS_BENCH, KERNELS_TESTS, KERNELS_TOUR, REFUSED, RUNTIME,
    RUNTIME_TESTS, SOFT, SOFT_API, SOFT_API_TESTS, SOFT_CORE, SOFT_TESTS, TABLE, TABLE_TESTS)

# ---- the variants ---------------------------------------------------------------------------

SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

VARIANTS = {
    # name: (folder, flags of the compiler, flags of the linker, processor levels)
    "dev": ("build", "-O2 -g", "", ["x1", "x3", "x4"]),
    "release": ("build/release", "-O3 -g -DNDEBUG", "", ["x1", "x3", "x4"]),
    "asan": ("build/asan", f"-O1 -g1 {SANITIZE}", SANITIZE, ["x1"]),
    # Counters are atomic: the soft device's threads share them.
    "coverage": ("build/coverage", "-O0 -g --coverage -fprofile-update=atomic", "--coverage",
                 ["x1"]),
}

KERNELS_LIBS = "-llzma -lpthread -ldl -lm"
PROGRAM_LIBS = f"$criterion_libs -ljansson -lz {KERNELS_LIBS}"


def write_variant(n: Ninja, name: str) -> None:
    folder, flags, ldflags, levels = VARIANTS[name]
    suffix = "" if name == "dev" else f"-{name}"
    n.comment(f"---- {name} ----")
    archive, shared = write_runtime(n, folder, flags, ldflags)
    kernels, kernels_cubins = write_kernels(n, folder, flags, len(levels) > 1)
    soft, soft_objects = write_soft(n, folder, flags, ldflags, levels)

    # Criterion's own macros convert implicitly, so its users cannot warn of it.
    test_flags = f"{COMMON} {flags} -Iruntime -Wno-conversion $criterion_cflags"
    kernels_flags = f"{test_flags} -Ikernels"
    harness_flags = f"{kernels_flags} -Ihypotheses/harness -Ibuild/generated"
    # Sanitized and optimised, assertions take longer to compile than they ever run.
    quickly = " -O0" if name == "asan" else ""

    def objects(where: str, room: str, sources: list[str], cflags: str,
                after: str = "") -> list[str]:
        return [n.build(f"{folder}/{where}/{source}.o", "cc", f"{room}/{source}.c", cflags=cflags,
                        after=after) for source in sources]
    cubins: list[str] = []

    def program(target: str, parts: list[str], after: str = "",
                libs: str = PROGRAM_LIBS) -> str:
        if kernels_cubins and kernels in parts and not target.startswith("examples/"):
            cubins.append(n.build(f"{folder}/cubins/{target}", "exe", ldflags=ldflags, libs=libs,
                                  inputs=" ".join(parts).replace(kernels, kernels_cubins)))
        return n.build(f"{folder}/{target}", "exe", " ".join(parts),
                       after=f"{soft} {after}".rstrip(), ldflags=ldflags, libs=libs)

    claims = "build/generated/claims.def"
    stub = objects("harness", "hypotheses/harness", ["git2_stub"], test_flags)
    harness = objects("harness", "hypotheses/harness", HARNESS, harness_flags, claims)
    commands = objects("harness", "hypotheses/harness", COMMANDS, harness_flags, claims)
    attacks = objects("hypotheses", "hypotheses", HYPOTHESES, harness_flags, claims)
    # Plugins call the harness and the runtime, all of it, in the program that loads them.
    runtime = [f"{folder}/runtime/{source}.o" for source in RUNTIME]
    tollens = program("tollens", [*attacks, *commands, *harness, *stub, kernels, *runtime],
                      libs=f"{PROGRAM_LIBS} '-Wl,--export-dynamic-symbol=tol_*' "
                           "'-Wl,--export-dynamic-symbol=hyp_*'")
    table = objects("table", "runtime/soft/table", TABLE, f"{COMMON} {flags}")

    def table_tool(target: str) -> str:
        source = objects("table", "runtime/soft/table", [target.replace("-", "_")],
                         f"{COMMON} {flags}")
        return program(target, [*source, *table], libs="-lz -lpthread -ldl -lm")

    tools = [table_tool(target) for target in ["ptx-table", "ptx-walk", "fault-table"]]
    probe_driver = program("probe-driver", objects("probe", "runtime/soft", ["probe_driver"],
                                                   f"{COMMON} {flags}"), libs="-ldl")
    tools.append(probe_driver)
    fuzz = objects("replay", "runtime/soft/fuzz", [*FUZZ, *FUZZ_DRIVER], f"{COMMON} {flags}")
    tools += [program(target.replace("_", "-").replace("fuzz", "replay"),
                      [*objects("replay", "runtime/soft/fuzz", [target], f"{COMMON} {flags}"),
                       *fuzz, *soft_objects], libs="-lpthread -lm") for target in FUZZ_TARGETS]
    if len(levels) > 1:  # the others have no speed worth knowing
        parts = objects("bench", "runtime/soft/bench", BENCH, f"{COMMON} {flags}")
        tools.append(program("bench-soft", [*parts, *soft_objects], libs="-lpthread -lm"))
        n.build(f"bench-soft{suffix}", "run", tools[-1])
    nvml = n.build(f"{folder}/libnvml-stand-in.so", "so",
                   *objects("tests", "runtime", ["nvml_stand_in"], f"{COMMON} {flags}"),
                   ldflags=ldflags)
    table_tests = objects("tests", "runtime/soft/table", TABLE_TESTS, test_flags)
    corpus_tests = objects("tests", "runtime/soft/corpus", CORPUS_TESTS, test_flags + quickly)
    tests = [
        program("test-runtime", [*objects("tests", "runtime", RUNTIME_TESTS,
                                          f"{test_flags} $cuda_cflags{quickly}"), *stub, archive],
                nvml),
        program("test-soft", [*objects("tests", "runtime/soft", [*SOFT_TESTS, *SOFT_API_TESTS],
                                       f"{test_flags} $cuda_cflags{quickly}"),
                              *table_tests, *table, *corpus_tests, *stub, *soft_objects],
                probe_driver),
        program("test-kernels", [*objects("tests", "kernels", KERNELS_TESTS,
                                          kernels_flags + quickly),
                                 f"{folder}/tests/test_device.o", *stub, kernels, archive]),
        program("test-harness", [*objects("tests", "hypotheses/harness", HARNESS_TESTS,
                                          harness_flags + quickly, claims),
                                 *harness, *stub, kernels, archive],
                f"{tollens} {nvml}")]
    log = [f"{folder}/harness/{part}.o" for part in ("hdr_encode", "hlog", "folder")]
    tools += [program(target, [*objects("harness", "hypotheses/harness", [source], harness_flags),
                               *log, archive], libs="-lz -lpthread -ldl -lm")
              for target, source in (("bench-hdr", "hdr_bench"), ("hdr-interop", "hdr_interop"))]
    tools += [program(f"bench-{what}", [*objects("runtime", "runtime", [f"{what}_bench", *more],
                                                 f"{COMMON} {flags}"), archive],
                      libs="-lpthread -ldl -lm")
              for what, *more in (["launch"], ["pool"], ["transfer"],
                                  ["streams", "streams_queues_bench", "streams_traces_bench",
                                   "streams_events_bench"])]
    tools += [program(target, [*objects("kernels", f"kernels/{room}", sources,
                                        f"{COMMON} {flags} -Iruntime -Ikernels"),
                               kernels, archive], libs=KERNELS_LIBS)
              for target, room, sources in (("bench-kernels", "bench", KERNELS_BENCH),
                                            ("kernel-tour", "tour", KERNELS_TOUR))]
    tools.append(program("compare-sides", objects("runtime", "runtime", ["compare_sides"],
                                                  f"{COMMON} {flags}"), libs="-ldl"))
    n.build(name, "phony", " ".join([archive, shared, kernels, soft, tollens, *tools, *tests]))
    if cubins:
        n.build(f"cubins{suffix}", "phony", " ".join([kernels_cubins, *cubins]))
    for test in tests:
        n.build(pathlib.Path(test).name + suffix, "run", test, after=name)
    if name == "dev":
        n.build("libs", "phony", f"{archive} {shared} {kernels} {soft}")
        examples = [program(f"examples/{name}", [*objects("examples", "runtime/examples", [name],
                                                          f"{COMMON} {flags} -Iruntime "
                                                          "-Ikernels"),
                                                 kernels, archive], libs=KERNELS_LIBS)
                    for name in EXAMPLES]
        n.build("examples", "phony", " ".join(examples))
        n.build("bench-hdr", "run", "build/bench-hdr")
        for what in ("launch", "pool", "streams", "transfer", "kernels"):
            n.build(f"bench-{what}", "run", f"build/bench-{what}")


def write_tsan(n: Ninja) -> None:
    """Threads in a plain program, since Criterion cannot run under the sanitizer."""
    n.comment("---- tsan ----")
    folder, flags = "build/tsan", "-O1 -g -fsanitize=thread -Wno-unknown-warning-option -Wno-tsan"
    archive, _ = write_runtime(n, folder, flags, "-fsanitize=thread")
    soft, _ = write_soft(n, folder, flags, "-fsanitize=thread", ["x1"])
    part = n.build(f"{folder}/threads_check.o", "cc", "runtime/threads_check.c",
                   cflags=f"{COMMON} {flags}")
    program = n.build(f"{folder}/threads-check", "exe", f"{part} {archive}", after=soft,
                      ldflags="-fsanitize=thread", libs="-lpthread -ldl -lm")
    n.build("test-tsan", "run", program)


def write_fuzz(n: Ninja) -> None:
    """Each fuzz target with libFuzzer, which clang brings along: ninja fuzz-ptx fuzz-run."""
    n.comment("---- fuzz ----")
    flags = "-O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
    clang = {"cc": "$fuzz_cc"}
    core = f"{EXACT} -Wno-pass-failed -DSOFT_CORE=x1"
    parts = [n.build(f"build/fuzz/{source}.o", "cc", f"runtime/soft/{folder}{source}.c",
                     cflags=f"{COMMON} {flags} -fsanitize=fuzzer-no-link,address,undefined {more}",
                     **clang)
             for folder, sources, more in (("", [*SOFT, *SOFT_API], ""), ("", SOFT_CORE, core),
                                           ("fuzz/", [*FUZZ, *FUZZ_TARGETS], ""))
             for source in sources]
    common = [part for part in parts if pathlib.Path(part).stem not in FUZZ_TARGETS]
    for target in FUZZ_TARGETS:
        name = target.replace("_", "-")
        n.build(f"build/fuzz/{name}", "exe", " ".join([f"build/fuzz/{target}.o", *common]),
                ldflags="-fsanitize=fuzzer,address,undefined", libs="-lpthread -lm", **clang)
        n.build(name, "phony", f"build/fuzz/{name}")


def write_ninja() -> str:
    n = Ninja()
    n.comment("Written by configure.py; do not edit. What differs by machine is in the include.")
    n.variable("ninja_required_version", "1.8")
    n.variable("builddir", "build")
    n.lines.append("include build/config.ninja")
    write_rules(n)
    n.build("build/generated/claims.def", "claims", needs="reports/thresholds.py "
            "hypotheses/thresholds.toml hypotheses/sabotage.toml")
    write_images(n)
    for name in VARIANTS:
        write_variant(n, name)
    write_tsan(n)
    write_fuzz(n)
    n.comment("---- the whole ----")
    refused = [n.build(f"build/refused/{name}.ok", "refuse", f"runtime/refused/{name}.c",
                       needs="ci/must_fail", cflags=f"{COMMON} -O2 -Iruntime")
               for name in REFUSED]
    n.build("refused", "phony", " ".join(refused))
    n.build("test", "phony", "test-runtime test-soft test-kernels test-harness refused")
    n.build("seeds", "script", after="build/test-soft",
            arguments="env TOLLENS_TEST_SEEDS=20 build/test-soft --filter='seed/*'")
    n.build("pool-million", "script", after="build/test-runtime build/libtollens-soft.so",
            arguments="env TOLLENS_DEVICE=soft TOLLENS_TEST_POOL_OPERATIONS=1000000 "
            "build/test-runtime --filter='reference_model/*'")
    n.build("ptx", "script", arguments="ci/ptx --write")
    n.build("install", "script", after="libs", arguments="ci/install")
    n.build("build.ninja", "configure", needs="configure.py ci/libraries.py ci/ninja_file.py "
            "ci/probe.py ci/rules.py ci/sources.py")
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
