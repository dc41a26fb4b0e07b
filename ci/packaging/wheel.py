"""Makes a wheel of the Python package tollens with the program in it.

    ci/package pip [--arch aarch64]

With --arch the wheel is for that processor, and is tried under qemu (cross.py).

With --stage FOLDER it makes no wheel, and leaves the Python package in the folder, without program
and libraries, as a package of a distribution has it.

The same commit gives the same bytes: the archive's times are those of the commit. The tag says
which glibc the files need, by the versions of the symbols that they ask for.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

import cross
import manual
import older_glibc
import target
from contents import (
    BUILD, FIXTURES, LIBRARIES, PACKAGES, PROGRAM, ROOT, Unmade, commit_time, glibc_needed,
    needed_libraries, output, stripped, tracked, version)

STAGE = PACKAGES / "wheel"
DIST = PACKAGES / "dist"
# The report's parts that write this repository's own documents or fuzz it stay here.
NOT_OF_USERS = ("_test.py", "made_evidence.py", "fuzz_targets.py", "written.py", "pack.py",
                "code.py", "made_fleet.py", "healthy.py", "copied_fleet.py", "results_page.py",
                "performance_page.py", "published_index.py")
READ_BY_REPORT = ("results.schema.json", "thresholds.toml", "sabotage.toml")
OLDEST_PYTHON = "3.10"
EPOCH_OF_ZIP = 315532800  # 1980-01-01

METADATA = """Metadata-Version: 2.4
Name: tollens
Version: {version}
Summary: Runs CUDA programs and tests without a GPU, checks every memory access, and tries to \
falsify claims about a CUDA runtime
License-Expression: Apache-2.0
{licences}Requires-Python: >={python}
Requires-Dist: tomli; python_version < "3.11"
Provides-Extra: png
Requires-Dist: matplotlib; extra == "png"
Keywords: CUDA,PTX,testing,sanitizer,pytest
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Framework :: Pytest
Classifier: Intended Audience :: Developers
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Testing
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{readme}"""

ENTRY_POINTS = """[console_scripts]
tollens = tollens.program:main

[pytest11]
tollens = tollens.pytest_plugin
"""


def stage_python(package: pathlib.Path) -> None:
    for name in tracked("reports"):
        inner = pathlib.PurePath(name).relative_to("reports")
        if inner.parts[0] in (inner.name, "drawing", "fleet") and \
                inner.suffix in (".py", ".css", ".js") and \
                not inner.name.endswith(NOT_OF_USERS):
            copy(ROOT / name, package / "reports" / inner)
        elif inner.parts[0] == "tollens":
            copy(ROOT / name, package / inner.relative_to("tollens"))
    for name in READ_BY_REPORT:
        copy(ROOT / "hypotheses" / name, package / "hypotheses" / name)


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def stage_program(folder: pathlib.Path) -> list[pathlib.Path]:
    """The program and what it needs. Returns the libraries of others."""
    others = needed_libraries(BUILD / "tollens")
    stripped(BUILD / "tollens", folder / "tollens")
    for name in LIBRARIES:
        stripped(BUILD / name, folder / name)
    for library in others:
        stripped(library.resolve(), folder / "lib" / library.name)
    if older_glibc.can():
        older_glibc.make_all(folder)
    else:
        print("package: there is no patchelf, so the wheel needs the glibc of this machine")
    for part in FIXTURES:
        for name in tracked(f"fixtures/{part}"):
            if not name.endswith(".py"):  # what made them
                copy(ROOT / name, folder / name)
    return others


def stage_licences(folder: pathlib.Path, others: list[pathlib.Path]) -> list[str]:
    """Ours, and Debian's copyright file of each library that comes along. Returns the names."""
    copy(ROOT / "LICENSE", folder / "LICENSE")
    names = ["LICENSE"]
    for library in [*others, pathlib.Path("libcriterion.a")]:
        owner = output("dpkg", "-S", f"*/{library.name}").split(":")[0]
        name = f"{library.name.split('.')[0]}.txt"
        copy(pathlib.Path("/usr/share/doc", owner, "copyright"), folder / name)
        names.append(name)
    return names


def tag(program: pathlib.Path) -> str:
    files = [program / "tollens", *(program / name for name in LIBRARIES),
             *(program / "lib").iterdir()]
    major, minor = max(glibc_needed(path) for path in files)
    return f"py3-none-manylinux_{major}_{max(minor, 17)}_{target.machine()}"


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write_wheel(path: pathlib.Path, info: str) -> None:
    """All files of the stage, those of dist-info last, RECORD at the end, as PEP 427 asks."""
    moment = time.gmtime(max(commit_time(), EPOCH_OF_ZIP))[:6]
    files = sorted((file for file in STAGE.rglob("*") if file.is_file()),
                   key=lambda file: (file.relative_to(STAGE).parts[0] == info, str(file)))
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in files:
            name, content = file.relative_to(STAGE).as_posix(), file.read_bytes()
            record += f"{name},sha256={digest(content)},{len(content)}\n"
            write_member(archive, name, moment, content, os.access(file, os.X_OK))
        record += f"{info}/RECORD,,\n"
        write_member(archive, f"{info}/RECORD", moment, record.encode(), False)


def write_member(archive: zipfile.ZipFile, name: str, moment: tuple, content: bytes,
                 runs: bool) -> None:
    member = zipfile.ZipInfo(name, moment)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.create_system = 3  # Unix, for the mode
    member.external_attr = (0o100000 | (PROGRAM if runs else 0o644)) << 16
    archive.writestr(member, content, compresslevel=9)


def write_info(info: pathlib.Path, licences: list[str]) -> None:
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(METADATA.format(
        version=version(), python=OLDEST_PYTHON,
        licences="".join(f"License-File: {name}\n" for name in licences),
        readme=(ROOT / "ci/packaging/README.pypi.md").read_text()))
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


def make() -> pathlib.Path:
    shutil.rmtree(STAGE, ignore_errors=True)
    DIST.mkdir(parents=True, exist_ok=True)
    package, number = STAGE / "tollens", version()
    stage_python(package)
    others = stage_program(package / "program")
    info = STAGE / f"tollens-{number}.dist-info"
    write_info(info, stage_licences(info / "licenses", others))
    manual.write(STAGE / f"tollens-{number}.data/data")
    what = tag(package / "program")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: ci/package\n"
                                f"Root-Is-Purelib: false\nTag: {what}\n")
    for old in DIST.glob(f"tollens-*_{target.machine()}.whl"):
        old.unlink()
    wheel = DIST / f"tollens-{number}-{what}.whl"
    write_wheel(wheel, info.name)
    return wheel


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/package pip", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch")
    parser.add_argument("--stage", type=pathlib.Path)
    options = parser.parse_args()
    if options.stage:
        stage_python(options.stage / "tollens")
        (options.stage / "tollens/program").mkdir(parents=True, exist_ok=True)
        write_info(options.stage / f"tollens-{version()}.dist-info", [])
        return 0
    try:
        if options.arch is None:
            made = make()
        else:
            made, verdict = cross.make(options.arch)
            print(f"package: under qemu-{options.arch}: {verdict}")
    except (Unmade, ValueError, OSError, subprocess.CalledProcessError) as error:
        print(f"package: {error}", file=sys.stderr)
        return 2
    print(f"package: {made.relative_to(ROOT)}, {made.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
