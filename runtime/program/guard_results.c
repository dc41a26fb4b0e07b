/*
 * Counting reads a head, skips its bytes, and remembers where the last whole answer ended.
 */
#include "guard_results.h"

#include "files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Whether a complete frame follows; reads it. *is_other: what follows is not a frame. */
static bool skip_frame(FILE *file, bool *is_other) {
    char head[64], word[6];
    uint64_t job = 0, count = 0;
    if (fgets(head, sizeof head, file) == NULL || strchr(head, '\n') == NULL) return false;
    *is_other = sscanf(head, "%5s %" SCNu64 " %" SCNu64, word, &job, &count) != 3 ||
                (strcmp(word, "done") != 0 && strcmp(word, "fail") != 0);
    if (*is_other) return false;
    for (; count > 0; count--) {
        if (getc(file) == EOF) return false;
    }
    const int last = getc(file);
    *is_other = last != '\n' && last != EOF;
    return last == '\n';
}

static bool skip_line(FILE *file) {
    int c;
    do {
        c = getc(file);
    } while (c != EOF && c != '\n');
    return c == '\n';
}

bool hyp_guard_results_open(struct hyp_guard_results *results, const char *path, bool is_lines,
                            uint64_t *answers) {
    long end = 0;
    bool is_other = false;
    *results = (struct hyp_guard_results){.file = stdout, .is_lines = is_lines};
    *answers = 0;
    if (path == NULL) return true;
    results->file = fopen(path, "a+e");
    if (results->file == NULL) return hyp_fail("%s: %s", path, strerror(errno));
    rewind(results->file);
    while (is_lines ? skip_line(results->file) : skip_frame(results->file, &is_other)) {
        ++*answers;
        end = ftell(results->file);
    }
    if (is_other) {
        return hyp_fail("%s has more than the answers of a guard, at byte %ld; it was not changed",
                        path, end);
    }
    if (ftruncate(fileno(results->file), end) != 0) {
        return hyp_fail("%s cannot be cut at byte %ld: %s", path, end, strerror(errno));
    }
    return fseek(results->file, 0, SEEK_END) == 0 || hyp_fail("%s: %s", path, strerror(errno));
}

bool hyp_guard_results_add(struct hyp_guard_results *results,
                           const struct tol_guard_answer *answer) {
    FILE *file = results->file;
    if (!results->is_lines) {
        fprintf(file, "%s %" PRIu64 " %zu\n", answer->is_failed ? "fail" : "done", answer->job,
                answer->count);
    }
    fwrite(answer->bytes, 1, answer->count, file);
    putc('\n', file);
    if (fflush(file) == 0 && !ferror(file)) return true;
    snprintf(results->error, sizeof results->error,
             "the answer of job %" PRIu64 " cannot be written: %s", answer->job, strerror(errno));
    return false;
}

bool hyp_guard_results_close(struct hyp_guard_results *results) {
    FILE *file = results->file;
    results->file = NULL;
    if (file == NULL || file == stdout) return true;
    return fclose(file) == 0 || hyp_fail("the answers cannot be written: %s", strerror(errno));
}
