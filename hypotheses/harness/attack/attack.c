/*
 * Runs the body of an attack: opens the device, injects the fault, attacks, writes the record, and
 * only then passes or fails.
 */
#include "harness/attack.h"

#include "harness/claim.h"
#include "harness/clock.h"
#include "files/atomic_file.h"
#include "files/packed_file.h"
#include "harness/ledger.h"
#include "record/record.h"
#include "harness/sabotage.h"
#include "record/timeline.h"
#include "tollens/plain_text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { MODULES_MAX = 32, WAIT_FOR_MEMORY_S = 10 };

static struct hyp_record record;
static struct tol_module *modules[MODULES_MAX];
static size_t module_count;
static bool is_traced, first_is_enough; /* the second: for a saboteur, which the runner says */
static uint64_t begin_ns;

static void add_example(const char *text) {
    record.violations++;
    if (record.example_count == HYP_EXAMPLES_MAX) return;
    snprintf(record.examples[record.example_count++], HYP_EXAMPLE_BYTES, "%s", text);
}

/* Writes the record of what was found, and fails the test if that violates the claim. */
static void attack_conclude(const struct hyp_attack *attack) {
    record.duration_s = (double)(hyp_clock_ns() - begin_ns) * 1e-9;
    bool kept = attack->session.out == NULL || hyp_record_write(&record, attack->session.out);
    cr_assert(kept, "the evidence could not be written: %s", hyp_error());
    if (record.not_tested) cr_skip_test("%s", record.reason);
    cr_assert(record.violations == 0, "%llu of %llu samples violate the claim; the first: %s",
              (unsigned long long)record.violations, (unsigned long long)record.samples,
              record.examples[0]);
}

/* Whether the violations so far falsify the claim, whatever else would be found. */
static bool is_enough(void) {
    const struct hyp_claim *claim = hyp_claim_of_suite(record.suite);
    if (claim == NULL || claim->words == NULL) return false;
    return claim->words->is_timed || claim->words->is_measured ||
           !hyp_claim_holds(claim, (double)record.violations);
}

bool hyp_attack_check(struct hyp_attack *attack, bool holds, const char *format, ...) {
    record.samples++;
    if (holds) return true;
    char text[HYP_EXAMPLE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tol_plain_text(text);
    add_example(text);
    /* The process ends with the test, and what the attack still has with it: under a fault, to wait
     * for the rest would be to wait for one deadline after the other. */
    if (first_is_enough && is_enough()) {
        if (attack->stop != NULL) attack->stop(attack->stop_user);
        attack_conclude(attack);
    }
    return false;
}

bool hyp_attack_ok(struct hyp_attack *attack, tol_status status, const char *call) {
    return hyp_attack_check(attack, status == TOL_OK, "%.200s: %s: %.700s", call,
                            tol_status_name(status), tol_message());
}

bool hyp_attack_refused(struct hyp_attack *attack, tol_status status, tol_status expected,
                        const char *text, const char *call) {
    if (status != expected) {
        return hyp_attack_check(attack, false, "%.200s: returned %s, expected %s: %.600s", call,
                                tol_status_name(status), tol_status_name(expected),
                                status == TOL_OK ? "it was accepted" : tol_message());
    }
    return hyp_attack_check(attack, strstr(tol_message(), text) != NULL,
                            "%.200s: the message lacks \"%.100s\": %.500s", call, text,
                            tol_message());
}

void hyp_attack_not_tested(struct hyp_attack *attack, const char *code, const char *format, ...) {
    va_list arguments;
    (void)attack;
    record.not_tested = true;
    snprintf(record.code, sizeof record.code, "%s", code);
    va_start(arguments, format);
    vsnprintf(record.reason, sizeof record.reason, format, arguments);
    tol_plain_text(record.reason);
    va_end(arguments);
}

/* Records a number under a name. Beyond HYP_MEASURES_MAX, numbers are judged and not recorded. */
static void add_measure(double value, bool recorded_only, const char *format, va_list arguments,
                        char name[64]) {
    vsnprintf(name, 64, format, arguments);
    if (record.measure_count == HYP_MEASURES_MAX) return;
    struct hyp_measure *measure = &record.measures[record.measure_count++];
    *measure = (struct hyp_measure){.value = value, .recorded_only = recorded_only};
    memcpy(measure->name, name, sizeof measure->name);
}

bool hyp_attack_measure(struct hyp_attack *attack, double value, const char *format, ...) {
    char name[64], unit[HYP_UNIT_BYTES];
    const struct hyp_claim *claim = hyp_claim_of_suite(attack->record->suite);
    /* The number would be compared with the threshold here and not in the verdict. */
    cr_assert(claim->words != NULL && (claim->words->is_measured || claim->words->is_timed),
              "hyp_attack_measure was called for %s, which has no .words.is_measured", claim->id);
    va_list arguments;
    va_start(arguments, format);
    add_measure(value, false, format, arguments, name);
    va_end(arguments);
    return hyp_attack_check(attack, hyp_claim_holds(claim, value), "%s: %.6g, expected %s %.6g %s",
                            name, value, hyp_direction_words(claim->direction), claim->threshold,
                            hyp_unit_of(claim->threshold, claim->unit, unit));
}

void hyp_attack_record(struct hyp_attack *attack, double value, const char *format, ...) {
    char name[64];
    (void)attack;
    va_list arguments;
    va_start(arguments, format);
    add_measure(value, true, format, arguments, name);
    va_end(arguments);
}

void hyp_attack_label(struct hyp_attack *attack, const char *label) {
    (void)attack;
    snprintf(record.label, sizeof record.label, "%s", label);
}

void hyp_attack_note(struct hyp_attack *attack, const char *format, ...) {
    va_list arguments;
    (void)attack;
    if (record.note_count == HYP_NOTES_MAX) return;
    va_start(arguments, format);
    vsnprintf(record.notes[record.note_count++], sizeof record.notes[0], format, arguments);
    va_end(arguments);
}

struct tol_hdr *hyp_attack_series(struct hyp_attack *attack, const char *name) {
    static struct tol_hdr *spare; /* for series beyond HYP_SERIES_MAX, which are not kept */
    (void)attack;
    for (size_t i = 0; i < record.series_count; i++) {
        if (strcmp(record.series[i].name, name) == 0) return record.series[i].hdr;
    }
    struct tol_hdr *hdr = NULL;
    cr_assert(tol_hdr_new_latency(&hdr) == TOL_HDR_OK, "no memory for the series %s", name);
    if (record.series_count == HYP_SERIES_MAX) {
        tol_hdr_free(spare);
        spare = hdr;
        return hdr;
    }
    struct hyp_series *series = &record.series[record.series_count++];
    snprintf(series->name, sizeof series->name, "%s", name);
    series->hdr = hdr;
    return hdr;
}

void hyp_attack_progress(struct hyp_attack *attack, double share) {
    hyp_attack_progress_finding(attack, share, "");
}

void hyp_attack_progress_finding(struct hyp_attack *attack, double share, const char *finding) {
    char path[1100];
    static uint64_t last_ns;
    uint64_t now = hyp_clock_ns();
    if (attack->session.out == NULL || (now - last_ns < 100000000 && share < 1)) return;
    last_ns = now;
    /* Not evidence: the runner reads it for the progress display, and removes it. */
    snprintf(path, sizeof path, "%s/progress", attack->session.out);
    FILE *file = fopen(path, "w");
    if (file == NULL) return;
    fprintf(file, "%.4f %s\n", share, finding);
    fclose(file);
}

/* SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
uint64_t hyp_random(struct hyp_attack *attack) {
    uint64_t z = attack->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t hyp_random_below(struct hyp_attack *attack, uint64_t limit) {
    return limit > 0 ? hyp_random(attack) % limit : 0;
}

char *hyp_attack_file(struct hyp_attack *attack, const char *path, size_t *bytes) {
    enum { FILE_BYTES_MAX = 64 << 20 };
    char whole[8192];
    const char *root = hyp_session_root();
    char *text = NULL;
    if (root != NULL) {
        snprintf(whole, sizeof whole, "%s/%s", root, path);
        text = hyp_packed_read(whole, FILE_BYTES_MAX, bytes);
    }
    if (text == NULL) hyp_attack_check(attack, false, "%s", hyp_error());
    return text;
}

struct tol_kernel *hyp_attack_kernel(struct hyp_attack *attack, const char *name) {
    char path[256];
    size_t bytes = 0;
    struct tol_kernel *kernel = NULL;
    snprintf(path, sizeof path, "fixtures/ptx/kernels/%s.ptx", name);
    char *text = hyp_attack_file(attack, path, &bytes);
    if (text == NULL || module_count == MODULES_MAX) {
        free(text);
        return NULL;
    }
    if (HYP_OK(attack,
               tol_module_load(attack->context, text, bytes, NULL, &modules[module_count])) &&
        !HYP_OK(attack, tol_module_kernel(modules[module_count++], name, &kernel))) {
        kernel = NULL;
    }
    free(text);
    return kernel;
}

/* Installs the saboteur, the ledger or a counter in the interposer, if any is needed. */
static void attack_interpose(struct hyp_attack *attack, const struct hyp_attack_wants *wants) {
    struct tol_interpose_options options = {.before = NULL};
    const char *sabotage = attack->session.sabotage;
    hyp_sabotage_place(attack->session.seed, record.name);
    cr_assert(sabotage == NULL || hyp_sabotage_hooks(sabotage, &options), "%s", hyp_error());
    is_traced = hyp_timeline_wants(&attack->session, record.suite);
    bool is_needed = wants->counted || options.before != NULL || options.after != NULL;
    if (wants->ledger) {
        hyp_ledger_open(&options);
        is_needed = true;
    }
    if (is_traced) {
        struct tol_trace_options trace;
        cr_assert(hyp_timeline_options(&trace), "%s", hyp_error());
        cr_assert(tol_trace_install(attack->driver, &trace, &options) == TOL_OK, "%s",
                  tol_message());
        return;
    }
    if (!is_needed) return;
    cr_assert(tol_interpose_install(attack->driver, &options) == TOL_OK, "%s", tol_message());
}

/* Claims that run side by side share the device's memory, and one may use all of it for a while: so
 * waits up to WAIT_FOR_MEMORY_S for a context's memory before the attack counts as not tested. */
static tol_status attack_create_context(struct hyp_attack *attack) {
    const uint64_t end_ns = hyp_clock_ns() + WAIT_FOR_MEMORY_S * UINT64_C(1000000000);
    for (;;) {
        const tol_status status =
            tol_context_create(attack->driver, attack->session.ordinal, &attack->context);
        if (status != TOL_OUT_OF_DEVICE_MEMORY || hyp_clock_ns() >= end_ns) return status;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

/* Opens the device. false: the attack is not tested, and the record says why. */
static bool attack_open_device(struct hyp_attack *attack, const struct hyp_attack_wants *wants) {
    attack->kind = attack->session.kind;
    if (wants->soft_memory != NULL) setenv("TOLLENS_SOFT_MEMORY", wants->soft_memory, 0);
    if (wants->soft_granularity != NULL) {
        setenv("TOLLENS_SOFT_GRANULARITY", wants->soft_granularity, 0);
    }
    if (wants->soft_devices != NULL) setenv("TOLLENS_SOFT_DEVICES", wants->soft_devices, 0);
    if (wants->soft_order != NULL) {
        char seed[32];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)attack->session.seed);
        setenv("TOLLENS_SOFT_ORDER", wants->soft_order, 0);
        if (strcmp(wants->soft_order, "drawn") == 0) setenv("TOLLENS_SOFT_SEED", seed, 0);
    }
    /* A driver has 8 queues to a GPU unless the environment requests more before it starts; the
     * work of a ninth stream waits for another stream's. Only for attacks that need it: with 32
     * queues, creating a context takes several times as long. */
    if (wants->many_queues) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    tol_status status = hyp_session_open(&attack->kind, &attack->driver);
    if (status != TOL_OK) {
        hyp_attack_not_tested(attack, "no_device", "no device: %s", hyp_session_message());
        return false;
    }
    attack->raw = tol_driver_functions(attack->driver);
    attack_interpose(attack, wants);
    status = attack_create_context(attack);
    if (status != TOL_OK) {
        hyp_attack_not_tested(attack, "no_device", "no device: %s", hyp_session_message());
        return false;
    }
    return true;
}

static void close_device(struct hyp_attack *attack) {
    while (module_count > 0) tol_module_destroy(modules[--module_count]);
    tol_context_destroy(attack->context);
    if (is_traced) {
        char name[160];
        snprintf(name, sizeof name, "%s %s", record.suite, record.name);
        cr_assert(hyp_timeline_add(&attack->session, name), "%s", hyp_error());
        tol_trace_remove(attack->driver);
    }
    tol_interpose_remove(attack->driver);
    tol_driver_close(attack->driver);
}

void hyp_attack_run(const char *suite, const char *name, const struct hyp_attack_wants *wants,
                    void (*body)(struct hyp_attack *attack)) {
    struct hyp_attack attack = {.record = &record};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive its worker */
    cr_assert(hyp_session_read(&attack.session), "%s", hyp_error());
    const char *enough = getenv("TOLLENS_ENOUGH");
    first_is_enough = enough != NULL && strcmp(enough, "1") == 0;
    attack.random = attack.session.seed;
    snprintf(record.suite, sizeof record.suite, "%s", suite);
    snprintf(record.name, sizeof record.name, "%s", name);
    record.seed = attack.session.seed;
    record.begin_s = hyp_clock_day_s();
    begin_ns = hyp_clock_ns();
    if (attack_open_device(&attack, wants)) body(&attack);
    close_device(&attack);
    hyp_attack_progress(&attack, 1);
    attack_conclude(&attack);
    const struct hyp_effect *fallen = hyp_record_fallen(&record);
    if (fallen != NULL) {
        cr_assert_fail("%s: %.4g (%.4g to %.4g), expected %s %.4g", fallen->name,
                       fallen->effect.median, fallen->effect.low, fallen->effect.high,
                       hyp_direction_words(fallen->rule.direction), fallen->rule.threshold);
    }
    cr_assert(record.samples > 0, "the attack checked nothing");
    hyp_record_end(&record);
}
