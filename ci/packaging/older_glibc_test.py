"""Programs and libraries made for an older glibc, on this one: what they ask for, and that they
run."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import older_glibc  # noqa: E402
from contents import glibc_needed  # noqa: E402

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
class OlderGlibc(unittest.TestCase):
    def setUp(self) -> None:
        self.made = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.made.name)

    def tearDown(self) -> None:
        self.made.cleanup()

    def compile(self, name: str, source: str, *flags: str) -> pathlib.Path:
        (self.folder / "source.c").write_text(source)
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-o", str(self.folder / name),
                        str(self.folder / "source.c"), *flags], check=True)
        return self.folder / name

    def test_a_program_asks_for_no_newer_glibc_and_does_the_same(self) -> None:
        path = self.compile("program", PROGRAM, "-lm", "-Wl,-rpath,$ORIGIN/lib")
        said = subprocess.run([str(path)], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(said, b"1 1 1 1\n")
        self.assertGreater(glibc_needed(path), older_glibc.NEWEST)
        older_glibc.make_all(self.folder)
        self.assertLessEqual(glibc_needed(path), older_glibc.NEWEST)
        self.assertLessEqual(glibc_needed(self.folder / "lib" / older_glibc.SHIM),
                             older_glibc.NEWEST)
        again = subprocess.run([str(path)], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(again, said)
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
