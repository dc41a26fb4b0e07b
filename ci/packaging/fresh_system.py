"""Minimal systems that are made, used and thrown away: a folder that mmdebstrap fills, entered by
chroot in namespaces of its own, with or without a network.

    ci/packaging/fresh_system.py ROOT USER COMMAND    runs one more command in a system that
                                                      ci/fresh --keep left: as root, sudo or plain
"""

import configparser
import contextlib
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from contents import BUILD, Unmade

FOLDER = BUILD / "fresh"
DEBIAN = "deb http://deb.debian.org/debian {suite} main"
# Debian has no keys of Ubuntu's archive. What is made of it here is used once, and by nobody.
UBUNTU = "deb [trusted=yes] http://archive.ubuntu.com/ubuntu {suite} main universe"
# Too old to build in, and the oldest that packaged programs run in: glibc 2.28 and 2.31.
OLD = {"debian-10": ("buster", "deb [trusted=yes] http://archive.debian.org/debian {suite} main"),
       "ubuntu-20.04": ("focal", UBUNTU)}
# Whose glibc, 2.27, is older than that.
TOO_OLD = {"ubuntu-18.04": ("bionic", UBUNTU)}
SYSTEMS = {"debian-12": ("bookworm", DEBIAN), "debian-13": ("trixie", DEBIAN),
           "ubuntu-22.04": ("jammy", UBUNTU), "ubuntu-24.04": ("noble", UBUNTU)}
# Beyond what a system without them is none: what clones, and what a user of one may have.
INCLUDED = "ca-certificates,git,passwd,sudo"
TRUSTED = "/etc/ssl/certs-of-the-host.crt"
# Users by what they may do.
HOMES = {"root": "/root", "sudo": "/home/sudoer", "plain": "/home/visitor"}
NAMES = {"root": "root", "sudo": "sudoer", "plain": "visitor"}

ENTER = r"""
set -eu
root=$1 name=$2
[ "$3" = online ] || ip link set lo up 2>/dev/null || true
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
exec chroot "$root" su - "$name" -c ". /tmp/words"
"""


def make(system: str) -> pathlib.Path:
    """The system as an archive, which is made once."""
    suite, source = {**SYSTEMS, **OLD, **TOO_OLD}[system]
    archive = FOLDER / f"{system}.tar"
    if archive.exists():
        return archive
    missing = [name for name in ("mmdebstrap", "unshare") if shutil.which(name) is None]
    if missing:
        raise Unmade(f"{' and '.join(missing)} must be installed")
    FOLDER.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial.tar")
    done = subprocess.run(
        ["mmdebstrap", "--variant=apt", f"--include={INCLUDED}", suite, str(partial),
         source.format(suite=suite)], text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if line.startswith("E: ")]
        raise Unmade(f"{system} could not be made:\n" + "\n".join(errors or [done.stdout[-1500:]]))
    partial.rename(archive)
    return archive


def cpu_s(process: int) -> float:
    """The CPU seconds so far of a process and its descendants, including those that have ended."""
    times, children = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it just ended
            words = path.read_text().rpartition(") ")[2].split()
            children.setdefault(int(words[1]), []).append(int(path.parent.name))
            times[int(path.parent.name)] = sum(map(int, words[11:15]))
    total, left = 0, [process]
    while left:
        one = left.pop()
        total += times.get(one, 0)
        left += children.get(one, [])
    return total / os.sysconf("SC_CLK_TCK")


class System:
    """One that runs. Commands are written to a log."""

    def __init__(self, root: pathlib.Path, log: pathlib.Path) -> None:
        self.root = root
        self.log = log

    def furnish(self) -> None:
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        self.trust()
        self.run("root", "useradd -m -s /bin/bash sudoer; useradd -m -s /bin/bash visitor; "
                         "echo 'sudoer ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/sudoer")

    def trust(self) -> None:
        """What this machine trusts and how its pip reaches PyPI: where a proxy signs connections
        with a certificate of its own, a new system would have none of them. In a file of its own:
        the system's is written anew when a package such as Java's is installed."""
        bundle = ssl.get_default_verify_paths().cafile
        if bundle is None:
            return
        shutil.copy(bundle, self.root / TRUSTED.lstrip("/"))
        settings = configparser.RawConfigParser()
        settings.read("/etc/pip.conf")
        if not settings.has_section("global"):
            settings.add_section("global")
        settings.set("global", "cert", TRUSTED)
        with (self.root / "etc/pip.conf").open("w") as file:
            settings.write(file)

    def run(self, user: str, words: str, network: bool = True,
            on_line: Callable[[str, float, int], None] | None = None) -> tuple[int, str]:
        """The exit code and what was said. on_line gets each line, the seconds since the start and
        the process."""
        begin, said = time.monotonic(), ""
        # Of the user's shell, which `su -` starts as a login does.
        (self.root / "tmp/words").write_text(words + "\n")
        process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child",
             *([] if network else ["--net"]), "sh", "-c", ENTER, "enter", str(self.root),
             NAMES[user], "online" if network else "offline"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        with self.log.open("a", buffering=1) as log:  # to be read meanwhile
            log.write(f"$ {words}   ({user}{'' if network else ', without network'})\n")
            for line in process.stdout:
                log.write(line)
                said += line
                if on_line is not None:
                    on_line(line, time.monotonic() - begin, process.pid)
        return process.wait(), said

    def keep(self, user: str, folder: str) -> None:
        """Texts of a folder of the user's, which would be gone with the system, beside the log."""
        kept = self.log.with_suffix("")
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for path in (self.root / HOMES[user].lstrip("/") / folder).iterdir():
            if path.suffix in (".txt", ".tap") or path.name.startswith("found-by-"):
                shutil.copy(path, kept)


@contextlib.contextmanager
def started(system: str, what: str, stays: bool = False) -> Iterator[System]:
    """A copy of the system, which is gone afterwards unless it stays."""
    archive = make(system)
    with contextlib.ExitStack() as stack:
        name = tempfile.mkdtemp(prefix="tollens-fresh-")
        if not stays:
            stack.callback(shutil.rmtree, name)
        root = pathlib.Path(name) / "root"
        root.mkdir()
        subprocess.run(["tar", "--numeric-owner", "--exclude=./dev/*", "-xf", str(archive), "-C",
                        str(root)], check=True)
        pathlib.Path(name).chmod(0o755)
        log = FOLDER / f"{system}-{what}.log"
        log.write_text("")
        running = System(root, log)
        running.furnish()
        if stays:
            print(f"fresh: {system} stays; {sys.executable} {__file__} {root} {what} COMMAND",
                  flush=True)
        yield running


def main() -> int:
    if len(sys.argv) != 4 or sys.argv[2] not in HOMES:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[1])
    system = System(root, root.parent / "again.log")
    return system.run(sys.argv[2], sys.argv[3], True, lambda line, *_: print(line, end=""))[0]


if __name__ == "__main__":
    sys.exit(main())
