/*
 * Times two builds of the runtime alternately in one process, for ci/compare.
 *
 *     compare-sides [--reverse] [--plant PERCENT] DRIVER BASELINE.so AGAIN.so SUBJECT.so
 *
 * The three are builds of compare_side.c: the old revision, a copy of the same file, and the new
 * revision. A block is baseline-subject-subject-baseline or the reverse, then the same with the
 * copy as the subject. Two loads of one file differ only in their addresses; if that alone makes a
 * difference, the machine cannot resolve the comparison. Prints one line per series: its name, the
 * median ratio of the blocks, the same of the control, and the nanoseconds per call on both sides.
 * --reverse opens the sides from the last to the first. A side that opens a device later is slower
 * by some tenths of a percent, so ci/compare combines both orders. --plant N makes N percent more
 * calls on the subject's side and does not count them: a slowdown of known size.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 60, CALLS = 100, WARM_CALLS = 500, CLOCK_TRIES = 10 };

#define CALL_FAILED (-1.0) /* what side_batch returns then */

struct side {
    void *(*open)(const char *library, const char **why);
    void (*close)(void *side);
    const char *(*series)(unsigned series);
    double (*batch)(void *side, unsigned series, unsigned calls);
    const char *(*message)(void); /* NULL: a side of an older tree, which does not say */
    void *state;
};

static int compare_sides_complain(const char *what, const char *why) {
    fprintf(stderr, "compare-sides: %s: %s\n", what, why);
    return 2;
}

/* A function pointer is no void pointer in C, so its bytes are copied. */
static int compare_sides_find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL) return 0;
    memcpy(function, &symbol, sizeof symbol);
    return 1;
}

static int compare_sides_load(const char *path, const char *driver, struct side *side) {
    const char *why = "there is no memory";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return compare_sides_complain(path, dlerror());
    if (!compare_sides_find(library, "side_open", &side->open) ||
        !compare_sides_find(library, "side_close", &side->close) ||
        !compare_sides_find(library, "side_series", &side->series) ||
        !compare_sides_find(library, "side_batch", &side->batch)) {
        return compare_sides_complain(path, "it is no side of a comparison");
    }
    if (!compare_sides_find(library, "side_message", &side->message)) side->message = NULL;
    side->state = side->open(strcmp(driver, "platform") == 0 ? NULL : driver, &why);
    return side->state != NULL ? 0 : compare_sides_complain(path, why);
}

/* The nanoseconds of a batch, or a negative number where no time can be given; stderr says why.
 * On a virtual machine whose host takes the processor away, a thread's clock was seen to go
 * backwards: such a batch is made again. */
static double compare_sides_time_batch(const struct side *side, unsigned series, unsigned calls) {
    double ns = 0;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        ns = side->batch(side->state, series, calls);
        if (ns > 0) return ns;
        if (ns == CALL_FAILED) break;
    }
    const char *why = side->message != NULL ? side->message() : "a call failed";
    compare_sides_complain(
        side->series(series),
        ns == CALL_FAILED ? why : "the clock of the thread did not advance in ten batches");
    return CALL_FAILED;
}

static int compare_sides_compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double compare_sides_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_sides_compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* One side of a block, in turns with the baseline: gives how many times as long it took, and adds
 * what both took. Negative: there is no time, and stderr says why. */
static double compare_sides_turn(struct side *baseline, struct side *other, unsigned series,
                                 unsigned calls, int swapped, double *sums) {
    double sides[2] = {0, 0};
    for (int i = 0; i < 4; i++) {
        int outer = i == 0 || i == 3, is_other = outer == swapped;
        struct side *side = is_other ? other : baseline;
        double ns = compare_sides_time_batch(side, series, is_other ? calls : CALLS);
        if (ns < 0) return -1;
        sides[is_other] += ns;
    }
    sums[0] = sides[0] / (2.0 * CALLS);
    sums[1] = sides[1] / (2.0 * CALLS);
    return sides[1] / sides[0];
}

static int compare_series(struct side *sides, unsigned series, unsigned calls) {
    static double ratios[BLOCKS], controls[BLOCKS], baseline[BLOCKS], subject[BLOCKS];
    static unsigned lot = 12345;
    for (int side = 0; side < 3; side++) {
        if (compare_sides_time_batch(&sides[side], series, WARM_CALLS) < 0) return 0;
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        double sums[2];
        lot = lot * 1664525u + 1013904223u;
        controls[i] =
            compare_sides_turn(&sides[0], &sides[1], series, CALLS, (int)((lot >> 30) & 1), sums);
        ratios[i] = compare_sides_turn(&sides[0], &sides[2], series, calls, (int)(lot >> 31), sums);
        baseline[i] = sums[0];
        subject[i] = sums[1];
        if (controls[i] < 0 || ratios[i] < 0) return 0;
    }
    printf("%s %.6f %.6f %.3f %.3f\n", sides[0].series(series),
           compare_sides_median(ratios, BLOCKS), compare_sides_median(controls, BLOCKS),
           compare_sides_median(baseline, BLOCKS), compare_sides_median(subject, BLOCKS));
    return 1;
}

int main(int argc, char **argv) {
    struct side sides[3];
    unsigned calls = CALLS;
    int reverse = argc > 1 && strcmp(argv[1], "--reverse") == 0;
    argv += reverse;
    argc -= reverse;
    if (argc > 2 && strcmp(argv[1], "--plant") == 0) {
        calls += (unsigned)strtoul(argv[2], NULL, 10) * CALLS / 100;
        argv += 2;
        argc -= 2;
    }
    if (argc != 5) {
        return compare_sides_complain("usage",
                                      "[--plant PERCENT] DRIVER BASELINE.so AGAIN.so SUBJECT.so");
    }
    for (int i = 0; i < 3; i++) {
        int which = reverse ? 2 - i : i;
        int code = compare_sides_load(argv[2 + which], argv[1], &sides[which]);
        if (code != 0) return code;
    }
    for (unsigned series = 0; sides[0].series(series) != NULL; series++) {
        if (!compare_series(sides, series, calls)) return 2;
    }
    for (int i = 0; i < 3; i++) sides[i].close(sides[i].state);
    return 0;
}
