"""Makes the Debian packages, in a copy of this repository with ci/packaging/debian as debian/.

    ci/package deb

Exit code: 0 made, 2 it could not be made.
"""

import email.utils
import os
import pathlib
import shutil
import subprocess
import sys

from contents import (
    PACKAGES, ROOT, Unmade, attempt, commit_time, compiler_of, copy_tree, output, tracked, version)

FOLDER = PACKAGES / "deb"
REVISION = "1"


def maintainer() -> str:
    """$DEBFULLNAME and $DEBEMAIL, as of all of Debian's tools, or who made the commit."""
    name, address = os.environ.get("DEBFULLNAME"), os.environ.get("DEBEMAIL")
    if name and address:
        return f"{name} <{address}>"
    return output("git", "-C", ROOT, "log", "-1", "--format=%an <%ae>").strip()


def changelog(number: str) -> str:
    when = email.utils.formatdate(commit_time())
    return (f"tollens ({number}) unstable; urgency=medium\n\n"
            "  * What users notice is in changelog.gz, which is ci/CHANGELOG.md.\n\n"
            f" -- {maintainer()}  {when}\n")


def furnish(source: pathlib.Path) -> None:
    """All that git knows, without the history and without debian's own names."""
    copy_tree(source, tracked("."))
    shutil.copytree(source / "ci/packaging/debian", source / "debian")
    control = source / "debian/control"
    control.write_text(control.read_text().replace("@MAINTAINER@", maintainer()))
    (source / "debian/changelog").write_text(changelog(f"{version()}-{REVISION}"))


def make() -> list[pathlib.Path]:
    """The packages."""
    if shutil.which("dh") is None or shutil.which("dpkg-buildpackage") is None:
        raise Unmade("debhelper is not installed: apt-get install debhelper dh-python")
    shutil.rmtree(FOLDER, ignore_errors=True)
    source = FOLDER / f"tollens-{version()}"
    furnish(source)
    compiler = compiler_of(source, os.environ.get("CC", "gcc"))
    attempt("dpkg-buildpackage", "-b", "-us", "-uc", "-d", why="dpkg-buildpackage failed",
            cwd=source, env={**os.environ, "TOLLENS_CC": compiler,
                             "SOURCE_DATE_EPOCH": str(commit_time())})
    return sorted(FOLDER.glob("*.deb"))


if __name__ == "__main__":
    try:
        for path in make():
            print(f"package: {path.relative_to(ROOT)}, {path.stat().st_size / 1e6:.1f} MB")
    except (Unmade, OSError, subprocess.CalledProcessError) as error:
        print(f"package: {error}", file=sys.stderr)
        sys.exit(2)
