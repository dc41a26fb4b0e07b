#!/usr/bin/env python3
"""All mutants of a small file in one program: each number gives what the mutant alone gives, none
the original, and the marks say which of them control came by."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

from mutation.operators import Mutant, Operators
from mutation.schemata import SEEN_BYTES, schema

SOURCE = """\
#include <stdlib.h>
#include <stdio.h>

#define OP(name, expression) static int name(int x, int y) { return expression; }

OP(spread, x > y ? x - y : y - x)

static int close(int n) {
    static int calls = 5;
    return n < 3 ? calls += n : -1;
}

static int steps(int n) {
    int sum = 0;
    if (n < 0) goto out;
    switch (n) {
    case 0:
        sum = 7;
        break;
    case 1:
    case 2: {
        struct { int a, b; } pair = {.a = 4, .b = n + 1};
        sum = pair.a * pair.b;
        break;
    }
    default:
        for (int i = 0; i < n && i < 9; i++) sum += i;
        if (sum > 20) {
            sum = 20;
        } else if (sum == 10) {
            sum = 11;
        }
    }
out:
    return sum;
}

int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 0;
    printf("%d %d %d at %d", spread(n, 4), close(n), steps(n), __LINE__);
    return 0;
}
"""


class Schemata(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        self.seen = self.at / "seen"

    def build(self, name: str, text: str) -> bool:
        (self.at / f"{name}.c").write_text(text)
        done = subprocess.run(["gcc", "-std=c11", "-w", f"{name}.c", "-o", name], cwd=self.at,
                              stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def run_one(self, name: str, word: str, **more: str) -> str:
        """A loop without an end takes its second of a processor, however busy the machine is."""
        done = subprocess.run([f"./{name}", word], cwd=self.at, env={**os.environ, **more},
                              text=True, stdout=subprocess.PIPE, timeout=300, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 2)))
        if done.returncode == -signal.SIGXCPU:
            return "does not end"
        return f"{done.stdout} {done.returncode}"

    def seen_with(self, word: str) -> set[int]:
        self.seen.write_bytes(bytes(SEEN_BYTES))
        self.run_one("all", word, TOLLENS_MUTANT_SEEN=str(self.seen))
        data = self.seen.read_bytes()
        return {number for number in range(SEEN_BYTES) if data[number]}

    def test_each_number_is_its_mutant(self) -> None:
        mutants: dict[int, Mutant] = {}
        for number, mutant in enumerate(Operators({}).mutants("a.c", SOURCE), 1):
            if self.build(f"alone{number}", mutant.apply(SOURCE)):
                mutants[number] = mutant
        self.assertGreater(len(mutants), 50)
        self.assertTrue(self.build("all", schema("a.c", SOURCE, mutants)))
        self.assertTrue(self.build("original", SOURCE))
        for word in ("-1", "0", "2", "5", "12"):
            seen = self.seen_with(word)
            original = self.run_one("original", word)
            self.assertEqual(self.run_one("all", word), original)
            for number, mutant in mutants.items():
                alone = self.run_one(f"alone{number}", word)
                self.assertEqual(self.run_one("all", word, TOLLENS_MUTANT=str(number)), alone,
                                 f"{word}: {mutant}")
                if alone != original:  # what makes a difference was reached
                    self.assertIn(number, seen, f"{word}: {mutant}")
        # And what is in a block or behind a case that is not run is not.
        lines = {word: {mutants[number].line for number in self.seen_with(word)}
                 for word in ("0", "5", "12")}
        self.assertTrue(18 in lines["0"] and not {22, 23, 27, 29} & lines["0"], lines["0"])
        self.assertTrue({27, 28} <= lines["5"] and 29 not in lines["5"], lines["5"])
        self.assertTrue({27, 28, 29} <= lines["12"] and 18 not in lines["12"], lines["12"])


if __name__ == "__main__":
    sys.exit(unittest.main())
