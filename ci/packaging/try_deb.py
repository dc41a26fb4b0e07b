"""Checks the Debian packages with lintian, and uses them in a minimal Debian.

    ci/package try-deb [--suite bookworm]

In a system that mmdebstrap makes and throws away: an older version is installed, upgraded to this
one, used (a program with a mistake on the soft device, pytest, the README's example through
pkg-config, man pages), and removed without a trace. Needs lintian, mmdebstrap and Debian's archive.

Exit code: 0 all is right, 1 something is not, 2 it could not be tried.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from contents import PACKAGES, ROOT

FOLDER = PACKAGES / "deb"
# These packages are no upload to Debian, which would close a bug that asks for them.
NOT_OURS = "initial-upload-closes-no-bugs"
NEEDED = "gcc,libc6-dev,liblzma-dev,man-db,pkgconf,python3-pytest"
LEFT = "a file of the older version alone"

IN_ROOM = r"""
set -eu
cd /try
says() { # says EXPECTED FILE
    grep -q -- "$1" "$2" || { echo "expected: $1"; cat "$2"; exit 1; }
}
apt-get install -qq -y --no-install-recommends ./old/*.deb >/dev/null
test -f /usr/share/tollens/older
apt-get install -qq -y --no-install-recommends ./new/*.deb >/dev/null
test ! -f /usr/share/tollens/older
dpkg -s tollens | grep "^Version: $1\$"
cd /
code=0
tollens soft --error-exitcode 7 -- python3 /try/device.py store 16 >/try/log 2>&1 || code=$?
test $code = 7
says '1 finding: 1 illegal address' /try/log
tollens run H1 H7 --device soft --seed 1 --out /try/evidence >/try/log
says '2 survived' /try/log
python3 -m tollens report --no-png /try/evidence >/try/log
python3 -c 'import tollens; assert tollens.open_run("/try/evidence").count("survived") == 2'
cat >/try/test_it.py <<END
import sys
sys.path.insert(0, "/try")
from device import Device
def test_right(): Device().launch("store", 15)
def test_wrong(): Device().launch("store", 16)
END
code=0
python3 -m pytest -q -p no:cacheprovider /try/test_it.py --tollens >/try/log 2>&1 || code=$?
test $code = 1
says '^FAILED .*test_wrong' /try/log
says '1 failed, 1 passed' /try/log
gcc -Wall -Werror -o /try/squares /try/squares.c $(pkg-config --cflags --libs tollens)
TOLLENS_LIBCUDA=$(pkg-config --variable=softlibrary tollens) /try/squares >/try/log
says '^0 1 4 9 16 25' /try/log
test "$(python3 -c 'import ctypes; print(ctypes.CDLL("libtollens.so.1")._name)')" = libtollens.so.1
apt-get purge -qq -y $(cat /try/names) >/dev/null
find / -xdev \( -path /proc -o -path /sys -o -path /try -o -path /tmp \) -prune -o \
    -iname '*tollens*' -print >/try/log
test ! -s /try/log || { echo 'left behind:'; cat /try/log; exit 1; }
echo lived
"""


def older(new: list[pathlib.Path], folder: pathlib.Path) -> str:
    """Makes the same packages as an older version, with a file that this version lacks. Returns
    the newer version."""
    version = ""
    for path in new:
        tree = folder / path.stem
        subprocess.run(["dpkg-deb", "-R", str(path), str(tree)], check=True)
        control = tree / "DEBIAN/control"
        text = control.read_text()
        version = re.search(r"^Version: (.*)$", text, re.MULTILINE)[1]
        control.write_text(text.replace(version, version + "~older"))
        if path.name.startswith("tollens_"):
            (tree / "usr/share/tollens/older").write_text(LEFT)
        subprocess.run(["dpkg-deb", "-b", str(tree), str(folder / path.name)], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)
    return version


def furnish(folder: pathlib.Path, new: list[pathlib.Path]) -> str:
    """All that goes into the system. Returns the version."""
    (folder / "new").mkdir()
    (folder / "old").mkdir()
    for path in new:
        shutil.copy(path, folder / "new")
    (folder / "names").write_text(" ".join(path.name.split("_")[0] for path in new))
    (folder / "live").write_text(IN_ROOM)
    shutil.copy(ROOT / "ci/packaging/tests/device.py", folder)
    example = re.search(r"^```c$(.*?)^```$", (ROOT / "README.md").read_text(),
                        re.MULTILINE | re.DOTALL)
    (folder / "squares.c").write_text(example[1])
    return older(new, folder / "old")


def lint(changes: pathlib.Path) -> bool:
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning",
                           "--suppress-tags", NOT_OURS, str(changes)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("N: ")]
    print("\n".join(lines) if lines else "lintian: no error and no warning")
    return done.returncode == 0


def live(suite: str, new: list[pathlib.Path]) -> bool:
    with tempfile.TemporaryDirectory(prefix="tollens-deb-") as name:
        folder = pathlib.Path(name)
        (folder / "try").mkdir()
        version = furnish(folder / "try", new)
        done = subprocess.run(
            ["mmdebstrap", "--variant=apt", f"--include={NEEDED}", "--quiet",
             f"--customize-hook=copy-in {folder}/try /",
             f"--customize-hook=chroot \"$1\" sh /try/live {version}", suite, "/dev/null"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        right = done.returncode == 0 and "\nlived\n" in f"\n{done.stdout}\n"
        if not right:
            print(done.stdout[-3000:])
        return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="bookworm")
    suite = parser.parse_args().suite
    new, changes = sorted(FOLDER.glob("*.deb")), list(FOLDER.glob("*.changes"))
    missing = [name for name in ("lintian", "mmdebstrap") if shutil.which(name) is None]
    if not new or len(changes) != 1 or missing:
        print("package: there are no packages: run ci/package deb" if not missing else
              f"package: {' and '.join(missing)} must be installed", file=sys.stderr)
        return 2
    clean = lint(changes[0])
    lived = live(suite, new)
    print(f"summary: {len(new)} packages, lintian {'clean' if clean else 'NOT CLEAN'}; in "
          f"{suite}: {'installed, upgraded, used and removed' if lived else 'WRONG'}")
    return 0 if clean and lived else 1


if __name__ == "__main__":
    sys.exit(main())
