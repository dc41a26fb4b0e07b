#!/usr/bin/env python3
"""Makes the assembly that holds the images of one kernel file: its PTX and, if NVCC is given,
cubins, each as an .xz stream, a tenth of its size (deflate leaves a fifth).

    ci/kernel_image.py OUT.S SOURCE.cu PTX.xz [NVCC]

The PTX is the committed stream, which ci/ptx packed. A cubin is made for each kind of device of
CUBINS for which the PTX's target is not too new. Next to OUT.S lie the cubins, their streams and
OUT.S.d, which lists what they were made from.
kernels/kernel_image.h has the form of the output.
"""

import lzma
import pathlib
import re
import subprocess
import sys

CUBINS = ("80", "89", "90a")
# The default dictionary is 8 MiB, which whoever unpacks allocates; the largest image is 1.5 MiB.
DICTIONARY = 2 << 20
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": DICTIONARY}]


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


def packed(content: bytes) -> bytes:
    return lzma.compress(content, check=lzma.CHECK_CRC32, filters=FILTERS)


def kept_text(file: pathlib.Path) -> bytes:
    """What a kept file holds: the kernels' are packed. ValueError: it is damaged."""
    content = file.read_bytes()
    if file.suffix != ".xz":
        return content
    try:
        return lzma.decompress(content)
    except lzma.LZMAError as error:
        raise ValueError(f"{file} is damaged: {error}") from error


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
    text = kept_text(pathlib.Path(ptx))
    target = re.search(rb"^\.target sm_(\d+[af]?)", text, re.MULTILINE)
    if target is None:
        print(f"kernel_image.py: {ptx} names no target", file=sys.stderr)
        return 1
    of_ptx = target.group(1).decode()
    images = [(ptx, len(text), of_ptx, False)]
    for kind in CUBINS if nvcc else ():
        if serves(of_ptx, kind):
            cubin = pathlib.Path(out).with_suffix(f".sm_{kind}.cubin")
            compile_cubin(nvcc, source, kind, cubin, out)
            content = cubin.read_bytes()
            stream = cubin.with_name(f"{cubin.name}.xz")
            stream.write_bytes(packed(content))
            images.append((str(stream), len(content), kind, True))
    pathlib.Path(out).write_text(assembly(pathlib.Path(out).stem, images))
    return 0


if __name__ == "__main__":
    sys.exit(main())
