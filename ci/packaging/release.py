"""Makes a release of the commit that is checked out, from one clean clone, in build/release-files:
the source, the wheel, the Debian packages, the bundle for GPU machines, a bill of materials (SPDX
2.3) and SHA256SUMS. The same commit gives the same bytes.

    ci/release [--out DIR] [--only source,wheel,deb,bundle]
    ci/release --twice [...]     makes it in two folders and compares them byte for byte

The clone is in build/release-work. A release has only what is committed; `sha256sum -c SHA256SUMS`
in its folder says whether it is complete.

Exit code: 0 made; 1 two builds differ; 2 it could not be made.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import unittest.mock

import sbom
from stable_archive import compress, differences, files_of, pack, write_sums
from contents import BUILD, QUIET_NINJA, ROOT, Unmade, compiler_of, output, version

PARTS = ("source", "wheel", "deb", "bundle")
WORK = BUILD / "release-work"
PROGRAMS = ("libs", "build/tollens", "build/libnvml-stand-in.so", "build/peer-process",
            *(f"build/{part}-claims.so" for part in ("worker", "memory", "order", "peer")))


def say(text: str) -> None:
    print(f"release: {text}", flush=True)


def run(folder: pathlib.Path, log: pathlib.Path, environment: dict[str, str], *words: str) -> None:
    with log.open("a") as out:
        out.write(f"$ {' '.join(words)}\n")
        out.flush()
        done = subprocess.run(list(words), cwd=folder, env=environment, stdout=out,
                              stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        end = "\n".join(log.read_text().splitlines()[-15:])
        raise Unmade(f"{words[0]} failed:\n{end}\nall of it is in {log}")


def environment_of(when: int) -> dict[str, str]:
    """What must not differ: the time, and a toolkit, which few machines have."""
    return {**os.environ, "SOURCE_DATE_EPOCH": str(when), "PYTHONDONTWRITEBYTECODE": "1",
            "NVCC": "/nonexistent", "CUDA_HOME": "/nonexistent", "TOLLENS_CUBINS": "no"}


def clone(target: pathlib.Path, commit: str, log: pathlib.Path, environment: dict) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    run(ROOT, log, environment, "git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT),
        str(target))
    run(target, log, environment, "git", "checkout", "--quiet", "--detach", commit)


def configure(source: pathlib.Path, log: pathlib.Path, environment: dict) -> None:
    compiler = compiler_of(source, environment.get("CC", "gcc"))
    run(source, log, environment, sys.executable, "configure.py", "--cc", compiler)
    (source / "build/python").write_text(sys.executable + "\n")


def make_source(source: pathlib.Path, commit: str, out: pathlib.Path) -> None:
    top = f"tollens-{version()}"
    content = subprocess.run(
        ["git", "-C", str(source), "-c", "tar.umask=0022", "archive", f"--prefix={top}/", commit],
        check=True, stdout=subprocess.PIPE).stdout
    compress(content, out / f"{top}.tar.xz")


def make_bundle(source: pathlib.Path, when: int, out: pathlib.Path, log: pathlib.Path,
                environment: dict) -> None:
    run(source, log, environment, "ci/bundle")
    name = f"tollens-{version()}-bundle-{os.uname().machine}"
    pack(source / "build/bundle", name, when, out / f"{name}.tar.xz")


def interface(library: pathlib.Path, headers: pathlib.Path) -> bytes:
    """The binary interface of a library, as the XML that abidiff compares with a newer library."""
    return subprocess.run(["abidw", "--no-comp-dir-path", "--no-corpus-path", "--no-show-locs",
                           "--headers-dir", str(headers), str(library)], check=True,
                          stdout=subprocess.PIPE).stdout


def make(source: pathlib.Path, out: pathlib.Path, parts: list[str], commit: str) -> None:
    """All parts and what describes them, in the folder out, which is made anew."""
    when = int(output("git", "-C", ROOT, "log", "-1", "--format=%ct", commit).strip())
    environment = environment_of(when)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    log = source.with_name(source.name + ".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    clone(source, commit, log, environment)
    configure(source, log, environment)
    run(source, log, environment, QUIET_NINJA, *PROGRAMS)
    if "source" in parts:
        make_source(source, commit, out)
    if "wheel" in parts:
        run(source, log, environment, "ci/package", "pip")
        shutil.copy(next((source / "build/packages/dist").glob("*.whl")), out)
    if "deb" in parts:
        run(source, log, environment, "ci/package", "deb")
        for path in (source / "build/packages/deb").glob("*.deb"):
            shutil.copy(path, out)
    if "bundle" in parts:
        make_bundle(source, when, out, log, environment)
    if shutil.which("abidw"):
        compress(interface(source / "build/libtollens.so", source / "runtime/include/tollens"),
                 out / f"tollens-{version()}-{os.uname().machine}.abi.xz")
    else:
        say("there is no libabigail, so the binary interface is not written down")
    compiler = output(environment.get("CC", "gcc").split()[-1], "-dumpfullversion").strip()
    sbom.write(files_of(out), sbom.libraries_of(source / "build"), commit, when, compiler,
               out / f"tollens-{version()}.spdx.json")
    write_sums(out)


def make_twice(parts: list[str], out: pathlib.Path, commit: str) -> list[str]:
    """The second time elsewhere, with other habits, and without what ccache knows."""
    make(WORK / "tollens", out, parts, commit)
    second = WORK / "again"
    before = os.umask(0o027)
    changed = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "CCACHE_DISABLE": "1", "HOME": "/nonexistent",
               "USER": "someone"}
    try:
        with unittest.mock.patch.dict(os.environ, changed):
            make(WORK / "a-folder-of-another-name/of-another-depth/tollens", second, parts, commit)
    finally:
        os.umask(before)
    return differences(out, second)


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/release", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "release-files")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--twice", action="store_true")
    options = parser.parse_args()
    parts = options.only.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    wrong: list[str] = []
    try:
        if output("git", "-C", ROOT, "status", "--porcelain").strip():
            say("files that are not committed are left out")
        out = options.out.resolve()
        # Which may move while it is made.
        commit = output("git", "-C", ROOT, "rev-parse", "HEAD").strip()
        if options.twice:
            wrong = make_twice(parts, out, commit)
        else:
            make(WORK / "tollens", out, parts, commit)
        for path in files_of(out):
            say(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB")
    except (Unmade, OSError, subprocess.CalledProcessError, StopIteration) as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    for sentence in wrong:
        say(sentence)
    if options.twice:
        print(f"summary: {'NOT ' if wrong else ''}the same bytes twice")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
