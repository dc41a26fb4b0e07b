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
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

from contents import PACKAGES, ROOT, Unmade, attempt, python_with

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
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if str(ROOT).encode() in archive.read(name)]


def expect(folder: pathlib.Path, code: int, says: str, *words: str | pathlib.Path) -> str:
    """What a command says that must end with the code. Unmade: it does not, or says other words."""
    done = subprocess.run(list(map(str, words)), cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != code or says not in done.stdout:
        raise Unmade(f"exit code {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


def run_tests(python: pathlib.Path, before: list[str], folder: pathlib.Path) -> str:
    """What pytest says last. Unmade: a test failed."""
    shutil.rmtree(folder / "tests", ignore_errors=True)
    shutil.copytree(TESTS, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for run in RUNS:
        shutil.copytree(EVIDENCE / run, folder / "evidence" / run.partition("-h200-")[2],
                        dirs_exist_ok=True)
    said = expect(
        folder, 0, " passed", *before, "env", "-u", "PYTHONPATH", "-u", "TOLLENS_ROOT", "-u",
        "TOLLENS_SOFT_LIBRARY", f"TOLLENS_TRY_EVIDENCE={folder}/evidence", python, "-m", "pytest",
        "-q", "-p", "no:cacheprovider", "--basetemp", folder / "made", folder / "tests")
    return said.strip().splitlines()[-1].strip("= ")


def run_numba(folder: pathlib.Path, wheel: pathlib.Path, before: list[str]) -> None:
    """What the README promises: the wheel and numba-cuda, then a program, right and wrong."""
    begin = time.monotonic()
    python = python_with(folder / "numba", str(wheel), "numba-cuda[cu13]")
    right = (CLIENT.read_text(), 0, "numba-cuda: right 12977")
    wrong = (right[0].replace("values.size else", "values.size + 64 else"), 9,
             "1 finding: 1 illegal address")
    for number, (text, code, says) in enumerate((right, wrong)):
        (folder / f"first{number}.py").write_text(text)
        expect(folder, code, says, *before, python.with_name("tollens"), "soft",
               "--error-exitcode", "9", "--", python, f"first{number}.py")
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
    attempt(python, "-m", "pip", "install", "--quiet", "mypy", why="mypy could not be installed")
    (folder / "typed.py").write_text(TYPED)
    said = expect(folder, 1, "Found 1 error in 1 file", python, "-m", "mypy", "--strict",
                  "typed.py")
    if not said.startswith("typed.py:8: error: Incompatible types in assignment"):
        raise Unmade(said)
    print("mypy --strict finds the one mistake of a program that uses the package")


def made_twice(wheel: pathlib.Path) -> None:
    """Unmade: the wheel, made once more, has other bytes."""
    before = wheel.read_bytes()
    attempt(sys.executable, ROOT / "ci/packaging/wheel.py", why="the wheel was not made again")
    if wheel.read_bytes() != before:
        raise Unmade("the wheel, made once more, has other bytes")
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
            python = python_with(folder / "venv", str(wheel), *tests)
        except Unmade as error:
            print(f"not run here: {str(error).strip()[-300:]}")
            print("summary: not run")
            return 0 if short else 1
        try:
            last = run_tests(python, before, folder)
            if not short:
                check_types(python, folder)
                made_twice(wheel)
            for other in [] if short else interpreters():
                own = pathlib.Path(other).name
                python = python_with(folder / f"venv-{own}", str(wheel), *tests, "matplotlib",
                                     base=other)
                print(f"{own}: {run_tests(python, before, folder)}")
            if not short:
                run_numba(folder, wheel, before)
        except Unmade as error:
            print(error)
            return 1
    print(f"summary: {wheel.name.split('-')[-1].removesuffix('.whl')}, {last}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
