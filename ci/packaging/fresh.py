"""Tries the README's commands in minimal Debian and Ubuntu systems, which are made for it and
deleted afterwards. Needs root, mmdebstrap and the distributions' archives.

    ci/fresh [debian-12 debian-13 ubuntu-22.04 ubuntu-24.04] [--as root,sudo,plain]
        [--check | --short]
    ci/fresh --bundle [SYSTEM...]    build/bundle in each, in debian-10 and ubuntu-20.04, and in
                                     ubuntu-18.04, where it must say why it does not run

In each system, as root, as a user who may use sudo and as one who may not, it clones the repository
and runs ci/falsify, which installs what is missing or says what to install. Then it runs the same
without network, and with a libcuda.so.1 that finds no device. --check also runs ci/check, which
takes long; --short attacks two claims and skips the second run. Prints one line per system and user
with the time from the clone to the first verdict; all output is in build/fresh.

Exit code: 0 all passed, 1 one did not, 2 a system could not be made.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from contents import ROOT, Unmade
from fresh_system import FOLDER, HOMES, OLD, SYSTEMS, TOO_OLD, System, make, started

COUNTS = re.compile(r"^(\d+) survived, 0 falsified, 0 inconclusive, \d+ not tested", re.MULTILINE)
PASSED = re.compile(r"^check: (\d+) passed, 0 failed", re.MULTILINE)
# ci/setup prints this if the user may not install packages.
PLEASE = re.compile(r"^setup: please install: (.*?)   \(apt-get install as root; this user may "
                    r"not\)", re.MULTILINE)
# doctor prints this with such a driver.
NO_GPU = re.compile(r"^cuda: not available: .*NO_DEVICE", re.MULTILINE)
# The bundle prints this on a system that is too old.
REFUSED = re.compile(r"^gpu: these programs need glibc 2\.28 or newer; this machine has "
                     r"glibc 2\.\d+$", re.MULTILINE)
# As a machine has it whose GPU is gone: the library is there with all functions.
NO_DEVICE = r"""
mkdir -p /opt/no-device && cd /opt/no-device
sed -n 's/^TOL_DRIVER_FN0\{0,1\}([A-Z_0-9]*, \(cu[A-Za-z_0-9]*\).*/\1/p' \
    HOME/tollens/runtime/include/tollens/driver.def | sort -u | grep -v -x cuDriverGetVersion |
    sed 's/.*/int &(void); int &(void) { return 100; }/' >no-device.c
echo 'int cuDriverGetVersion(int *v); int cuDriverGetVersion(int *v) { *v = 12040; return 0; }' \
    >>no-device.c
grep -c . no-device.c
gcc -shared -fPIC -o libcuda.so.1 -Wl,-soname,libcuda.so.1 no-device.c
"""


@dataclass
class Trial:
    """The results of one user in one system."""

    system: str
    user: str
    first_s: float | None = None   # from the clone to the first verdict
    install_s: float = 0           # of it: until the packages were installed
    whole_s: float = 0
    again_s: float = 0             # the second time, without network
    check_s: float = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        return "; ".join(self.wrong) or "passed"

    def line(self) -> str:
        first = f"{self.first_s:.0f} s" if self.first_s is not None else "never"
        check = f", ci/check {self.check_s:.0f} s" if self.check_s else ""
        return (f"{self.system:<13} {self.user:<6} first verdict {first} (packages "
                f"{self.install_s:.0f} s), ci/falsify {self.whole_s:.0f} s, again without network "
                f"{self.again_s:.0f} s{check}: {self.outcome}")


def bundle() -> None:
    """The commit that is checked out, as a file to clone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "-C", str(ROOT), "bundle", "create", "--quiet",
                    str(FOLDER / "tollens.bundle"), "HEAD"], check=True)


def expect(trial: Trial, what: str, right: bool, said: str) -> None:
    if not right:
        trial.wrong.append(f"{what}: {' | '.join(said.strip().splitlines()[-3:])}")


def refused(system: System, trial: Trial, command: str) -> None:
    """Without the right to install, setup lists the packages; root then installs them."""
    code, said = system.run("plain", f"cd tollens && {command}")
    found = PLEASE.search(said)
    expect(trial, f"{command} names what is missing", code == 2 and found is not None, said)
    if found is None:
        return
    code, said = system.run("root", "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get "
                                    f"install -y -qq --no-install-recommends {found[1]}")
    expect(trial, "the packages that it names can be installed", code == 0, said)


def timed(system: System, trial: Trial, what: str, command: str, passes: re.Pattern[str],
          network: bool = True, on_line: Callable[[str, float], None] | None = None) -> \
        tuple[float, str]:
    """The seconds of a command that must pass, and what it said."""
    begin = time.monotonic()
    code, said = system.run(trial.user, f"cd tollens && {command}", network, on_line)
    expect(trial, what, code == 0 and passes.search(said) is not None, said)
    return time.monotonic() - begin, said


def falsify(system: System, trial: Trial, claims: str, network: bool) -> None:
    def on_line(line: str, seconds: float) -> None:
        if trial.first_s is None and line.startswith("H1 "):
            trial.first_s = seconds
        if line.startswith("setup: ready"):
            trial.install_s = seconds

    trial.whole_s, _ = timed(system, trial, "ci/falsify", f"ci/falsify {claims}", COUNTS, network,
                             on_line)


def without_device(system: System, trial: Trial) -> None:
    code, said = system.run("root", NO_DEVICE.replace("HOME", HOMES[trial.user]))
    expect(trial, "the stand-in", code == 0, said)
    tollens = "cd tollens && export LD_LIBRARY_PATH=/opt/no-device && build/tollens"
    code, said = system.run(trial.user, f"{tollens} doctor", False)
    right = code == 0 and "on the soft device here" in said and NO_GPU.search(said) is not None
    expect(trial, "doctor without a device", right, said)
    code, said = system.run(trial.user, f"{tollens} run H1 H3", False)
    expect(trial, "run without a device",
           code == 0 and "2 survived" in said and "(soft)" in said, said)
    code, said = system.run(trial.user, f"{tollens} run H1 --require-gpu", False)
    expect(trial, "--require-gpu without a device", code == 2 and "next: " in said, said)


def check(system: System, trial: Trial) -> None:
    if trial.user == "plain":
        refused(system, trial, "ci/check")
    trial.check_s, said = timed(system, trial, "ci/check", "ci/check", PASSED)
    # Nothing that did not run may look as if it had.
    for line in re.findall(r"^check: .* (?:skipped|not run here).*$", said, re.MULTILINE):
        print(f"fresh: {trial.system} {trial.user}: {line}")


def trial_of(name: str, user: str, with_check: bool, short: bool) -> Trial:
    trial = Trial(name, user)
    with started(name, user) as system:
        shutil.copy(FOLDER / "tollens.bundle", system.root / "tmp/tollens.bundle")
        code, said = system.run(user, "git clone -q /tmp/tollens.bundle tollens")
        expect(trial, "the clone", code == 0, said)
        if user == "plain":
            refused(system, trial, "ci/falsify")
        falsify(system, trial, "H1 H3" if short else "", network=user != "plain")
        if short:  # what is there is used again
            system.run(user, "ln -s first/libtollens-soft.so tollens/build/libtollens-soft.so")
        else:
            trial.again_s, _ = timed(system, trial, "without network", "ci/falsify", COUNTS, False)
        without_device(system, trial)
        if with_check:
            check(system, trial)
    return trial


def bundle_in(name: str) -> Trial:
    """The bundle where nothing is installed. One test shows that test programs start as well."""
    trial = Trial(name, "plain")
    with started(name, "bundle") as system:
        shutil.copytree(ROOT / "build/bundle", system.root / "opt/bundle", symlinks=True)
        if name in TOO_OLD:
            code, said = system.run("plain", "/opt/bundle/gpu out", False)
            expect(trial, "the refusal", code == 2 and REFUSED.search(said) is not None, said)
            return trial
        code, said = system.run("plain", "/opt/bundle/tollens run H1 H3 --sabotage", False)
        expect(trial, "the program", code == 0 and "2 survived" in said, said)
        code, said = system.run("plain", "cd /opt/bundle && for suite in runtime soft; do "
                                         "TOLLENS_DEVICE=soft ./test-$suite -j1 "
                                         "--filter '@(copy|spans|read|arena)/*' || exit 1; done",
                                False)
        counts = [int(count) for count in re.findall(r"Tested: (\d+)", said)]
        expect(trial, "the tests", code == 0 and len(counts) == 2 and min(counts) > 0, said)
    return trial


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/fresh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", default=[])
    parser.add_argument("--as", dest="users", default=",".join(HOMES))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--bundle", action="store_true")
    options = parser.parse_args()
    everywhere = {**SYSTEMS, **OLD, **TOO_OLD} if options.bundle else SYSTEMS
    systems = options.systems or list(everywhere)
    users = options.users.split(",")
    for name, known in ((set(systems) - set(everywhere), everywhere),
                        (set(users) - set(HOMES), HOMES)):
        if name:
            parser.error(f"there is no {', '.join(sorted(name))}: {', '.join(known)}")
    if not options.bundle:
        bundle()
    unmade, trials = 0, []
    for name in systems:
        try:
            make(name)
        except (Unmade, OSError) as error:
            print(f"fresh: {error}", file=sys.stderr)
            unmade += 1
            continue
        if options.bundle:
            trials.append(bundle_in(name))
            print(f"fresh: {name:<13} bundle: {trials[-1].outcome}", flush=True)
        for user in () if options.bundle else users:
            trials.append(trial_of(name, user, options.check, options.short))
            print(f"fresh: {trials[-1].line()}", flush=True)
    wrong = sum(bool(trial.wrong) for trial in trials)
    print(f"summary: {len(trials) - wrong} of {len(trials)} passed"
          f"{f', {unmade} systems could not be made' if unmade else ''}")
    return 1 if wrong else 2 if unmade else 0


if __name__ == "__main__":
    sys.exit(main())
