#!/usr/bin/env python3
"""Writes build.ninja and ci/ninja/*.ninja, which are committed and the same on every machine, and
build/config.ninja, which says what differs by machine (ci/probe.py).

    ./configure.py [--cc clang] [--check]

No file lists sources: this program finds those that git tracks, or would track, by their folders. A
.c file with a main() becomes a program. Files named *_test.c or *_scene.c and files in a folder
test/ are linked into a test program. All other files of a folder go into its library. The object of
dir/x.c is dir/x.o in the variant's folder. The libraries and the programs are described once, in
ci/ninja/, which build.ninja reads for each variant of the build. This file is longer than others
because it is one description of the build, read from top to bottom.
"""

import argparse
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "ci"))
import probe  # noqa: E402  (what this machine has)
from ninja_text import Ninja  # noqa: E402

# ---- the variants of the build ------------------------------------------------------------------

SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
TSAN = "-O1 -g -fsanitize=thread -Wno-unknown-warning-option -Wno-tsan"
FUZZED = "-O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=undefined,float-cast-overflow " \
         "-fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -Wno-pass-failed"

# Walks over whole structures: see runtime/driver/core/deep.h.
DEEP = "-DTOL_DEEP_CHECKS"

VARIANTS = {
    # name: (folder, flags of the compiler, flags of the linker, processor levels)
    "dev": ("build", "-O2 -g", "", ["x1", "x3", "x4"]),
    "release": ("build/release", "-O3 -g -DNDEBUG", "", ["x1", "x3", "x4"]),
    # This variant is built once, for tests that take moments each, so it must compile quickly.
    # At -Og, compilers warn about values that they do not follow.
    "asan": ("build/asan", f"-Og -g1 -Wno-maybe-uninitialized {DEEP} {SANITIZE} $sound_frames",
             SANITIZE, ["x1"]),
    # Counters are atomic, because the soft device's threads share them.
    # At -O0, gcc 12 warns about values that it does not follow; other variants fail then.
    "coverage": ("build/coverage",
                 "-O0 -g --coverage -fprofile-update=atomic -w -include ci/exit_counts.h",
                 "--coverage", ["x1"]),
    # ci/mutate changes one line of this variant and rebuilds it: little to compile and to link.
    "mutate": ("build/mutate", "-O1 -w", "", ["x1"]),
    # Libraries alone: Criterion cannot run under this sanitizer, and fuzzers have their own main.
    "tsan": ("build/tsan", TSAN, "-fsanitize=thread", ["x1"]),
    "fuzz": ("build/fuzz", FUZZED, "-fsanitize=fuzzer,address,undefined", ["x1"]),
}
LEVELS = {"x1": "", "x3": "$march_x3", "x4": "$march_x4"}

# ---- flags --------------------------------------------------------------------------------------

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion $werror"
COMMON = f"-std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden {WARNINGS}"
# What the soft device's arithmetic relies on: no contraction, no assumptions about aliasing.
EXACT = "-fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math $core_cflags"

# Where the includes of each room are looked for. Public headers have a folder of their own for code
# that uses the runtime as its users do, with #include "tollens.h".
DRIVER_ROOM = "-Iruntime/driver -Iruntime/include"
SOFT_ROOM = "-Iruntime/soft -Iruntime/include"
MODELS = "-Iruntime/models/engine -Iruntime/models/seal -Iruntime/models/gguf " \
         "-Iruntime/models/tokenizer"
KERNELS_ROOM = f"-Ikernels -Iruntime/include/tollens {DRIVER_ROOM}"
MODELS_ROOM = f"{MODELS} {KERNELS_ROOM}"
HARNESS_ROOM = "-Ihypotheses/harness -Ihypotheses/harness/include -Ibuild/generated " \
               f"-Iruntime/program -Iruntime/include/tollens {DRIVER_ROOM}"
CLAIMS_ROOM = f"-Ihypotheses {HARNESS_ROOM} {MODELS} -Ikernels -Iruntime/soft"
# The first room whose folder a path begins with is its own.
ROOMS = {
    "runtime/soft/": ("soft", SOFT_ROOM), "runtime/models/": ("models", MODELS_ROOM),
    "runtime/program/": ("claims", CLAIMS_ROOM), "runtime/examples/": ("kernels", KERNELS_ROOM),
    "runtime/cublas/": ("cublas", f"-Iruntime/cublas {KERNELS_ROOM}"),
    "runtime/include/": ("driver", DRIVER_ROOM), "runtime/driver/": ("driver", DRIVER_ROOM),
    "kernels/": ("kernels", KERNELS_ROOM), "fixtures/driver/": ("driver", DRIVER_ROOM),
    "hypotheses/harness/": ("harness", HARNESS_ROOM), "hypotheses/": ("claims", CLAIMS_ROOM),
}

# Loops in these are to become vectors: the oracles compute for seconds.
VECTORS = ("number", "gemm_oracle", "attention_oracle", "chacha")
# These compute with rounding modes other than the nearest.
ROUNDING = ("ops_round", "ops_tensor_f64")
# Nobody times these: compiled in less time where the variant has flags for it ($calm).
CALM = ("kernels/", "runtime/driver/guard/", "runtime/driver/health/", "runtime/driver/ptx/",
        "runtime/models/gguf/", "runtime/models/tokenizer/", "runtime/program/", "runtime/cublas/",
        *(f"runtime/soft/{part}/"
          for part in ("api", "cudart", "driver", "graph", "lower", "ptx", "state")),
        *(f"hypotheses/harness/{part}/"
          for part in ("claim", "files", "judge", "plugin", "program", "run", "trace")))
# Tests, and what they compare with, that compute for seconds: optimised, unlike the others.
COMPUTING = ("pool_scene", "pool_mesh_test", "gemm_oracle_test", "gemm_exact_test",
             "single_calls_test", "sampler_test", "tensor_random_test", "corpus_gemm_test",
             "oracle", "oracle_number", "oracle_product", "oracle_tensor")

KERNELS_LIBS = "-llzma -lpthread -ldl -lm"
TESTS_LIBS = f"$criterion_libs -ljansson -lz {KERNELS_LIBS}"
FUZZ_LIBS = "-ljansson -lz -lpthread -ldl -lm"
# With test_locks.c, which checks that each unlock has its lock.
LOCKED = "-Wl,--wrap=pthread_mutex_unlock"
# With the soft device's test_memory.c, which lets one allocation fail.
SHORT_OF_MEMORY = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"
ARCHIVE, KERNELS_ARCHIVE = "$folder/libtollens.a", "$folder/libtollens-kernels.a"
WORKER_ARCHIVE, SEAL_ARCHIVE = "$folder/libtollens-worker.a", "$folder/libtollens-seal.a"
CUBINS_ARCHIVE = "$folder/cubins/libtollens-kernels.a"
DRIVER, AUDIT_LIBRARY = "$folder/libtollens-soft.so", "$folder/libtollens-audit.so"
SOFT_ARCHIVES = "$folder/soft.a $folder/soft-levels.a"
# Both archives of the soft device, whole: nothing in them names the exported functions.
SOFT_WHOLE = f"-Wl,--whole-archive {SOFT_ARCHIVES} -Wl,--no-whole-archive"
CLAIMS = "build/generated/claims.def build/generated/beyond.def"
# Criterion links libgit2, for which the first stands in.
STUBS = ["hypotheses/harness/run/git2_stub", "runtime/driver/test/test_chosen"]

# The compilers of the same, by their libraries, and what else those are linked with.
COMPILERS = {"nvrtc": "$folder/runtime/soft/lower/container.o", "nvJitLink": ""}
CUDARTS = (12, 13)  # the versions of CUDA whose runtime library is made
CUDART_EDITIONS = ("cudart_exports", "cudart_properties")  # what of it differs between them


# ---- sources, by folder -------------------------------------------------------------------------

MAIN = re.compile(r"^int main\(|^(?:int )?LLVMFuzzerTestOneInput\(", re.MULTILINE)


@functools.cache
def tracked() -> tuple[str, ...]:
    """What git knows or would know; everything, where this is no checkout."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=False)
    # A copy inside an ignored folder of a checkout has no files that git knows.
    names = listed.stdout.split("\n") if listed.returncode == 0 and listed.stdout else [
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.c*")
        if not path.is_relative_to(ROOT / "build")]
    return tuple(sorted({name for name in names if (ROOT / name).is_file()}))


@functools.cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def stem(source: str) -> str:
    return source.rpartition("/")[2]


def has_main(source: str) -> bool:
    return MAIN.search(text_of(f"{source}.c")) is not None


def is_test(source: str) -> bool:
    return source.endswith(("_test", "_scene")) or "/test/" in source


def within(*folders: str, without: tuple[str, ...] = ()) -> list[str]:
    """The .c files under the folders without their suffix, programs among them."""
    return [path[:-2] for path in tracked()
            if path.endswith(".c") and path.startswith(folders) and not path.startswith(without)]


def parts(*folders: str, without: tuple[str, ...] = ()) -> list[str]:
    """What goes into a library."""
    return [source for source in within(*folders, without=without)
            if not is_test(source) and not has_main(source)]


def tests(*folders: str) -> list[str]:
    return [source for source in within(*folders) if is_test(source) and not has_main(source)]


def mains(*folders: str) -> list[str]:
    return [source for source in within(*folders) if has_main(source)]


def objects_of(sources: list[str]) -> list[str]:
    return [f"$folder/{source}.o" for source in sources]


SOFT_APART = tuple(f"runtime/soft/{part}/" for part in
                   ("ops", "cudart", "audit", "toolchain", "tools", "table", "corpus", "test"))
DRIVER_APART = tuple(f"runtime/driver/{part}/" for part in ("torch", "bench", "test", "refused"))
DRIVER_PARTS = parts("runtime/driver/", "runtime/models/gguf/", "runtime/models/tokenizer/",
                     without=DRIVER_APART)
TORCH = parts("runtime/driver/torch/")
SOFT = parts("runtime/soft/", without=SOFT_APART)
SOFT_CORE = parts("runtime/soft/ops/")  # compiled once for each processor level
CUDART = parts("runtime/soft/cudart/")
AUDIT_ELF = "runtime/soft/audit/audit_elf"  # the program reads programs with it as well
CUBLAS = parts("runtime/cublas/")
CUBLAS_EDITION = "runtime/cublas/base/cublas_edition"
KERNELS = parts("kernels/", without=("kernels/bench/", "kernels/sweep/", "kernels/ladder/"))
ENGINE = parts("runtime/models/engine/")
SEAL = parts("runtime/models/seal/")
HARNESS = parts("hypotheses/harness/", without=("hypotheses/harness/fuzz/",))
PROGRAM = [*parts("runtime/program/"), AUDIT_ELF]
ACCURACY = parts("hypotheses/accuracy/")
ATTACKS = [source for source in within("hypotheses/h") if re.match(r"hypotheses/h\d\d", source)]
TABLE = parts("runtime/soft/table/", without=("runtime/soft/table/oracle/",))
FUZZ_SOFT, FUZZ_SOFT_DRIVER = ["runtime/soft/tools/fuzz/fuzz", "runtime/soft/test/box_model",
                               AUDIT_ELF], "runtime/soft/tools/fuzz/replay"
FUZZ_HARNESS = ["hypotheses/harness/fuzz/fuzz_input"]
SOFT_TARGETS = [one for one in mains("runtime/soft/tools/fuzz/") if one != FUZZ_SOFT_DRIVER]
HARNESS_TARGETS = [one for one in mains("hypotheses/harness/fuzz/", "runtime/program/")
                   if stem(one).startswith("fuzz_")]
EXAMPLES = mains("runtime/examples/")
# The .cu files that are put into the library, as PTX and cubins; the others are fixtures of tests.
IMAGES = [path[:-3] for path in tracked() if path.endswith(".cu") and path.startswith("kernels/")
          and (not path.startswith(("kernels/basics/", "kernels/blas/", "kernels/measure/"))
               or stem(path) in ("vector_add.cu", "read_words.cu"))]
# These are put into the cuBLAS of runtime/cublas.
BLAS_IMAGES = [path[:-3] for path in tracked() if path.endswith(".cu")
               and path.startswith("kernels/blas/")]
# nvcc compiles all cubins in about 15 minutes of one processor, so the default build has none.
IMAGE_FOLDERS = {"build/images": "", "build/cubins/images": "$nvcc"}


def images_in(folder: str) -> list[str]:
    return [f"{folder}/{stem(source)}.o" for source in IMAGES]


# ---- how one source is compiled -----------------------------------------------------------------

def room_of(source: str) -> tuple[str, str]:
    return next(room for folder, room in ROOMS.items() if source.startswith(folder))


def compile_one(n: Ninja, source: str, folder: str = "$folder") -> str:
    """The edge of one object: the rule follows from where the source lies and what it is."""
    name, where = stem(source), room_of(source)[0]
    quick = speed = ""
    rule = where
    if is_test(source) or source.startswith(("runtime/soft/table/oracle/", "kernels/ladder/")):
        rule = f"test_{where}" + ("_cuda" if "TOL_HAS_CUDA_H" in text_of(f"{source}.c") else "")
        quick = "$computes" if name in COMPUTING else ""
    elif source.startswith("kernels/") and name in VECTORS:
        rule = "vectors"
    elif source in TORCH:
        rule = "torch"
    elif source.startswith(CALM) and not has_main(source):
        speed = "$calm"
    return n.build(f"{folder}/{source}.o", rule, f"{source}.c",
                   after=CLAIMS if where in ("harness", "claims") else "", quick=quick, speed=speed)


def write_core(n: Ninja, folder: str, level: str, more: str = "") -> list[str]:
    """The instruction bodies, for one processor level."""
    flags = f"$core {LEVELS[level]} -DSOFT_CORE={level}{more}"
    return [n.build(f"{folder}/{source}.{level}.o", "cc", f"{source}.c",
                    cflags=f"{flags} -frounding-math" if stem(source) in ROUNDING else flags)
            for source in SOFT_CORE]


def hold(n: Ninja) -> None:
    """Gives a file's scope the variant's values. A rule sees its variables as they are when all is
    read, and build.ninja has set them for the next variant by then."""
    for name in ("folder", "variant", "suffix", "flags", "fast", "core", "ldflags",
                 "program_ldflags", "complete", "has_levels", "quick", "computes", "calm"):
        n.variable(name, f"${name}")
    n.variable("cc", "$variant_cc")


def write_compile_rules(n: Ninja) -> None:
    # Criterion's own macros convert implicitly, so its users cannot warn about it. Optimised,
    # assertions take longer to compile than they ever run: $quick is -O0, but for the few tests
    # that compute for seconds (COMPUTING), where it is $computes.
    test = "-Wno-conversion $criterion_cflags $quick"
    more = {"soft": "$has_levels", "harness": "-Wno-conversion $criterion_cflags",
            "claims": "-Wno-conversion $criterion_cflags"}
    for where, include in dict(ROOMS.values()).items():
        n.compile_rule(where, f"$common $flags $speed {more.get(where, '')} {include}")
        n.compile_rule(f"test_{where}", f"$common $flags {include} {test}")
        n.compile_rule(f"test_{where}_cuda", f"$common $flags {include} {test} $cuda_cflags")
    n.compile_rule("vectors", f"$common $fast {KERNELS_ROOM}")
    # Exceptions pass through PyTorch's allocator.
    n.compile_rule("torch", f"$common $flags -fexceptions {DRIVER_ROOM}")
    for major in CUDARTS:
        n.compile_rule(f"cudart{major}", f"$common $flags $calm {SOFT_ROOM} -DCUDART_MAJOR={major}")


# ---- the libraries: the runtime, the soft device, the kernels, models ---------------------------

def write_cudart(n: Ninja) -> None:
    """The libraries of CUDA 12 and 13: libcudart, which call the driver by dlopen alone, libnvrtc
    and libnvJitLink."""
    common = [source for source in CUDART if stem(source) not in CUDART_EDITIONS]
    n.build("$folder/cudart.a", "ar", " ".join(objects_of(common)))
    for major in CUDARTS:
        own = " ".join(n.build(f"$folder/{source}_{major}.o", f"cudart{major}", f"{source}.c")
                       for source in CUDART if stem(source) in CUDART_EDITIONS)
        library, names = f"libcudart.so.{major}", f"runtime/soft/cudart/libcudart.so.{major}.map"
        n.build(f"$folder/{library}", "so", own, needs=f"$folder/cudart.a {names}",
                libs="-Wl,--whole-archive $folder/cudart.a -Wl,--no-whole-archive -lpthread -ldl",
                ldflags=f"$ldflags -Wl,-soname,{library} -Wl,--version-script={names} $complete")
        for name, more in COMPILERS.items():
            own, library = f"runtime/soft/toolchain/{name.lower()}", f"lib{name}.so.{major}"
            part = n.build(f"$folder/{own}_{major}.o", f"cudart{major}", f"{own}.c")
            n.build(f"$folder/{library}", "so", f"{part} {more}", libs="-lpthread -ldl",
                    ldflags=f"$ldflags -Wl,-soname,{library} -Wl,--default-symver $complete")


def write_cublas(n: Ninja) -> None:
    """libcublas and libcublasLt of CUDA 12 and 13, which share all but what they export. They are
    linked with the parts of the runtime and of the kernels library that they need."""
    shared = [one for one in parts("runtime/cublas/base/") if one != CUBLAS_EDITION]
    images = " ".join(f"build/images/{stem(source)}.o" for source in BLAS_IMAGES)
    for major in CUDARTS:
        edition = n.build(f"$folder/{CUBLAS_EDITION}_{major}.o", f"cudart{major}",
                          f"{CUBLAS_EDITION}.c")
        for name, folder in (("cublas", "blas"), ("cublasLt", "lt")):
            own = objects_of(parts(f"runtime/cublas/{folder}/") + shared)
            library = f"lib{name}.so.{major}"
            n.build(f"$folder/{library}", "so",
                    f"{' '.join(own)} {edition} {images}",
                    needs=f"{KERNELS_ARCHIVE} {ARCHIVE}",
                    libs=f"{KERNELS_ARCHIVE} {ARCHIVE} {KERNELS_LIBS}",
                    ldflags=f"$ldflags -Wl,-soname,{library} -Wl,--default-symver "
                            "-Wl,--exclude-libs,ALL -Wl,-rpath,'$$ORIGIN/lib' $complete")


def write_libraries() -> str:
    n = Ninja("Written by configure.py; do not edit. Read once for each variant of the build.")
    hold(n)
    write_compile_rules(n)
    for source in [*DRIVER_PARTS, *TORCH, *SOFT, *KERNELS, *ENGINE, *SEAL,
                   *(one for one in CUBLAS if one != CUBLAS_EDITION),
                   *(one for one in CUDART if stem(one) not in CUDART_EDITIONS)]:
        compile_one(n, source)
    objects = " ".join(objects_of(DRIVER_PARTS))
    n.build(ARCHIVE, "ar", objects)
    n.build("$folder/libtollens.so", "so", objects, libs="-lpthread -ldl -lm",
            ldflags="$ldflags -Wl,-soname,libtollens.so.1 $complete")
    # It exports nothing of the runtime.
    n.build("$folder/libtollens-torch.so", "so", f"{' '.join(objects_of(TORCH))} {ARCHIVE}",
            libs="-lpthread -ldl -lm",
            ldflags="$ldflags -Wl,-soname,libtollens-torch.so -Wl,--exclude-libs,ALL $complete")
    n.build("$folder/soft.a", "ar", " ".join(objects_of(SOFT) + write_core(n, "$folder", "x1")))
    n.build(DRIVER, "so", needs=SOFT_ARCHIVES, libs=f"{SOFT_WHOLE} -lpthread -lm",
            ldflags="$ldflags -Wl,-z,nodelete -Wl,-soname,libtollens-soft.so $complete")
    write_cudart(n)
    write_cublas(n)
    # The loader loads it before all else: without sanitizers, whatever the variant.
    n.build(AUDIT_LIBRARY, "so", " ".join(
        n.build(f"$folder/audit/{stem(source)}.o", "cc", f"{source}.c", cflags=f"$common -O2 -g "
                f"{SOFT_ROOM}") for source in parts("runtime/soft/audit/")), ldflags="$defs")
    for archive, images in zip((KERNELS_ARCHIVE, CUBINS_ARCHIVE), IMAGE_FOLDERS):
        n.build(archive, "ar", " ".join([*objects_of(KERNELS), *images_in(images)]))
    n.build(WORKER_ARCHIVE, "ar", " ".join(objects_of(ENGINE)))
    n.build(SEAL_ARCHIVE, "ar", " ".join(objects_of(SEAL)))
    return n.text()


def write_images(n: Ninja) -> None:
    """What the kernels are on a device, without cubins and with: the same for all variants."""
    for folder, compiler in IMAGE_FOLDERS.items():
        for source in IMAGES + (BLAS_IMAGES if compiler == "" else []):
            name = stem(source)
            text = n.build(f"{folder}/{name}.S", "image",
                           f"{source}.cu fixtures/ptx/kernels/{name}.ptx.xz",
                           needs="ci/kernel_image.py", compiler=compiler)
            n.build(f"{folder}/{name}.o", "cc", text, cflags="-fPIC")


# ---- the programs: `tollens`, plugins, tests, tools, benchmarks ---------------------------------

class Programs:
    """ci/ninja/programs.ninja as it is being written."""

    def __init__(self) -> None:
        self.n = Ninja("Written by configure.py; do not edit. Read once for each variant.")
        hold(self.n)
        write_compile_rules(self.n)
        self.compiled = {*DRIVER_PARTS, *TORCH, *SOFT, *KERNELS, *ENGINE, *SEAL, *CUDART, *CUBLAS}
        self.all: list[str] = []     # the default target
        self.replays: list[str] = []
        self.cubins: list[str] = []  # the programs with kernels, linked with cubins as well

    def objects(self, sources: list[str]) -> list[str]:
        """The objects of sources, each compiled once."""
        for source in sources:
            if source not in self.compiled:
                self.compiled.add(source)
                compile_one(self.n, source)
        return objects_of(sources)

    def program(self, target: str, sources: list[str], archives: list[str] | None = None,
                libs: str = TESTS_LIBS, after: str = DRIVER, needs: str = "") -> str:
        linked = self.objects(sources) + (archives or [])
        if KERNELS_ARCHIVE in linked:
            self.cubins.append(self.n.build(f"$folder/cubins/{target}", "exe", " ".join(
                CUBINS_ARCHIVE if part == KERNELS_ARCHIVE else part for part in linked), libs=libs))
        return self.n.build(f"$folder/{target}", "exe", " ".join(linked), needs=needs, after=after,
                            libs=libs)

    def plugin(self, name: str, sources: list[str], libs: str = "-lpthread") -> str:
        """What a plugin does not have itself, the program that loads it has."""
        return self.n.build(f"$folder/{name}.so", "so", " ".join(self.objects(sources)), libs=libs)

    def write_tollens(self) -> list[str]:
        """The program `tollens` and its plugins. Returns the plugins."""
        # Plugins call the harness and the runtime, all of it, in the program that loads them.
        self.program("tollens", ["hypotheses/harness/program/tollens", *ATTACKS, *ACCURACY,
                                 *PROGRAM, *HARNESS, *SEAL, *DRIVER_PARTS],
                     [WORKER_ARCHIVE, KERNELS_ARCHIVE],
                     libs=f"{TESTS_LIBS} '-Wl,--export-dynamic-symbol=tol_*' "
                          "'-Wl,--export-dynamic-symbol=hyp_*'",
                     after="")  # ci/falsify links a smaller soft device first
        beyond, peers = "hypotheses/beyond", "hypotheses/beyond/peers"
        process = mains(f"{peers}/")
        return [
            self.plugin("worker-claims", parts(f"{beyond}/worker/"), "-llzma -lpthread -lm"),
            self.plugin("memory-claims", [*parts(f"{beyond}/memory/"),
                                          "runtime/models/seal/plain_search"]),
            self.plugin("order-claims", parts(f"{beyond}/order/"), "-lpthread -ldl"),
            self.plugin("peer-claims", [*parts(f"{peers}/"), "runtime/driver/bench/peer_speed"],
                        "-lpthread -ldl"),
            self.plugin("hanging-claims", ["hypotheses/harness/test/hanging_claims"]),
            self.program("peer-process", [*process, *(f"{peers}/{part}" for part in (
                "peer_driver", "peer_pattern", "peer_message")), *(
                    f"hypotheses/harness/files/{part}" for part in ("packed_file", "atomic_file"))],
                libs="-llzma -lpthread -ldl")]

    def write_tools(self) -> list[str]:
        """Benchmarks and tools: each program takes the other files of its folder that it needs."""
        made = []
        log = [f"hypotheses/harness/files/{part}" for part in ("hdr_encode", "hlog", "atomic_file")]
        for name in ("hdr_bench", "hdr_interop"):
            made.append(self.program(program_name(name), [f"hypotheses/harness/files/{name}", *log],
                                     [ARCHIVE], "-lz -lpthread -ldl -lm"))
        for main in mains("runtime/soft/table/"):
            made.append(self.program(program_name(main), [main, *TABLE],
                                     libs="-lz -lpthread -ldl -lm"))
        made.append(self.program("probe-driver", ["runtime/soft/tools/probe_driver"], libs="-ldl"))
        bench = "runtime/driver/bench/"
        for main in mains(bench):
            first = stem(main).partition("_")[0]
            if first == "threads":
                continue  # of the variant tsan
            own = [part for part in parts(bench)
                   if stem(part).startswith((f"{first}_", "peer_" if first == "peers" else "-"))
                   and stem(part) != "compare_side"]
            made.append(self.program(program_name(main), [main, *own], [ARCHIVE],
                                     "-lpthread -ldl -lm"))
        made += self.write_kernel_tools()
        # Which driver it breaks, the loader decides: here it is linked with an empty library.
        below = self.n.build("$folder/below/libcuda.so.1", "so", ldflags="-Wl,-soname,libcuda.so.1")
        broken = self.objects(["fixtures/driver/broken_driver"])[0]
        made.append(self.n.build("$folder/libtollens-broken.so", "so", f"{broken} {below}",
                                 libs="-ldl", ldflags="$ldflags -Wl,--no-as-needed"))
        made.append(self.program("broken-table", ["fixtures/driver/broken_table"], libs=""))
        for name, path in (("nvtx-listener", "runtime/driver/test/nvtx_listener"),
                           ("nvrtc-stand-in", "runtime/driver/test/nvrtc_stand_in"),
                           ("nvml-stand-in", "runtime/driver/test/nvml_stand_in")):
            made.append(self.plugin(f"lib{name}", [path]))
        return made

    def write_kernel_tools(self) -> list[str]:
        bench = parts("kernels/bench/") + mains("kernels/bench/")
        apart = [one for one in bench if stem(one) in (
            "collectives_bench", "collectives_processes", "nccl")]
        shared = "kernel_bench bench_program bench_json bench_limits bench_peer device_state " \
                 "ggml_times alike seal_bench"
        programs = {
            "bench-kernels": [one for one in bench if one not in apart
                              and stem(one) != "seal_bench"],
            "bench-seal": [one for one in bench if stem(one) in shared.split()],
            "bench-collectives": apart, "kn-tune": mains("kernels/tune/"),
            "kernel-sweep": within("kernels/sweep/")}
        return [self.program(target, sources, [KERNELS_ARCHIVE, ARCHIVE], KERNELS_LIBS)
                for target, sources in programs.items()]

    def write_replays(self) -> None:
        """What ci/check runs over the committed inputs of the fuzz targets."""
        for target in SOFT_TARGETS:
            self.replays.append(self.program(
                fuzz_name(target, "replay"), [target, *FUZZ_SOFT, FUZZ_SOFT_DRIVER, *TABLE],
                libs=f"{SOFT_WHOLE} {FUZZ_LIBS}", needs=SOFT_ARCHIVES))
        for target in HARNESS_TARGETS:
            self.replays.append(self.program(
                fuzz_name(target, "replay"),
                [target, *FUZZ_HARNESS, *HARNESS, FUZZ_SOFT_DRIVER],
                libs=f"{KERNELS_ARCHIVE} {ARCHIVE} {TESTS_LIBS}",
                needs=f"{KERNELS_ARCHIVE} {ARCHIVE}"))

    def write_tests(self, plugins: list[str], tools: list[str]) -> list[str]:
        listeners = " ".join(tools[-3:])
        client = self.program("soft-client", ["runtime/program/soft_client"], libs="-ldl")
        guarded = self.program("guard-client", ["runtime/driver/test/guard_client"], [ARCHIVE],
                               "-lpthread -ldl -lm")
        cudart = " ".join(f"$folder/libcudart.so.{major}" for major in CUDARTS)
        cublas = " ".join(f"$folder/lib{name}.so.{major}" for major in CUDARTS
                          for name in ("cublas", "cublasLt"))
        common = [f"runtime/driver/test/{part}" for part in ("test_device", "test_scenarios")]
        driver = [one for one in tests("runtime/driver/", "runtime/models/gguf/",
                                       "runtime/models/tokenizer/")
                  if stem(one) not in ("nvtx_listener", "nvrtc_stand_in", "nvml_stand_in")]
        soft = [*tests("runtime/soft/"), *parts("runtime/soft/table/", "runtime/soft/corpus/",
                                                AUDIT_ELF)]
        harness = [one for one in tests("hypotheses/", "runtime/program/")
                   if stem(one) != "hanging_claims"]
        kernels_bench = [f"kernels/bench/{part}" for part in (
            "cublas", "bench_check", "bench_limits", "bench_peer", "device_state", "ggml_times")]
        return [
            self.program("test-runtime", [*driver, "runtime/driver/bench/pool_rounds", STUBS[0]],
                         [ARCHIVE], f"{TESTS_LIBS} {LOCKED}",
                         f"{DRIVER} {listeners} {guarded} $folder/libtollens-torch.so"),
            self.program("test-soft", [*soft, "runtime/driver/test/test_locks", *STUBS], [],
                         f"{SOFT_WHOLE} {TESTS_LIBS} {LOCKED} {SHORT_OF_MEMORY}",
                         f"{DRIVER} $folder/probe-driver $folder/gemm-table {cudart}",
                         SOFT_ARCHIVES),
            self.program("test-kernels", [*tests("kernels/", "runtime/cublas/"),
                                          *within("kernels/ladder/"),
                                          *kernels_bench, common[0], *STUBS],
                         [KERNELS_ARCHIVE, ARCHIVE],
                         after=f"{DRIVER} $folder/bench-kernels {listeners} {cublas}"),
            self.program("test-worker", [*tests("runtime/models/engine/", "runtime/models/seal/"),
                                         "runtime/models/seal/plain_search",
                                         "runtime/models/gguf/gguf_scene", *common, *STUBS],
                         [WORKER_ARCHIVE, SEAL_ARCHIVE, KERNELS_ARCHIVE, ARCHIVE]),
            self.program("test-harness", [*harness, *ACCURACY, *HARNESS, *PROGRAM, STUBS[1]],
                         [WORKER_ARCHIVE, KERNELS_ARCHIVE, ARCHIVE], after=" ".join([
                             *LIBRARIES, "$folder/tollens", *plugins, client, listeners, guarded]))]

    def write(self) -> str:
        plugins = self.write_tollens()
        tools = self.write_tools()
        self.objects(parts("runtime/soft/tools/bench/") + mains("runtime/soft/tools/bench/"))
        self.write_replays()
        made = self.write_tests(plugins, tools)
        self.n.build("$variant", "phony", " ".join(
            [*LIBRARIES, "$folder/tollens", *plugins, *tools, *self.replays, *made]))
        self.n.build("replays$suffix", "phony", " ".join(self.replays))
        self.n.build("cubins$suffix", "phony", " ".join([CUBINS_ARCHIVE, *self.cubins]))
        for test in made:
            self.n.build(test.replace("$folder/", "") + "$suffix", "run", test, after="$variant")
        return self.n.text()


LIBRARIES = [ARCHIVE, "$folder/libtollens.so", KERNELS_ARCHIVE, WORKER_ARCHIVE, SEAL_ARCHIVE,
             DRIVER, "$folder/libtollens-torch.so", AUDIT_LIBRARY,
             *(f"$folder/lib{name}.so.{major}" for major in CUDARTS
               for name in ("cudart", "cublas", "cublasLt", *COMPILERS))]


def program_name(source: str) -> str:
    """ "runtime/driver/bench/pool_bench" as bench-pool, "kn_tune" as kn-tune."""
    name = stem(source)
    if name.endswith("_bench"):
        name = "bench_" + name.removesuffix("_bench")
    return name.replace("_", "-")


def fuzz_name(target: str, prefix: str) -> str:
    """ "fuzz/fuzz_hlog" as the program fuzz-hlog or replay-hlog."""
    return prefix + "-" + target.rsplit("/fuzz_", 1)[-1]


# ---- each variant, and the targets of one alone -------------------------------------------------

def write_variant(n: Ninja, name: str) -> str:
    """Sets what ci/ninja/*.ninja ask for, and reads them. Returns the folder."""
    folder, flags, ldflags, levels = VARIANTS[name]
    # What runs 32 lanes at a time is large, without variables worth a debugger: -g1 has its lines.
    fast = flags.replace("-O2 -g", "-O3 -g1").replace("-O3 -g ", "-O3 -g1 ")
    n.lines.append(f"# ---- {name} ----")
    n.variable("folder", folder)
    n.variable("variant", name)
    n.variable("suffix", "" if name == "dev" else f"-{name}")
    n.variable("flags", flags)
    n.variable("fast", f"{fast} -DSOFT_THREADED" if "-O3" in fast else fast)
    n.variable("core", f"$common $fast $exact {SOFT_ROOM}")
    n.variable("ldflags", ldflags)
    # Each test is a process, and with sanitizers a quarter of its start is relocation.
    # And ci/exit_counts.h has a list that libraries share with their program.
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
    n.lines.append("subninja ci/ninja/libraries.ninja")
    if name not in ("tsan", "fuzz"):
        n.lines.append("subninja ci/ninja/programs.ninja")
    if higher:  # the others have no speed worth knowing
        bench = within("runtime/soft/tools/bench/")
        n.build(f"{folder}/bench-soft", "exe", " ".join(f"{folder}/{one}.o" for one in bench),
                libs=f"{SOFT_WHOLE} -lpthread -lm".replace("$folder", folder),
                needs=f"{folder}/soft.a {folder}/soft-levels.a", ldflags="$ldflags")
        n.build("bench-soft" + ("" if name == "dev" else f"-{name}"), "run", f"{folder}/bench-soft")
    return folder


def write_first(n: Ninja) -> None:
    """The soft device for the first verdict of ci/falsify: for one processor level, and with
    instruction bodies that compile in half the time."""
    objects = [f"build/{source}.o" for source in SOFT] + write_core(n, "build/first", "x1", " -O1")
    n.build("build/first/libtollens-soft.so", "so", " ".join(objects), libs="-lpthread -lm",
            ldflags="-Wl,-z,nodelete -Wl,-soname,libtollens-soft.so $defs")


def write_dev_targets(n: Ninja) -> None:
    n.build("libs", "phony", " ".join(LIBRARIES).replace("$folder", "build"))
    examples = []
    for source in EXAMPLES:
        part = n.build(f"build/{source}.o", "cc", f"{source}.c",
                       cflags=f"$common -O2 -g {KERNELS_ROOM}")
        examples.append(n.build(f"build/examples/{stem(source)}", "exe", f"{part} "
                                "build/libtollens-kernels.a build/libtollens.a",
                                after="build/libtollens-soft.so", libs=KERNELS_LIBS))
    n.build("examples", "phony", " ".join(examples))
    for what in ("hdr", "launch", "pool", "streams", "transfer", "kernels", "seal"):
        n.build(f"bench-{what}", "run", f"build/bench-{what}")
    refused = [n.build(f"build/refused/{stem(source)}.ok", "refuse", f"{source}.c",
                       needs="ci/must_fail", cflags="$common -Werror -O2 -Iruntime/include/tollens")
               for source in within("runtime/driver/refused/")]
    n.build("refused", "phony", " ".join(refused))
    n.build("test", "phony", "test-runtime test-soft test-kernels test-worker test-harness refused")
    n.build("seeds", "script", after="build/test-soft",
            arguments="env TOLLENS_TEST_SEEDS=20 build/test-soft --filter='seed/*'")
    n.build("pool-million", "script", after="build/test-runtime build/libtollens-soft.so",
            arguments="env TOLLENS_DEVICE=soft TOLLENS_TEST_POOL_OPERATIONS=1000000 "
            "build/test-runtime --filter='reference_model/*'")
    n.build("ptx", "script", arguments="ci/ptx --write")
    n.build("install", "script", after="libs", arguments="ci/install")


def write_tsan(n: Ninja) -> None:
    """Threads in a plain program."""
    folder = write_variant(n, "tsan")
    objects = [n.build(f"{folder}/{source}.o", "cc", f"{source}.c",
                       cflags=f"$common $flags {DRIVER_ROOM}")
               for source in within("runtime/driver/bench/threads_")]
    program = n.build(f"{folder}/threads-check", "exe",
                      f"{' '.join(objects)} {folder}/libtollens.a",
                      after=f"{folder}/libtollens-soft.so", libs="-lpthread -ldl -lm",
                      ldflags="$ldflags")
    n.build("test-tsan", "run", program)


def write_fuzz(n: Ninja) -> None:
    """Each fuzz target with libFuzzer, which clang brings along: ninja fuzz."""
    folder = write_variant(n, "fuzz")
    made: dict[str, str] = {}

    def objects(sources: list[str]) -> str:
        for source in sources:
            if source not in made:
                made[source] = n.build(
                    f"{folder}/{source}.o", "cc", f"{source}.c", cc="$fuzz_cc", after=CLAIMS,
                    cflags=f"$common $flags {room_of(source)[1]} -Wno-conversion "
                           "$criterion_cflags")
        return " ".join(made[source] for source in sources)

    def target(source: str, shared: list[str], libs: str, needs: str, archives: str = "") -> str:
        return n.build(f"{folder}/{fuzz_name(source, 'fuzz')}", "exe",
                       f"{objects([source, *shared])} {archives}", libs=libs, needs=needs,
                       ldflags="$ldflags", after=f"{folder}/libtollens-soft.so", cc="$fuzz_cc")

    targets = [target(source, [*FUZZ_SOFT, *TABLE],
                      f"{SOFT_WHOLE} {FUZZ_LIBS}".replace("$folder", folder),
                      f"{folder}/soft.a {folder}/soft-levels.a") for source in SOFT_TARGETS]
    targets += [target(source, [*FUZZ_HARNESS, *HARNESS], TESTS_LIBS, "",
                       f"{folder}/libtollens-kernels.a {folder}/libtollens.a")
                for source in HARNESS_TARGETS]
    n.build("fuzz", "phony", " ".join(targets))


def write_rules(n: Ninja) -> None:
    n.compile_rule("cc", "$cflags")
    n.rule("image", "$python ci/kernel_image.py $out $in $compiler", depfile="$out.d", deps="gcc",
           description="IMAGE $out")
    n.rule("ar", "rm -f $out && ar rcs $out $in", description="AR $out")
    n.rule("so", "$cc -shared $ldflags -o $out $in $libs", description="LINK $out")
    # A bundle has its libraries in lib/. One dollar for ninja, and quotes for the shell.
    n.rule("exe", "$cc $ldflags $program_ldflags -o $out $in $libs '-Wl,-rpath,$$ORIGIN/lib'",
           description="LINK $out")
    n.rule("run", "$runner $in", pool="console", description="RUN $in")
    n.rule("script", "$arguments", pool="console", description="$arguments")
    n.rule("refuse", "ci/must_fail $out $cc $cflags -c $in", description="REFUSED $in")
    n.rule("claims", "$python -m $reader --c $out", description="CLAIMS $out")
    n.rule("configure", "$python configure.py $configure_args", generator="1",
           description="CONFIGURE")


def write_ninja() -> str:
    """The text of build.ninja."""
    n = Ninja("Written by configure.py; do not edit. What differs by machine is in the include.")
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
    n.build(" ".join(WRITTEN), "configure", needs="configure.py ci/probe.py")
    n.lines.append("default dev")
    write_tsan(n)
    write_fuzz(n)
    # Rules see the last value: edges of this file that set none are linked without more.
    n.variable("ldflags", "")
    n.variable("program_ldflags", "")
    return n.text()


# ---- the files ----------------------------------------------------------------------------------

WRITTEN = {"build.ninja": write_ninja, "ci/ninja/libraries.ninja": write_libraries,
           "ci/ninja/programs.ninja": lambda: Programs().write()}


def write_if_changed(name: str, text: str) -> None:
    path = ROOT / name
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(exist_ok=True)
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
