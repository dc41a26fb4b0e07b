"""Installs the wheel into a fresh virtual environment, hides its sources, and uses it.

    ci/package try [--short]

The tests in ci/packaging/tests are run with the installed package, in a folder of /tmp; this
repository is an empty folder to them, where a mount namespace can be had. pip fetches pytest;
without a network nothing is run, and the output says so. The long form does the same with the
oldest and the newest interpreter that is here, runs a program of numba-cuda, with and without a
mistake, lets mypy read a program that uses the package, and makes the wheel twice.

Exit code: 0 all is right, 1 something is not, 2 there is no wheel.
"""

import argparse
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

from contents import PACKAGES, ROOT

TESTS = ROOT / "ci/packaging/tests"
EVIDENCE = ROOT / "reports/published"
RUNS = ("2026-11-23-h200-limits-h4", "2026-11-22-h200-h8-h9")  # small
CLIENT = ROOT / "fixtures/clients/numba_kernels.py"
# A shell runs this in its own mount namespace, in which the repository is empty.
HIDE = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


def hidden(folder: pathlib.Path) -> list[str]:
    """The words before a command that is not to see this repository; none: it cannot be hidden."""
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    for flags in ("-m", "-rm"):
        words = ["unshare", flags, "sh", "-c", HIDE, "sh", str(empty), str(ROOT)]
        try:
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        except OSError:
            break
    return []


def names_this_folder(wheel: pathlib.Path) -> list[str]:
    """The files of the wheel that hold the path of this repository: they are none of a package."""
    words = [sys.executable, "-c", """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    for name in archive.namelist():
        if sys.argv[2].encode() in archive.read(name): print(name)
""", str(wheel), str(ROOT)]
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout.split()


def environment(python: str, folder: pathlib.Path, wheel: pathlib.Path,
                packages: list[str]) -> pathlib.Path:
    """The interpreter of a new environment. CalledProcessError: there is no network, or worse."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True, capture_output=True, text=True)
    subprocess.run([str(folder / "bin/python"), "-m", "pip", "install", "--quiet",
                    "--disable-pip-version-check", str(wheel), *packages],
                   check=True, capture_output=True, text=True)
    return folder / "bin/python"


def run_tests(python: pathlib.Path, before: list[str], folder: pathlib.Path) -> str:
    """What pytest says last. RuntimeError: a test failed."""
    shutil.rmtree(folder / "tests", ignore_errors=True)
    shutil.copytree(TESTS, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for run in RUNS:
        shutil.copytree(EVIDENCE / run, folder / "evidence" / run.partition("-h200-")[2],
                        dirs_exist_ok=True)
    done = subprocess.run(
        [*before, "env", "-u", "PYTHONPATH", "-u", "TOLLENS_ROOT", "-u", "TOLLENS_SOFT_LIBRARY",
         f"TOLLENS_TRY_EVIDENCE={folder}/evidence", str(python), "-m", "pytest",
         "-q", "-p", "no:cacheprovider", "--basetemp", str(folder / "made"), str(folder / "tests")],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0 or not re.search(r"\d+ passed", done.stdout):
        raise RuntimeError(done.stdout)
    return done.stdout.strip().splitlines()[-1].strip("= ")


def run_numba(folder: pathlib.Path, wheel: pathlib.Path, before: list[str]) -> None:
    """What the README promises: the wheel and numba-cuda, then a program, right and wrong."""
    begin = time.monotonic()
    python = environment(sys.executable, folder / "numba", wheel, ["numba-cuda[cu13]"])
    right = (CLIENT.read_text(), 0, "numba-cuda: right 12977")
    wrong = (right[0].replace("values.size else", "values.size + 64 else"), 9,
             "1 finding: 1 illegal address")
    for number, (text, code, says) in enumerate((right, wrong)):
        (folder / f"first{number}.py").write_text(text)
        done = subprocess.run(
            [*before, str(python.with_name("tollens")), "soft", "--error-exitcode", "9", "--",
             str(python), f"first{number}.py"],
            cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != code or says not in done.stdout:
            raise RuntimeError(f"exit code {done.returncode}, not {code}:\n{done.stdout}")
    print(f"numba-cuda from PyPI: right, and wrong with its report and its exit code, in "
          f"{time.monotonic() - begin:.0f} s with pip")


TYPED = """
import tollens

run: tollens.Run = tollens.open_run("evidence")
middle: int = run.claim("H4").series[0].histogram.percentile(50)
reason: str | None = run.claims[0].reason
found: list[tollens.Finding] = tollens.read_findings("report")
wrong: int = found[0].kind
"""


def check_types(python: pathlib.Path, folder: pathlib.Path) -> None:
    """A program that uses the package has one mistake to mypy, and no other."""
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "mypy"], check=True)
    (folder / "typed.py").write_text(TYPED)
    done = subprocess.run([str(python), "-m", "mypy", "--strict", "typed.py"], cwd=folder,
                          text=True, stdout=subprocess.PIPE, check=False)
    if not done.stdout.startswith("typed.py:8: error: Incompatible types in assignment") or \
            "Found 1 error in 1 file" not in done.stdout:
        raise RuntimeError(done.stdout)
    print("mypy --strict finds the one mistake of a program that uses the package")


def made_twice(wheel: pathlib.Path) -> None:
    """RuntimeError: the wheel, made once more, has other bytes."""
    before = wheel.read_bytes()
    subprocess.run([sys.executable, str(ROOT / "ci/packaging/wheel.py")], check=True,
                   stdout=subprocess.DEVNULL)
    if wheel.read_bytes() != before:
        raise RuntimeError("the wheel, made once more, has other bytes")
    print("the wheel, made once more, has the same bytes")


def interpreters() -> list[str]:
    """The oldest and the newest Python here that the wheel is for, beside this one."""
    folders = [pathlib.Path("/usr/bin"), *pathlib.Path.home().glob(".pyenv/versions/*/bin")]
    found = {(3, minor): str(folder / f"python3.{minor}") for folder in folders
             for minor in range(10, 20) if (folder / f"python3.{minor}").exists()}
    found.pop(sys.version_info[:2], None)
    return [found[version] for version in sorted({min(found), max(found)})] if found else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    wheels = list((PACKAGES / "dist").glob(f"tollens-*_{platform.machine()}.whl"))
    if len(wheels) != 1:
        print("package: there is no wheel: run ci/package pip", file=sys.stderr)
        return 2
    wheel = wheels[0]
    leaks = names_this_folder(wheel)
    if leaks:
        print(f"files of the wheel that name {ROOT}: {' '.join(leaks)}")
        return 1
    tests = ["pytest", "pytest-xdist"]
    with tempfile.TemporaryDirectory(prefix="tollens-try-") as name:
        folder = pathlib.Path(name)
        before = hidden(folder)
        print("the sources are " + ("hidden" if before else "not hidden: no mount namespace here"))
        try:
            python = environment(sys.executable, folder / "venv", wheel, tests)
        except subprocess.CalledProcessError as error:
            print(f"not run here: {(error.stderr or error.stdout).strip()[-300:]}")
            print("summary: not run")
            return 0 if short else 1
        try:
            last = run_tests(python, before, folder)
            if not short:
                check_types(python, folder)
                made_twice(wheel)
            for other in [] if short else interpreters():
                own = pathlib.Path(other).name
                python = environment(other, folder / f"venv-{own}", wheel, [*tests, "matplotlib"])
                print(f"{own}: {run_tests(python, before, folder)}")
            if not short:
                run_numba(folder, wheel, before)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(getattr(error, "stderr", None) or error)
            return 1
    print(f"summary: {wheel.name.split('-')[-1].removesuffix('.whl')}, {last}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
