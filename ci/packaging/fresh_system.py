"""Minimal systems that are made, used and thrown away: a folder that mmdebstrap fills, entered by
chroot in namespaces of its own, with or without a network."""

import configparser
import contextlib
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

from contents import BUILD, Unmade, attempt

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
    attempt("mmdebstrap", "--variant=apt", f"--include={INCLUDED}", suite, partial,
            source.format(suite=suite), why=f"{system} could not be made")
    partial.rename(archive)
    return archive


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
            on_line: Callable[[str, float], None] | None = None) -> tuple[int, str]:
        """The exit code and what was said. on_line gets each line, and the seconds until then."""
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
                    on_line(line, time.monotonic() - begin)
        return process.wait(), said


@contextlib.contextmanager
def started(system: str, what: str) -> Iterator[System]:
    """A copy of the system, which is gone afterwards."""
    archive = make(system)
    with tempfile.TemporaryDirectory(prefix="tollens-fresh-") as name:
        root = pathlib.Path(name) / "root"
        root.mkdir()
        subprocess.run(["tar", "--numeric-owner", "--exclude=./dev/*", "-xf", str(archive), "-C",
                        str(root)], check=True)
        pathlib.Path(name).chmod(0o755)
        log = FOLDER / f"{system}-{what}.log"
        log.write_text("")
        running = System(root, log)
        running.furnish()
        yield running
