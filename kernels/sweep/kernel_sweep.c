/*
 * Runs the cases of each group and reports the kernels that no case launched.
 *
 *     kernel-sweep [--group NAME] [--filter TEXT] [--repeat N] [--library PATH] [--list | --cases]
 *
 * The library is --library, else the platform's driver, else the soft device beside this program.
 * --list prints the entries that must be launched. --filter runs the cases with TEXT in their
 * names; missed kernels are not reported then. --cases also prints of each case the seconds of
 * processors, the entries that it launched, with a comma between two, and its name. --repeat runs
 * all cases N times with the same inputs and compares the bits of the results. The device needs
 * compute capability 8.0; cases that need 9.0 are skipped on a device below it.
 * Exit codes: 0 all cases are right, the same in each round, and no kernel was missed, 1 otherwise,
 * 2 the program could not run.
 */
#include "kernel_sweep.h"

#include "core/any_driver.h"
#include "core/check.h"
#include "interpose.h"
#include "launched.h"
#include "read_back.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE(group, name) KN_IMAGES(name);
#include "sweep_images.def"
#undef IMAGE

static const struct image {
    const char *group, *name;
    const struct kn_image *forms;
} images[] = {
#define IMAGE(group, name) {#group, #name, kn_images_##name},
#include "sweep_images.def"
#undef IMAGE
};

static const struct group {
    const char *name;
    void (*run)(struct sweep *sweep);
} groups[] = {{"gemm", sweep_gemm},
              {"grouped", sweep_grouped},
              {"attention", sweep_attention},
              {"quant", sweep_quant},
              {"rows", sweep_rows},
              {"decoder", sweep_decoder},
              {"checksum", sweep_checksum},
              {"seal", sweep_seal},
              {"model", sweep_model},
              {"halves", sweep_halves},
              {"collective", sweep_collective}};

enum { GROUPS = sizeof groups / sizeof groups[0], IMAGES = sizeof images / sizeof images[0] };

/* ---- a case ---------------------------------------------------------------------------------- */

bool sweep_begin(struct sweep *sweep, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(sweep->name, sizeof sweep->name, format, list);
    va_end(list);
    sweep->launches = launched_count(NULL);
    read_back_begin();
    launched_mark();
    sweep->begun = clock();
    return sweep->filter == NULL || strstr(sweep->name, sweep->filter) != NULL;
}

static void print_entry(const char *entry, size_t launches, void *user) {
    bool *is_first = user;
    (void)launches;
    printf("%s%s", *is_first ? "" : ",", entry);
    *is_first = false;
}

static void print_case(const struct sweep *sweep) {
    bool is_first = true;
    printf("case %.3f ", (double)(clock() - sweep->begun) / CLOCKS_PER_SEC);
    launched_each_since_mark(print_entry, &is_first);
    printf("%s %s\n", is_first ? "none" : "", sweep->name);
}

void sweep_judge(struct sweep *sweep, tol_status status, const struct kn_deviation *deviation,
                 size_t touched) {
    char text[400];
    const size_t launches = launched_count(NULL) - sweep->launches;
    const bool is_right = status == TOL_OK && deviation->count > 0 && deviation->failed == 0 &&
                          touched == 0 && launches > 0;
    const struct tol_device *device = tol_context_device(kn_kernels_context(sweep->kernels));
    sweep->cases++;
    if (sweep->says_entries) print_case(sweep);
    if (status == TOL_UNSUPPORTED && device->compute_capability != 90) {
        sweep->skipped++;
        printf("skip  %-58s %s\n", sweep->name, tol_message());
        return;
    }
    sweep->wrong += !is_right;
    sweep->unread += status == TOL_OK && read_back_bytes() == 0;
    if (!rounds_take(&sweep->rounds, sweep->name, read_back_checksum())) {
        sweep->wrong++;
        fprintf(stderr, "kernel-sweep: out of memory at %s\n", sweep->name);
    }
    if (is_right && sweep->rounds.round > 0) return; /* its line was printed in the first round */
    printf("%s %-58s ", is_right ? "right" : "WRONG", sweep->name);
    if (status != TOL_OK) {
        printf("%s: %s\n", tol_status_name(status), tol_message());
    } else if (is_right) {
        printf("launches %zu, at most %.2g of the allowed deviation\n", launches,
               deviation->normalised);
    } else {
        printf("launches %zu, %zu bytes written out of bounds; %s\n", launches, touched,
               kn_deviation_text(deviation, text, sizeof text));
    }
    fflush(stdout); /* keeps the order with what a tool prints about the next case */
}

/* ---- what must be launched ------------------------------------------------------------------- */

/* Copies the name of the next entry of PTX at *at, and moves *at past it. NULL: no more entries. */
static const char *kernel_sweep_next_entry(const char **at, const char *end, char *name,
                                           size_t bytes) {
    static const char word[] = ".entry ";
    for (const char *p = *at; p + sizeof word < end; p++) {
        if (memcmp(p, word, sizeof word - 1) != 0) continue;
        size_t length = 0;
        p += sizeof word - 1;
        while (p + length < end && length + 1 < bytes && strchr("(\n ", p[length]) == NULL) {
            length++;
        }
        memcpy(name, p, length);
        name[length] = '\0';
        *at = p + length;
        return name;
    }
    return NULL;
}

/* Calls use for each entry of a group's images (NULL: all groups) that a device of this compute
 * capability can run. 0: any device. */
static void each_entry(const char *group, int compute_capability,
                       void (*use)(const struct image *image, const char *entry, void *user),
                       void *user) {
    for (size_t i = 0; i < IMAGES; i++) {
        if (group != NULL && strcmp(images[i].group, group) != 0) continue;
        for (const struct kn_image *form = images[i].forms; form->packed != NULL; form++) {
            if (form->is_cubin) continue;
            if (compute_capability != 0 && kn_image_pick(form, compute_capability, false) != form) {
                continue;
            }
            char *text = NULL, name[96];
            if (kn_image_unpack(form, &text) != TOL_OK) {
                fprintf(stderr, "kernel-sweep: %s: %s\n", images[i].name, tol_message());
                exit(2); /* NOLINT(concurrency-mt-unsafe): there is one thread */
            }
            const char *at = text, *end = at + form->bytes;
            while (kernel_sweep_next_entry(&at, end, name, sizeof name) != NULL)
                use(&images[i], name, user);
            free(text);
            break;
        }
    }
}

struct census {
    size_t entries, missed;
};

static void count_entry(const struct image *image, const char *entry, void *user) {
    struct census *census = user;
    census->entries++;
    if (launched_count(entry) > 0) return;
    census->missed++;
    printf("MISSED %s of %s\n", entry, image->name);
}

static void list_entry(const struct image *image, const char *entry, void *user) {
    (void)user;
    printf("%s %s %s\n", image->group, image->name, entry);
}

static void print_launched(const char *entry, size_t launches, void *user) {
    *(size_t *)user += 1;
    printf("launched %s %zu\n", entry, launches);
}

/* ---- the program ----------------------------------------------------------------------------- */

struct options {
    const char *group, *filter, *library, *repeat;
    size_t rounds;
    bool lists, says_entries;
};

/* A whole number from 1 to 1,000,000; none: 1. */
static bool read_rounds(const char *text, size_t *rounds) {
    char *end = NULL;
    const unsigned long value = text == NULL ? 1 : strtoul(text, &end, 10);
    *rounds = value;
    return text == NULL || (text[0] >= '1' && text[0] <= '9' && *end == '\0' && value <= 1000000);
}

static bool kernel_sweep_read_options(int argc, char **argv, struct options *options) {
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--group") == 0     ? &options->group
                             : strcmp(argv[i], "--filter") == 0  ? &options->filter
                             : strcmp(argv[i], "--repeat") == 0  ? &options->repeat
                             : strcmp(argv[i], "--library") == 0 ? &options->library
                                                                 : NULL;
        if (strcmp(argv[i], "--list") == 0) {
            options->lists = true;
        } else if (strcmp(argv[i], "--cases") == 0) {
            options->says_entries = true;
        } else if (value != NULL && i + 1 < argc) {
            *value = argv[++i];
        } else {
            return false;
        }
    }
    if (!read_rounds(options->repeat, &options->rounds)) return false;
    bool is_known = options->group == NULL;
    for (size_t i = 0; i < GROUPS; i++) {
        is_known = is_known || strcmp(options->group, groups[i].name) == 0;
    }
    return is_known;
}

/* Prints the summary. true: no case failed and no kernel was missed. */
static bool kernel_sweep_report(const struct sweep *sweep, const struct options *options,
                                int compute_capability) {
    struct census census = {0};
    size_t kernels = 0;
    launched_each(print_launched, &kernels);
    if (options->filter == NULL) {
        each_entry(options->group, compute_capability, count_entry, &census);
    }
    printf("kernel-sweep: %zu cases, %zu wrong, %zu skipped; %zu launches of %zu kernels; ",
           sweep->cases, sweep->wrong, sweep->skipped, launched_count(NULL), kernels);
    if (options->filter == NULL) {
        printf("%zu of %zu missed\n", census.missed, census.entries);
    } else {
        printf("missed kernels are not counted with a filter\n");
    }
    if (options->rounds > 1) {
        printf("kernel-sweep: %zu rounds of %zu cases: %zu of %zu later results differ from the "
               "first\n",
               options->rounds, sweep->rounds.count, sweep->rounds.differences,
               sweep->rounds.compared);
        if (sweep->unread > 0) printf("kernel-sweep: %zu read nothing back\n", sweep->unread);
    }
    if (sweep->cases == 0) fprintf(stderr, "kernel-sweep: no case matches the filter\n");
    return sweep->cases > 0 && sweep->wrong == 0 && census.missed == 0 &&
           sweep->rounds.differences == 0 && (options->rounds == 1 || sweep->unread == 0);
}

static void run_groups(struct sweep *sweep, const struct options *options) {
    for (size_t i = 0; i < GROUPS; i++) {
        if (options->group == NULL || strcmp(options->group, groups[i].name) == 0) {
            groups[i].run(sweep);
        }
    }
}

static tol_status kernel_sweep_run(struct tol_driver *driver, const struct options *options,
                                   bool *is_right) {
    tol_status status = TOL_OK;
    struct tol_context *context = NULL;
    struct sweep sweep = {.filter = options->filter, .says_entries = options->says_entries};
    TOL_TRY(launched_watch(driver));
    TOL_TRY(tol_context_create(driver, 0, &context));
    TOL_TRY(tol_stream_create(context, NULL, &sweep.stream));
    TOL_TRY(kn_kernels_create(context, &sweep.kernels));
    for (size_t round = 0; round < options->rounds; round++) {
        sweep.random = 1;
        run_groups(&sweep, options);
        if (!rounds_next(&sweep.rounds)) sweep.wrong++;
    }
    *is_right =
        kernel_sweep_report(&sweep, options, tol_context_device(context)->compute_capability);
out:
    rounds_end(&sweep.rounds);
    kn_kernels_destroy(sweep.kernels);
    tol_stream_destroy(sweep.stream);
    tol_context_destroy(context);
    tol_interpose_remove(driver);
    return status;
}

int main(int argc, char **argv) {
    struct options options = {0};
    struct tol_driver *driver = NULL;
    bool is_right = false;
    if (!kernel_sweep_read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: kernel-sweep [--group ");
        for (size_t i = 0; i < GROUPS; i++) fprintf(stderr, "%s%s", i ? "|" : "", groups[i].name);
        fprintf(stderr, "] [--filter TEXT] [--repeat N] [--library PATH] [--list] [--cases]\n");
        return 2;
    }
    if (options.lists) {
        each_entry(options.group, 0, list_entry, NULL);
        return 0;
    }
    tol_status status = tol_any_driver_open(options.library, &driver, NULL);
    if (status == TOL_OK) status = kernel_sweep_run(driver, &options, &is_right);
    if (status != TOL_OK) fprintf(stderr, "kernel-sweep: %s\n", tol_message());
    tol_driver_close(driver);
    return status != TOL_OK ? 2 : is_right ? 0 : 1;
}
