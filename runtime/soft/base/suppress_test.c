/*
 * Suppressions: which findings a file names.
 */
#include "suppress.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char why[200];

/* Whether a file with this text can be read. */
static bool suppress_read(const char *text) {
    char path[] = "/tmp/tollens_suppress_XXXXXX";
    const int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    const bool ok = soft_suppress_read(path, why, sizeof why);
    unlink(path);
    return ok;
}

Test(suppress, a_line_names_a_kind_a_kernel_and_a_place) {
    cr_assert(suppress_read("# known\n\ndata race; _Z4peak*; *peak.cu:9\n"
                            "  uninitialised read ;k; PTX line 7"),
              "%s", why);
    cr_assert(soft_suppress("data race", "_Z4peakPi", "/a/peak.cu:9", 3));
    cr_assert(!soft_suppress("data race", "_Z4peakPi", "/a/peak.cu:90", 3));
    cr_assert(!soft_suppress("data race", "_Z4restPi", "/a/peak.cu:9", 3));
    cr_assert(!soft_suppress("uninitialised read", "_Z4peakPi", "/a/peak.cu:9", 3));
    cr_assert(soft_suppress("uninitialised read", "k", "", 7));
    cr_assert(!soft_suppress("uninitialised read", "k", "", 70));
    cr_assert(!soft_suppress("uninitialised read", "k", "k.cu:7", 7));
}

Test(suppress, a_line_without_three_parts_is_refused_with_its_number) {
    static const char *const texts[] = {"# a\nleak; *\n", "# a\nleak\n", "# a\nleak; ; *\n",
                                        "# a\n; *; *\n", "# a\nleak; *;\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_assert(!suppress_read(texts[i]), "%zu", i);
        cr_assert_str_eq(why, "line 2: expected KIND; KERNEL; PLACE");
        cr_assert(!soft_suppress("leak", "", "", 0));
    }
    cr_assert(!soft_suppress_read("/no/such/file", why, sizeof why));
    cr_assert_str_eq(why, "No such file or directory");
}
