"""What a merge of many runs costs: elapsed seconds, CPU seconds, and memory.

    python3 -m reports.fleet.time_merge EVIDENCE 1000

Makes a fleet of copies of a run (copied_fleet), merges it as `tollens merge` does, and samples all
of its processes twice a second. Memory is that of all processes, with shared pages counted once.
CPU seconds depend less on other load than elapsed time; up to half a second per process may be
missed.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from . import copied_fleet

TICKS = os.sysconf("SC_CLK_TCK")


def family(process: int) -> list[int]:
    """A process and all below it; those that have ended are left out."""
    found, waiting = [], [process]
    while waiting:
        one = waiting.pop()
        found.append(one)
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                below = pathlib.Path(f"/proc/{one}/task/{task}/children").read_text()
                waiting += map(int, below.split())
        except OSError:
            continue
    return found


def processor_seconds(process: int) -> float:
    words = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def memory_kib(process: int) -> int:
    for line in pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def run(command: list[str]) -> tuple[int, float, float, float]:
    """Its exit code, elapsed seconds, CPU seconds, and peak MiB."""
    begin, most = time.monotonic(), 0
    spent: dict[int, float] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            memory = 0
            for one in family(process.pid):
                try:
                    spent[one] = processor_seconds(one)
                    memory += memory_kib(one)
                except OSError:  # it has ended meanwhile
                    continue
            most = max(most, memory)
            time.sleep(0.5)
    return process.returncode, time.monotonic() - begin, sum(spent.values()), most / 1024


def main(words: list[str]) -> int:
    if len(words) != 2 or not words[1].isdigit():
        print("usage: python3 -m reports.fleet.time_merge EVIDENCE COUNT", file=sys.stderr)
        return 2
    source, count = pathlib.Path(words[0]), int(words[1])
    # Beside the evidence: copies are hard links.
    with tempfile.TemporaryDirectory(dir=source.resolve().parent) as name:
        top = pathlib.Path(name)
        for at in range(count):
            copied_fleet.copy(source, top / f"copy-{at:04}", at)
        folders = [str(one) for one in sorted(top.iterdir())]
        code, seconds, spent, most = run([sys.executable, "-m", "reports", "merge", *folders,
                                          "--no-png", "--out", str(top / "merged")])
    processors = len(os.sched_getaffinity(0))
    print(f"merged {count} folders in {seconds:.1f} s: {spent:.1f} CPU seconds on {processors} "
          f"processors, {most:.0f} MiB, load {os.getloadavg()[0]:.1f}, exit code {code}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
