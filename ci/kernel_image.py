#!/usr/bin/env python3
"""Makes the assembly that holds the images of one kernel file: its PTX and, if NVCC is given,
cubins, each packed as an .xz stream, which is a tenth of it (deflate leaves a fifth).

    ci/kernel_image.py OUT.S SOURCE.cu PTX [NVCC]

The PTX is the committed one; a cubin is made for each kind of device of CUBINS for which the PTX's
target is not too new. Beside OUT.S lie the cubins, the streams and OUT.S.d, which says what they
were made from.
kernels/kernel_image.h has the form of what comes out.
"""

import lzma
import pathlib
import re
import subprocess
import sys

CUBINS = ("80", "89", "90a")
# The default dictionary is 8 MiB, which whoever unpacks allocates; the largest image is 1.5 MiB.
# Of 30 MB of PTX preset 1 leaves 2.8 MB in a second, and preset 9 leaves 2.1 MB in ten, which are
# few beside nvcc's minutes.
DICTIONARY = 2 << 20
QUICK, SMALL = 1, 9


def capability(target: str) -> int:
    return int(target.rstrip("af"))


def serves(ptx_target: str, cubin: str) -> bool:
    """Code for 90a uses what no other kind of device has."""
    if not ptx_target.isdigit():
        return ptx_target == cubin
    return capability(ptx_target) <= capability(cubin)


def compile_cubin(nvcc: str, source: str, kind: str, out: pathlib.Path, made: str) -> None:
    command = [*nvcc.split(), "-cubin", f"-arch=sm_{kind}", "-MMD", "-MF", f"{made}.d",
               "-MT", made, "-o", str(out), source]
    subprocess.run(command, check=True)


def pack(path: pathlib.Path, out: pathlib.Path, preset: int) -> int:
    """How many bytes it was before."""
    content = path.read_bytes()
    filters = [{"id": lzma.FILTER_LZMA2, "preset": preset, "dict_size": DICTIONARY}]
    out.write_bytes(lzma.compress(content, check=lzma.CHECK_CRC32, filters=filters))
    return len(content)


def assembly(name: str, images: list[tuple[str, int, str, bool]]) -> str:
    """What .incbin cannot say goes into a table of struct kn_image."""
    lines = [f"# The images of {name}. Written by ci/kernel_image.py.", '    .section .rodata,"a"']
    rows = ['    .section .data.rel.ro,"aw"', "    .balign 8", f"    .globl kn_images_{name}",
            f"    .hidden kn_images_{name}", f"kn_images_{name}:"]
    for i, (packed, size, target, is_cubin) in enumerate(images):
        lines += [f".Lbegin{i}:", f'    .incbin "{packed}"', f".Lend{i}:"]
        rows += [f"    .quad .Lbegin{i}, .Lend{i} - .Lbegin{i}, {size}",
                 f"    .long {capability(target)}, {int(is_cubin)}",
                 f"    .quad {int(not target.isdigit())}"]
    rows += ["    .quad 0, 0, 0, 0, 0", '    .section .note.GNU-stack,"",%progbits']
    return "\n".join(lines + rows) + "\n"


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    out, source, ptx = sys.argv[1:4]
    nvcc = " ".join(sys.argv[4:])
    target = re.search(r"^\.target sm_(\d+[af]?)", pathlib.Path(ptx).read_text(), re.MULTILINE)
    if target is None:
        print(f"kernel_image.py: {ptx} names no target", file=sys.stderr)
        return 1
    name = pathlib.Path(out).stem
    files = [(pathlib.Path(ptx), target.group(1), False)]
    for kind in CUBINS if nvcc else ():
        if serves(target.group(1), kind):
            cubin = pathlib.Path(out).with_suffix(f".sm_{kind}.cubin")
            compile_cubin(nvcc, source, kind, cubin, out)
            files.append((cubin, kind, True))
    images = []
    for path, kind, is_cubin in files:
        packed = pathlib.Path(out).with_name(f"{path.name}.xz")
        size = pack(path, packed, SMALL if nvcc else QUICK)
        images.append((str(packed), size, kind, is_cubin))
    pathlib.Path(out).write_text(assembly(name, images))
    return 0


if __name__ == "__main__":
    sys.exit(main())
