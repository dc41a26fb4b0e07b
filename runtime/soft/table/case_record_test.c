/*
 * Compares an H200's results of the cases (fixtures/ptx/cases) with the soft device's.
 * deviations.txt lists the cases that differ, with the reasons: an unlisted difference fails, and
 * so does a listed case that agrees. TOLLENS_TEST_ONE_IN and TOLLENS_TEST_SEED select a part.
 */
#include "case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { AT_ONCE = 256, ELEMENTS = 1 << 15, NOT_COME = -1, UNKNOWN = -2 };

/* ---- comparing ---- */

/* The elements of a result of a load, one by one; how many. */
static size_t elements_of(const char *text, long *elements) {
    size_t count = 0;
    while (*text != '\0') {
        char *end = NULL;
        long first = strtol(text, &end, 10), last = first, times = 1;
        if (end != text && *end == '*') {
            times = first;
            text = end + 1;
            first = last = strtol(text, &end, 10);
        }
        if (end == text) {
            first = last = *text == '-' ? NOT_COME : UNKNOWN;
            end += 1;
        } else if (strncmp(end, "..", 2) == 0) {
            last = strtol(end + 2, &end, 10);
        }
        for (; times > 0; times--) {
            for (long e = first; e <= last && count < ELEMENTS; e++) elements[count++] = e;
        }
        text = end + strspn(end, " ");
    }
    return count;
}

/* After "incomplete" and the barrier's state, if the text begins like this. */
static const char *data_of(const char *text) {
    if (strncmp(text, "incomplete ", 11) != 0) return text;
    text = strchr(text + 11, ' ');
    return text != NULL ? text + 1 : "";
}

/* When the record was made, a case of an interleaved tensor expected the bytes that its box seems
 * to have, but another number arrived. So the barrier was passed too early or never, and the record
 * has what had arrived by then. */
static bool agrees_as_far(const char *theirs, const char *ours) {
    static long there[ELEMENTS], here[ELEMENTS];
    size_t count = elements_of(data_of(theirs), there);
    if (elements_of(data_of(ours), here) != count || count == 0) return false;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (there[i] == NOT_COME) continue;
        if (there[i] != here[i]) return false;
        any = true;
    }
    return any;
}

static bool agrees(const char *line, const char *theirs, const char *ours) {
    if (strcmp(theirs, ours) == 0) return true;
    return strncmp(line, "load ", 5) == 0 && strstr(line, " interleave=") != NULL &&
           strchr("0123456789i", ours[0]) != NULL && agrees_as_far(theirs, ours);
}

Test(case_record, a_difference_is_seen) {
    static const struct {
        const char *line, *theirs, *ours;
        bool same;
    } rows[] = {
        {"load f32 2d", "0..3 4*-", "0..3 4*-", true},
        {"load f32 2d", "0..3 4*-", "0..7", false},
        {"load f32 3d interleave=1", "0..3 4*-", "0..7", true},
        {"load f32 3d interleave=1", "4*- 4..7", "incomplete 07 0..7", true},
        {"load f32 3d interleave=1", "incomplete 00 8*0", "incomplete 07 4*0 4*0", true},
        {"load f32 3d interleave=1", "0..3 4*-", "0..2 4 4..7", false},
        {"load f32 3d interleave=1", "0..3 4*-", "0..8", false},
        {"load f32 3d interleave=1", "0..7", "0..3 4*-", false},
        {"load f32 3d interleave=1", "8*-", "0..7", false},
        {"load f32 3d interleave=1", "synchronize 715", "0..7", false},
        {"store f32 3d interleave=1", "@0 0..3", "@0 0..7", false},
        {"tex.1d.v4.f32.f32", "3f800000,0,0,0", "3f800000,0,0,3f800000", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_eq(agrees(rows[i].line, rows[i].theirs, rows[i].ours), rows[i].same,
                     "%s: %s beside %s", rows[i].line, rows[i].theirs, rows[i].ours);
    }
}

/* ---- running ---- */

static const char *fixture(const char *name) {
    static const char *const roots[] = {"", "../", "../../"};
    static char path[8300];
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 64);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) slash[1] = '\0';
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, sizeof path, "%s%s%s%s", own, roots[i],
                 strcmp(name, "libtollens-soft.so") == 0 ? "" : "fixtures/ptx/cases/", name);
        if (access(path, R_OK) == 0) return path;
    }
    cr_assert(false, "%s is missing", name);
    return NULL;
}

struct record {
    char *line[8192], *said[8192];
    bool listed[8192];
    size_t count;
};

static void read_record(struct record *record) {
    static char text[CASE_LINE + CASE_SAID];
    gzFile file = gzopen(fixture("h200.record.gz"), "rb");
    cr_assert(file != NULL);
    while (gzgets(file, text, sizeof text) != NULL) {
        char *said = strstr(text, " : ");
        cr_assert(said != NULL && record->count < 8192, "%s", text);
        said[strcspn(said, "\n")] = '\0';
        *said = '\0';
        record->line[record->count] = strdup(text);
        record->said[record->count++] = strdup(said + 3);
    }
    gzclose(file);
}

static void read_deviations(struct record *record) {
    size_t count = 0;
    char **lines = case_read(fixture("deviations.txt"), &count);
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < record->count && strcmp(record->line[at], lines[i]) != 0) at++;
        cr_assert(at < record->count, "deviations.txt has %s, which the record has not", lines[i]);
        cr_assert(!record->listed[at], "deviations.txt has %s twice", lines[i]);
        record->listed[at] = true;
        free(lines[i]);
    }
    free(lines);
}

static bool is_box(const char *line) {
    return strncmp(line, "load ", 5) == 0 || strncmp(line, "store ", 6) == 0 ||
           strncmp(line, "reduce.", 7) == 0 || strncmp(line, "prefetch ", 9) == 0;
}

static unsigned long number_of(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

static void demand(bool boxes) {
    const unsigned long one_in = number_of("TOLLENS_TEST_ONE_IN"), every = one_in > 0 ? one_in : 1,
                        first = number_of("TOLLENS_TEST_SEED") % every;
    static struct record record;
    static const char *driver;
    char message[512] = "";
    size_t ran = 0, differ = 0;
    char *results = malloc((size_t)AT_ONCE * CASE_SAID);
    cr_assert(results != NULL);
    cr_assert(freopen("/dev/null", "w", stderr) != NULL); /* findings, one per case */
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    read_record(&record);
    read_deviations(&record);
    driver = strdup(fixture("libtollens-soft.so"));
    for (size_t at = 0; at < record.count;) {
        char *lines[AT_ONCE];
        size_t which[AT_ONCE], count = 0;
        for (; at < record.count && count < AT_ONCE; at++) {
            if (is_box(record.line[at]) != boxes || at % every != first) continue;
            which[count] = at;
            lines[count++] = record.line[at];
        }
        if (count == 0) break;
        cr_assert(case_run_all(driver, lines, count, 2, 60, results, message, sizeof message), "%s",
                  message);
        for (size_t i = 0; i < count; i++) {
            const char *said = results + i * CASE_SAID;
            bool same = agrees(lines[i], record.said[which[i]], said);
            cr_expect(same || record.listed[which[i]],
                      "%s: an H200 gave %.120s, and here is %.120s", lines[i],
                      record.said[which[i]], said);
            cr_expect(!same || !record.listed[which[i]],
                      "%s agrees, and deviations.txt says it does not", lines[i]);
            ran++;
            differ += !same;
        }
    }
    cr_assert(ran > 1000 / every, "%zu cases", ran);
    printf("%zu of %zu cases are as on an H200\n", ran - differ, ran);
    free(results);
}

Test(case_record, boxes_are_those_of_an_h200) {
    demand(true);
}

Test(case_record, textures_and_surfaces_are_those_of_an_h200) {
    demand(false);
}
