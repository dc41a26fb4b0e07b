"""The libraries: the runtime, the soft device, the kernels; and the flags that all share.

They are described once, in libraries.ninja beside this file, for every variant of the build: each
variant sets the variables that hold() names, and reads that file (see configure.py).
"""

import pathlib

from building.ninja_file import Ninja
from building.seal_sources import SEAL
from building.soft_sources import CUDART, CUDART_EDITIONS, SOFT, SOFT_API, SOFT_CORE
from building.kernel_sources import KERNEL_IMAGES, KERNELS
from building.sources import ENGINE, RUNTIME, TORCH

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion $werror"
COMMON = f"-std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden {WARNINGS}"
# What the soft device's arithmetic relies on: no contraction, no guesses about aliasing.
EXACT = "-fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math $core_cflags"
# A room names its own files and the public headers below it. The public headers' own folder is
# for those who use the runtime as its users do, with #include "tollens.h".
RUNTIME_ROOM = "-Iruntime -Iruntime/include"
SOFT_ROOM = "-Iruntime/soft -Iruntime/include"
KERNELS_ROOM = f"-Ikernels -Iruntime/include/tollens {RUNTIME_ROOM}"
ENGINE_ROOM = f"-Iruntime/worker/engine {KERNELS_ROOM}"
SEAL_ROOM = f"-Iruntime/seal {KERNELS_ROOM}"
# Sources of kernels/ whose loops are to become vectors: the oracles take their time.
VECTORS = ("number", "gemm/gemm_oracle", "attention/forward/attention_oracle", "seal/chacha")
# Sources that compute with rounding modes other than the nearest.
ROUNDING = ("ops/ops_round", "ops/ops_tensor_f64")
# What nobody times: compiled in less time where the variant has flags for it ($calm).
CALM = ("kernels/", "runtime/guard/", "runtime/health/", "runtime/ptx/", "runtime/worker/",
        *(f"runtime/soft/{room}/"
          for room in ("api", "cudart", "driver", "graph", "lower", "ptx", "state")),
        *(f"hypotheses/harness/{room}/"
          for room in ("claim", "files", "judge", "plugin", "program", "run", "trace")))
# The versions of CUDA whose runtime library is made.
CUDARTS = (12, 13)
LEVELS = {"x1": "", "x3": "$march_x3", "x4": "$march_x4"}
# Both archives of the soft device, whole: the exported functions are named by nobody in them.
SOFT_WHOLE = "-Wl,--whole-archive $folder/soft.a $folder/soft-levels.a -Wl,--no-whole-archive"


def speed(path: str) -> str:
    """What decides how much the compiler optimises a source: its rule has $speed."""
    return "$calm" if path.startswith(CALM) else ""


def write_core(n: Ninja, folder: str, level: str, more: str = "") -> list[str]:
    """The instruction bodies, for one processor level."""
    flags = f"$core {LEVELS[level]} -DSOFT_CORE={level}{more}"
    return [n.build(f"{folder}/soft/{name}.{level}.o", "cc", f"runtime/soft/{name}.c",
                    cflags=f"{flags} -frounding-math" if name in ROUNDING else flags)
            for name in SOFT_CORE]


def write_first(n: Ninja) -> None:
    """The soft device for the first verdict: without what other processor levels have better, and
    with bodies of instructions that compile in half the time."""
    objects = [f"build/soft/{name}.o" for name in (*SOFT, *SOFT_API)]
    objects += write_core(n, "build/first", "x1", " -O1")
    n.build("build/first/libtollens-soft.so", "so", " ".join(objects), libs="-lpthread -lm",
            ldflags="-Wl,-z,nodelete -Wl,-soname,libtollens-soft.so $defs")


# nvcc compiles all cubins in about 15 minutes of one processor, so the default build has none.
IMAGES = {"build/images": "", "build/cubins/images": "$nvcc"}


def images_in(folder: str) -> list[str]:
    return [f"{folder}/{pathlib.Path(source).name}.o" for source in KERNEL_IMAGES]


def write_images(n: Ninja) -> None:
    """What the kernels are on a device, without cubins and with: the same for all variants of the
    build."""
    n.comment("---- images of kernels ----")
    for folder, compiler in IMAGES.items():
        for source in KERNEL_IMAGES:
            name = pathlib.Path(source).name
            ptx = f"fixtures/ptx/kernels/{name}.ptx"
            text = n.build(f"{folder}/{name}.S", "image", f"kernels/{source}.cu {ptx}",
                           needs="ci/kernel_image.py", compiler=compiler)
            n.build(f"{folder}/{name}.o", "cc", text, cflags="-fPIC")


def hold(n: Ninja) -> None:
    """Gives this file's scope the variant's values. A rule sees its variables as they are when all
    is read, and build.ninja has set them for the next variant by then."""
    for name in ("folder", "variant", "suffix", "flags", "fast", "core", "ldflags",
                 "program_ldflags", "complete", "has_levels", "quick", "computes", "calm"):
        n.variable(name, f"${name}")
    n.variable("cc", "$variant_cc")


def compile_rule(n: Ninja, name: str, flags: str) -> None:
    n.rule(name, f"$cc -MMD -MF $out.d {flags} -c $in -o $out", depfile="$out.d", deps="gcc",
           description="CC $out")


def write_cudart(n: Ninja) -> None:
    """libcudart.so.12 and libcudart.so.13. They call the driver by dlopen alone."""
    common = " ".join(n.build(f"$folder/soft/{name}.o", "soft", f"runtime/soft/{name}.c",
                              speed=speed(f"runtime/soft/{name}.c"))
                      for name in CUDART)
    n.build("$folder/cudart.a", "ar", common)
    for major in CUDARTS:
        compile_rule(n, f"cudart{major}",
                     f"$common $flags $speed {SOFT_ROOM} -DCUDART_MAJOR={major}")
        own = " ".join(n.build(f"$folder/soft/{name}_{major}.o", f"cudart{major}",
                               f"runtime/soft/{name}.c", speed="$calm")
                       for name in CUDART_EDITIONS)
        library, names = f"libcudart.so.{major}", f"runtime/soft/cudart/libcudart.so.{major}.map"
        n.build(f"$folder/{library}", "so", own, needs=f"$folder/cudart.a {names}",
                libs="-Wl,--whole-archive $folder/cudart.a -Wl,--no-whole-archive -lpthread -ldl",
                ldflags=f"$ldflags -Wl,-soname,{library} -Wl,--version-script={names} $complete")


def write_libraries() -> str:
    """The text of ci/building/libraries.ninja."""
    n = Ninja()
    n.comment("Written by configure.py; do not edit. Read once for each variant of the build.")
    hold(n)
    compile_rule(n, "runtime", f"$common $flags $speed {RUNTIME_ROOM}")
    compile_rule(n, "soft", f"$common $flags $speed $has_levels {SOFT_ROOM}")
    compile_rule(n, "kernels", f"$common $flags $speed {KERNELS_ROOM}")
    compile_rule(n, "engine", f"$common $flags {ENGINE_ROOM}")
    compile_rule(n, "seal", f"$common $flags {SEAL_ROOM}")
    compile_rule(n, "vectors", f"$common $fast {KERNELS_ROOM}")
    objects = " ".join(n.build(f"$folder/runtime/{source}.o", "runtime", f"runtime/{source}.c",
                               speed=speed(f"runtime/{source}.c"))
                       for source in RUNTIME)
    n.build("$folder/libtollens.a", "ar", objects)
    n.build("$folder/libtollens.so", "so", objects, libs="-lpthread -ldl -lm",
            ldflags="$ldflags -Wl,-soname,libtollens.so.1 $complete")
    # Exceptions pass through it, and of the runtime it shows nothing.
    compile_rule(n, "torch", f"$common $flags -fexceptions {RUNTIME_ROOM}")
    objects = " ".join(n.build(f"$folder/runtime/{source}.o", "torch", f"runtime/{source}.c")
                       for source in TORCH)
    n.build("$folder/libtollens-torch.so", "so", f"{objects} $folder/libtollens.a",
            libs="-lpthread -ldl -lm",
            ldflags="$ldflags -Wl,-soname,libtollens-torch.so -Wl,--exclude-libs,ALL $complete")
    objects = " ".join([n.build(f"$folder/soft/{name}.o", "soft", f"runtime/soft/{name}.c",
                                speed=speed(f"runtime/soft/{name}.c"))
                        for name in [*SOFT, *SOFT_API]] + write_core(n, "$folder", "x1"))
    n.build("$folder/soft.a", "ar", objects)
    n.build("$folder/libtollens-soft.so", "so", needs="$folder/soft.a $folder/soft-levels.a",
            libs=f"{SOFT_WHOLE} -lpthread -lm",
            ldflags="$ldflags -Wl,-z,nodelete -Wl,-soname,libtollens-soft.so $complete")
    write_cudart(n)
    parts = [n.build(f"$folder/kernels/{source}.o", "vectors" if source in VECTORS else "kernels",
                     f"kernels/{source}.c", speed=speed(f"kernels/{source}.c"))
             for source in KERNELS]
    for archive, images in zip(("$folder", "$folder/cubins"), IMAGES):
        n.build(f"{archive}/libtollens-kernels.a", "ar", " ".join([*parts, *images_in(images)]))
    n.build("$folder/libtollens-worker.a", "ar", " ".join(
        n.build(f"$folder/worker/{source}.o", "engine", f"runtime/worker/{source}.c")
        for source in ENGINE))
    n.build("$folder/libtollens-seal.a", "ar", " ".join(
        n.build(f"$folder/{source}.o", "seal", f"runtime/{source}.c") for source in SEAL))
    return n.text()
