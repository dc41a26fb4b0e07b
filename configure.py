#!/usr/bin/env python3
"""Writes build.ninja, ci/building/libraries.ninja and ci/building/programs.ninja, which are
committed and the same on every machine, and build/config.ninja, which says what differs by machine:
compilers, libraries, what is missing.

    ./configure.py [--cc clang] [--check]

Reads from top to bottom: the variants of the build; what each has; the files. In ci/building are
the sources of each room (sources.py and others), and what is made of them (libraries.py,
programs.py). Those parts are written once: build.ninja reads them for each variant, with its folder
and its flags.
"""

import argparse
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "ci"))
from building import probe  # noqa: E402  (what this machine has)
from building.libraries import (  # noqa: E402  (the runtime, the soft device, the kernels)
    COMMON, EXACT, KERNELS_ROOM, RUNTIME_ROOM, SOFT_ROOM, SOFT_WHOLE, write_core, write_first,
    write_images, write_libraries)
from building.ninja_file import Ninja  # noqa: E402  (how build.ninja is spelled)
from building.programs import (  # noqa: E402  (tollens, tests, tools)
    CLAIMS, FUZZ_LIBS, HARNESS_ROOM, KERNELS_LIBS, TESTS_LIBS, fuzz_name, write_programs)
from building.rules import write_rules  # noqa: E402  (what each kind of file is made with)
from building.soft_sources import BENCH, FUZZ, FUZZ_TARGETS, TABLE  # noqa: E402
from building.sources import (  # noqa: E402
    EXAMPLES, HARNESS, HARNESS_FUZZ, HARNESS_FUZZ_COMMANDS, HARNESS_FUZZ_TARGETS, REFUSED)

# ---- the variants ---------------------------------------------------------------------------

SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
TSAN = "-O1 -g -fsanitize=thread -Wno-unknown-warning-option -Wno-tsan"
FUZZED = "-O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=undefined,float-cast-overflow " \
         "-fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -Wno-pass-failed"

# Walks over whole structures: see runtime/core/deep.h.
DEEP = "-DTOL_DEEP_CHECKS"

VARIANTS = {
    # name: (folder, flags of the compiler, flags of the linker, processor levels)
    "dev": ("build", "-O2 -g", "", ["x1", "x3", "x4"]),
    "release": ("build/release", "-O3 -g -DNDEBUG", "", ["x1", "x3", "x4"]),
    # Compiled as quickly as it goes: it is built once for tests that take moments each.
    # With so little optimisation compilers warn of values that they do not follow.
    "asan": ("build/asan", f"-Og -g1 -Wno-maybe-uninitialized {DEEP} {SANITIZE} $sound_frames",
             SANITIZE, ["x1"]),
    # Counters are atomic: the soft device's threads share them.
    # Without optimisation gcc 12 warns of values that it does not follow; other variants fail then.
    "coverage": ("build/coverage",
                 "-O0 -g --coverage -fprofile-update=atomic -w -include ci/building/exit_counts.h",
                 "--coverage",
                 ["x1"]),
    # What ci/mutate changes one line of, and rebuilds: little to compile and to link.
    "mutate": ("build/mutate", "-O1 -w", "", ["x1"]),
    # Without programs of ours: Criterion cannot run under this sanitizer, and fuzzers have a main.
    "tsan": ("build/tsan", TSAN, "-fsanitize=thread", ["x1"]),
    "fuzz": ("build/fuzz", FUZZED, "-fsanitize=fuzzer,address,undefined", ["x1"]),
}


def write_variant(n: Ninja, name: str) -> str:
    """Sets what libraries.ninja and programs.ninja ask for, and reads them. Returns the folder."""
    folder, flags, ldflags, levels = VARIANTS[name]
    # What runs 32 lanes at a time is large, without variables worth a debugger: -g1 has its lines.
    fast = flags.replace("-O2 -g", "-O3 -g1").replace("-O3 -g ", "-O3 -g1 ")
    n.comment(f"---- {name} ----")
    n.variable("folder", folder)
    n.variable("variant", name)
    n.variable("suffix", "" if name == "dev" else f"-{name}")
    n.variable("flags", flags)
    n.variable("fast", f"{fast} -DSOFT_THREADED" if "-O3" in fast else fast)
    n.variable("core", f"$common $fast $exact {SOFT_ROOM}")
    n.variable("ldflags", ldflags)
    # Each test is a process, and with sanitizers a quarter of its start is relocation.
    # And ci/building/exit_counts.h has a list that libraries share with their program.
    n.variable("program_ldflags", {"asan": "-no-pie", "coverage":
                                   "-Wl,--export-dynamic-symbol=tol_counts_all"}.get(name, ""))
    n.variable("variant_cc", "$fuzz_cc" if name == "fuzz" else "$cc")
    # The sanitizers' functions are found at run time.
    n.variable("complete", "" if "sanitize" in ldflags else "$defs")
    n.variable("has_levels", "$soft_levels" if len(levels) > 1 else "")
    n.variable("quick", {"dev": "-O0", "asan": "-O0 -fno-sanitize=undefined"}.get(name, ""))
    n.variable("calm", {"dev": "-O1", "asan": "-O0"}.get(name, ""))
    n.variable("computes", {"asan": "-fno-sanitize=undefined"}.get(name, ""))
    higher = [part for level in levels[1:] for part in write_core(n, folder, level)]
    n.build(f"{folder}/soft-levels.a", "ar", " ".join(higher))
    n.lines.append("subninja ci/building/libraries.ninja")
    if name not in ("tsan", "fuzz"):
        n.lines.append("subninja ci/building/programs.ninja")
    if higher:  # the others have no speed worth knowing
        parts = " ".join(f"{folder}/soft/{source}.o" for source in BENCH)
        n.build(f"{folder}/bench-soft", "exe", parts, libs=f"{SOFT_WHOLE} -lpthread -lm",
                needs=f"{folder}/soft.a {folder}/soft-levels.a", ldflags="$ldflags")
        n.build("bench-soft" + ("" if name == "dev" else f"-{name}"), "run",
                f"{folder}/bench-soft")
    return folder


def write_dev_targets(n: Ninja) -> None:
    n.build("libs", "phony", "build/libtollens.a build/libtollens.so build/libtollens-kernels.a "
            "build/libtollens-worker.a build/libtollens-seal.a build/libtollens-soft.so "
            "build/libtollens-torch.so "
            "build/libcudart.so.12 build/libcudart.so.13")
    examples = []
    for name in EXAMPLES:
        part = n.build(f"build/examples/{name}.o", "cc", f"runtime/examples/{name}.c",
                       cflags=f"$common -O2 -g {KERNELS_ROOM}")
        examples.append(n.build(f"build/examples/{name}", "exe", f"{part} "
                                "build/libtollens-kernels.a build/libtollens.a",
                                after="build/libtollens-soft.so", libs=KERNELS_LIBS))
    n.build("examples", "phony", " ".join(examples))
    for what in ("hdr", "launch", "pool", "streams", "transfer", "kernels", "seal"):
        n.build(f"bench-{what}", "run", f"build/bench-{what}")


def write_tsan(n: Ninja) -> None:
    """Threads in a plain program."""
    folder = write_variant(n, "tsan")
    parts = [n.build(f"{folder}/{name}.o", "cc", f"runtime/bench/{name}.c",
                     cflags=f"$common $flags {RUNTIME_ROOM}")
             for name in ("threads_check", "threads_pool_check", "threads_copy_check",
                          "threads_watch_check")]
    program = n.build(f"{folder}/threads-check", "exe", f"{' '.join(parts)} {folder}/libtollens.a",
                      after=f"{folder}/libtollens-soft.so", libs="-lpthread -ldl -lm",
                      ldflags="$ldflags")
    n.build("test-tsan", "run", program)


def write_fuzz(n: Ninja) -> None:
    """Each fuzz target with libFuzzer, which clang brings along: ninja fuzz."""
    folder = write_variant(n, "fuzz")

    def objects(room: str, flags: str, sources: list[str], after: str = "") -> list[str]:
        return [n.build(f"{folder}/{room}/{source}.o", "cc", f"{room}/{source}.c", after=after,
                        cflags=f"$common $flags {flags}", cc="$fuzz_cc") for source in sources]

    def programs(targets: list[str], own: list[str], parts: list[str], libs: str,
                 needs: str = "") -> list[str]:
        return [n.build(f"{folder}/{fuzz_name(target, 'fuzz')}", "exe",
                        " ".join([source, *parts]), libs=libs, needs=needs, ldflags="$ldflags",
                        after=f"{folder}/libtollens-soft.so", cc="$fuzz_cc")
                for target, source in zip(targets, own)]

    soft = "runtime/soft"
    all_targets = programs(
        FUZZ_TARGETS, objects(soft, SOFT_ROOM, FUZZ_TARGETS),
        [*objects(soft, SOFT_ROOM, FUZZ),
         *objects(f"{soft}/table", SOFT_ROOM, TABLE)],
        f"{SOFT_WHOLE} {FUZZ_LIBS}", f"{folder}/soft.a {folder}/soft-levels.a")
    harness, flags = "hypotheses/harness", f"{HARNESS_ROOM} -Wno-conversion $criterion_cflags"
    all_targets += programs(
        HARNESS_FUZZ_TARGETS, objects(harness, flags, HARNESS_FUZZ_TARGETS, CLAIMS),
        [*objects(harness, flags, [*HARNESS_FUZZ, *HARNESS_FUZZ_COMMANDS, *HARNESS,
                                   "run/git2_stub"], CLAIMS),
         f"{folder}/libtollens-kernels.a", f"{folder}/libtollens.a"], TESTS_LIBS)
    n.build("fuzz", "phony", " ".join(all_targets))


def write_ninja() -> str:
    """The text of build.ninja."""
    n = Ninja()
    n.comment("Written by configure.py; do not edit. What differs by machine is in the include.")
    n.variable("ninja_required_version", "1.8")
    n.variable("builddir", "build")
    n.lines.append("include build/config.ninja")
    n.variable("common", COMMON)
    n.variable("exact", EXACT)
    write_rules(n)
    n.build("build/generated/claims.def", "claims", reader="reports.thresholds", needs="reports/"
            "thresholds.py hypotheses/thresholds.toml hypotheses/sabotage.toml")
    n.build("build/generated/beyond.def", "claims", reader="reports.beyond", needs="reports/"
            "beyond.py reports/thresholds.py hypotheses/beyond/beyond.toml")
    write_images(n)
    for name in ("dev", "release", "asan", "coverage", "mutate"):
        write_variant(n, name)
        if name == "dev":
            write_first(n)  # with the flags of this variant
    write_dev_targets(n)
    n.comment("---- the whole ----")
    refused = [n.build(f"build/refused/{name}.ok", "refuse", f"runtime/refused/{name}.c",
                       needs="ci/must_fail",
                       cflags="$common -Werror -O2 -Iruntime/include/tollens")
               for name in REFUSED]
    n.build("refused", "phony", " ".join(refused))
    n.build("test", "phony", "test-runtime test-soft test-kernels test-worker test-harness refused")
    n.build("seeds", "script", after="build/test-soft",
            arguments="env TOLLENS_TEST_SEEDS=20 build/test-soft --filter='seed/*'")
    n.build("pool-million", "script", after="build/test-runtime build/libtollens-soft.so",
            arguments="env TOLLENS_DEVICE=soft TOLLENS_TEST_POOL_OPERATIONS=1000000 "
            "build/test-runtime --filter='reference_model/*'")
    n.build("ptx", "script", arguments="ci/ptx --write")
    n.build("install", "script", after="libs", arguments="ci/install")
    n.build("build.ninja ci/building/libraries.ninja ci/building/programs.ninja", "configure",
            needs=" ".join(["configure.py", *sorted(
                f"ci/building/{path.name}" for path in (ROOT / "ci/building").glob("*.py"))]))
    n.lines.append("default dev")
    write_tsan(n)
    write_fuzz(n)
    # Rules see the last value: edges of this file that set none are linked without more.
    n.variable("ldflags", "")
    n.variable("program_ldflags", "")
    return n.text()


# ---- the files --------------------------------------------------------------------------------

WRITTEN = {"build.ninja": write_ninja, "ci/building/libraries.ninja": write_libraries,
           "ci/building/programs.ninja": write_programs}


def write_if_changed(name: str, text: str) -> None:
    path = ROOT / name
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.touch()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"), help="the C compiler")
    parser.add_argument("--check", action="store_true",
                        help="only say whether build.ninja is what this program would write")
    arguments = parser.parse_args()
    texts = {name: write() for name, write in WRITTEN.items()}
    if arguments.check:
        stale = [name for name, text in texts.items()
                 if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
        print(f"{', '.join(stale)}: stale; run ./configure.py" if stale
              else "build.ninja is up to date")
        return 1 if stale else 0
    if not shutil.which(arguments.cc.split()[0]):
        print(f"configure.py: there is no compiler named {arguments.cc}", file=sys.stderr)
        return 2
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build/config.ninja").write_text(probe.config(arguments.cc))
    for name, text in texts.items():
        write_if_changed(name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
