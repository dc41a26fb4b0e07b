"""Programs and libraries made for an older glibc, on this one: what they ask for, and that they
run."""

import pathlib
import unittest

import older_glibc
from contents import glibc_needed
import trial

PROGRAM = r"""
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
static double ready;
__attribute__((constructor)) static void begin(void) { ready += 1; }
static void *half(void *number) { *(double *)number = exp(*(double *)number); return NULL; }
int main(int count, char **words) {
    struct stat status;
    pthread_t thread;
    double number = count - 1;
    pthread_create(&thread, NULL, half, &number);
    pthread_join(thread, NULL);
    const size_t before = mallinfo2().uordblks;
    void *block = malloc(5000);
    printf("%g %g %d %d\n", ready, number, stat(words[0], &status) == 0 && S_ISREG(status.st_mode),
           mallinfo2().uordblks >= before + 5000 && block != NULL);
}
"""
PLAIN = "#include <pthread.h>\nint f(pthread_t *t, void *(*g)(void *)) " \
        "{ return pthread_create(t, 0, g, 0); }\n"
LOOKS = "#include <sys/stat.h>\nint f(int file, struct stat *s) { return fstat(file, s); }\n"
NEW = "#include <stdlib.h>\nunsigned f(unsigned n) { return arc4random_uniform(n); }\n"


@unittest.skipUnless(older_glibc.can(), "patchelf is not installed")
class OlderGlibc(trial.Trial):
    def compile(self, name: str, source: str, *flags: str) -> pathlib.Path:
        self.write("source.c", source)
        self.expect(0, "", "gcc", "-D_GNU_SOURCE", "-o", name, "source.c", *flags)
        return self.folder / name

    def test_a_program_asks_for_no_newer_glibc_and_does_the_same(self) -> None:
        path = self.compile("program", PROGRAM, "-lm", "-Wl,-rpath,$ORIGIN/lib")
        self.assertEqual(self.run_it(path), (0, "1 1 1 1\n"))
        self.assertGreater(glibc_needed(path), older_glibc.NEWEST)
        older_glibc.make_all(self.folder)
        self.assertLessEqual(glibc_needed(path), older_glibc.NEWEST)
        self.assertLessEqual(glibc_needed(self.folder / "lib" / older_glibc.SHIM),
                             older_glibc.NEWEST)
        self.assertEqual(self.run_it(path), (0, "1 1 1 1\n"))
        needed = older_glibc.output("readelf", "-d", path)
        for library in (older_glibc.SHIM, "libpthread.so.0"):
            self.assertIn(f"[{library}]", needed)

    def test_a_library_can_be_older_where_nothing_is_missing(self) -> None:
        path = self.compile("libplain.so", PLAIN, "-shared", "-fPIC")
        self.assertGreater(glibc_needed(path), older_glibc.NEWEST)
        older_glibc.make_older(path)
        self.assertLessEqual(glibc_needed(path), older_glibc.NEWEST)

    def test_what_cannot_be_older_is_named_and_left(self) -> None:
        for source, name in ((LOOKS, "fstat, which libraries lack"),
                             (NEW, "arc4random_uniform, which glibc 2.28 lacks")):
            path = self.compile("libnew.so", source, "-shared", "-fPIC")
            before = path.read_bytes()
            with self.assertRaisesRegex(ValueError, f"libnew.so needs {name}"):
                older_glibc.make_older(path)
            self.assertEqual(path.read_bytes(), before)


if __name__ == "__main__":
    unittest.main()
