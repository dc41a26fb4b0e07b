"""The libraries: the runtime, the soft device, the kernels; and the flags that all share."""

import pathlib

from ninja_file import Ninja
from sources import KERNEL_IMAGES, KERNELS, RUNTIME, SOFT, SOFT_API, SOFT_CORE

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
COMMON = f"-std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden {WARNINGS}"
# What the soft device's arithmetic relies on: no contraction, no guesses about aliasing.
EXACT = "-fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math $core_cflags"
# Sources of kernels/ whose loops are to become vectors: the oracles take their time.
VECTORS = ("number", "gemm/gemm_oracle", "attention/attention_oracle")
LEVELS = {"x1": "", "x3": "$march_x3", "x4": "$march_x4"}


def write_soft(n: Ninja, folder: str, flags: str, ldflags: str,
               levels: list[str]) -> tuple[str, list[str]]:
    """The soft device: what is common, and the instruction bodies once for each level."""
    defs = "" if "sanitize" in ldflags else " $defs"
    has_levels = "$soft_levels" if len(levels) > 1 else ""
    objects = [n.build(f"{folder}/soft/{name}.o", "cc", f"runtime/soft/{name}.c",
                       cflags=f"{COMMON} {flags} {has_levels}") for name in [*SOFT, *SOFT_API]]
    fast = flags.replace("-O2", "-O3")
    if "-O3" in fast:
        fast += " -DSOFT_THREADED"
    for level in levels:
        for name in SOFT_CORE:
            rounding = "-frounding-math" if name in ("ops_round", "ops_tensor_f64") else ""
            objects.append(n.build(
                f"{folder}/soft/{name}.{level}.o", "cc", f"runtime/soft/{name}.c",
                cflags=f"{COMMON} {fast} {EXACT} {rounding} {LEVELS[level]} -DSOFT_CORE={level}"))
    soft = n.build(f"{folder}/libtollens-soft.so", "so", " ".join(objects), libs="-lpthread -lm",
                   ldflags=f"{ldflags} -Wl,-z,nodelete -Wl,-soname,libtollens-soft.so{defs}")
    return soft, objects


def write_runtime(n: Ninja, folder: str, flags: str, ldflags: str) -> tuple[str, str]:
    cflags = f"{COMMON} {flags} -Iruntime"
    objects = " ".join(n.build(f"{folder}/runtime/{source}.o", "cc", f"runtime/{source}.c",
                               cflags=cflags) for source in RUNTIME)
    archive = n.build(f"{folder}/libtollens.a", "ar", objects)
    defs = "" if "sanitize" in ldflags else " $defs"  # the sanitizers are found at run time
    shared = n.build(f"{folder}/libtollens.so", "so", objects, libs="-lpthread -ldl -lm",
                     ldflags=f"{ldflags} -Wl,-soname,libtollens.so{defs}")
    return archive, shared


# nvcc compiles all cubins in about 15 minutes of one processor, so the default build has none.
IMAGES = {"build/images": "", "build/cubins/images": "$nvcc"}


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


def write_kernels(n: Ninja, folder: str, flags: str, has_cubins: bool) -> tuple[str, str]:
    """The operations, without cubins and with them; the latter is empty if has_cubins is not set.
    Their archive stands before the runtime's."""
    fast = flags.replace("-O2", "-O3")
    objects = [n.build(f"{folder}/kernels/{source}.o", "cc", f"kernels/{source}.c",
                       cflags=f"{COMMON} {fast if source in VECTORS else flags} "
                              "-Iruntime -Ikernels") for source in KERNELS]
    plain, cubins = ([f"{images}/{pathlib.Path(source).name}.o" for source in KERNEL_IMAGES]
                     for images in IMAGES)
    archive = n.build(f"{folder}/libtollens-kernels.a", "ar", " ".join([*objects, *plain]))
    if not has_cubins:
        return archive, ""
    return archive, n.build(f"{folder}/cubins/libtollens-kernels.a", "ar",
                            " ".join([*objects, *cubins]))
