/*
 * A program to compare our histograms with those of other implementations (ci/hdr_interop.py).
 *
 *     hdr-interop make FILE       reads lines of a script and writes the histograms as a log
 *     hdr-interop buckets FILE    prints the contents of a log of any writer
 *
 *     new TAG LOWEST HIGHEST DIGITS    begins a histogram; the lines below are about it
 *     record VALUE COUNT               counts a value COUNT times
 *     correct VALUE INTERVAL           counts a value, and those that it held up
 *     add TAG, subtract TAG            another's counts
 *
 *     TAG bucket LOWEST COUNT          of each bucket that is not empty
 *     TAG percentile PERCENT VALUE
 */
#include "atomic_file.h"
#include "hlog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HISTOGRAMS_MAX = 64 };

static struct {
    char tag[64];
    struct tol_hdr *hdr;
} made[HISTOGRAMS_MAX];
static size_t count;

static int hdr_interop_complain(const char *text) {
    fprintf(stderr, "hdr-interop: %s\n", text);
    return 2;
}

static struct tol_hdr *hdr_interop_find(const char *tag) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(made[i].tag, tag) == 0) return made[i].hdr;
    }
    return NULL;
}

static bool begin_histogram(const char *tag, int64_t lowest, int64_t highest, int digits) {
    if (count == HISTOGRAMS_MAX) return false;
    snprintf(made[count].tag, sizeof made[count].tag, "%s", tag);
    return tol_hdr_new(lowest, highest, digits, &made[count].hdr) == TOL_HDR_OK && ++count > 0;
}

static int64_t hdr_interop_number(const char *word) {
    return strtoll(word, NULL, 10);
}

/* One line of a script. */
static bool hdr_interop_obey(char *line) {
    char *words[5] = {"", "", "", "", ""}, *rest = NULL;
    struct tol_hdr *hdr = count > 0 ? made[count - 1].hdr : NULL;
    size_t found = 0;
    for (char *word = strtok_r(line, " \n", &rest); word != NULL && found < 5;
         word = strtok_r(NULL, " \n", &rest)) {
        words[found++] = word;
    }
    if (strcmp(words[0], "new") == 0) {
        return begin_histogram(words[1], hdr_interop_number(words[2]), hdr_interop_number(words[3]),
                               (int)hdr_interop_number(words[4]));
    }
    if (hdr == NULL) return false;
    if (strcmp(words[0], "record") == 0) {
        return tol_hdr_record_many(hdr, hdr_interop_number(words[1]), hdr_interop_number(words[2]));
    }
    if (strcmp(words[0], "correct") == 0) {
        return tol_hdr_record_corrected(hdr, hdr_interop_number(words[1]),
                                        hdr_interop_number(words[2]));
    }
    const struct tol_hdr *other = hdr_interop_find(words[1]);
    if (other == NULL) return false;
    if (strcmp(words[0], "add") == 0) return tol_hdr_add(hdr, other) == TOL_HDR_OK;
    return strcmp(words[0], "subtract") == 0 && tol_hdr_subtract(hdr, other) == TOL_HDR_OK;
}

static int hdr_interop_make(const char *path) {
    char line[256];
    struct hyp_hlog log;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (!hdr_interop_obey(line))
            return hdr_interop_complain("a line of the script cannot be followed");
    }
    bool ok = hyp_hlog_begin(&log, path, 1700000000.25);
    for (size_t i = 0; ok && i < count; i++) {
        ok = hyp_hlog_add(&log, made[i].tag, (double)i, 1, made[i].hdr);
    }
    for (size_t i = 0; i < count; i++) tol_hdr_free(made[i].hdr);
    return ok && hyp_hlog_end(&log) ? 0 : hdr_interop_complain(hyp_error());
}

static bool hdr_interop_show(const struct hyp_hlog_entry *entry, void *user) {
    static const double percents[] = {0, 10, 50, 90, 99, 99.9, 100};
    const struct tol_hdr *hdr = entry->hdr;
    (void)user;
    for (int32_t i = 0; i < hdr->count_of_counts; i++) {
        if (hdr->counts[i] == 0) continue;
        printf("%s bucket %" PRId64 " %" PRId64 "\n", entry->tag, tol_hdr_lowest_at(hdr, i),
               hdr->counts[i]);
    }
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        printf("%s percentile %g %" PRId64 "\n", entry->tag, percents[i],
               tol_hdr_percentile(hdr, percents[i]));
    }
    return true;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "make") == 0) return hdr_interop_make(argv[2]);
    if (argc == 3 && strcmp(argv[1], "buckets") == 0) {
        return hyp_hlog_read(argv[2], hdr_interop_show, NULL) ? 0
                                                              : hdr_interop_complain(hyp_error());
    }
    return hdr_interop_complain("it is hdr-interop make FILE, or hdr-interop buckets FILE");
}
