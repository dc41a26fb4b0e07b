/*
 * Runs the groups, and tells which kernels of the images none of their stops launched.
 *
 *     kernel-tour [--group NAME] [--filter TEXT] [--library PATH] [--list]
 *
 * Without a library it takes the platform's, or the soft device beside it. --list says which
 * entries must be launched. With a filter only the stops that have the text in their names are
 * made, and what is missed is not told.
 * Devices from compute capability 8.0 on are meant; what needs 9.0 is left out before it.
 * Exit codes: 0 all was right and nothing missed, 1 not so, 2 it could not run.
 */
#include "tour.h"

#include "core/any_driver.h"
#include "core/check.h"
#include "interpose.h"
#include "launched.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE(group, name) KN_IMAGES(name);
#include "tour_images.def"
#undef IMAGE

static const struct image {
    const char *group, *name;
    const struct kn_image *forms;
} images[] = {
#define IMAGE(group, name) {#group, #name, kn_images_##name},
#include "tour_images.def"
#undef IMAGE
};

static const struct group {
    const char *name;
    void (*run)(struct tour *tour);
} groups[] = {{"gemm", tour_gemm},
              {"attention", tour_attention},
              {"quant", tour_quant},
              {"rows", tour_rows},
              {"decoder", tour_decoder}};

enum { GROUPS = sizeof groups / sizeof groups[0], IMAGES = sizeof images / sizeof images[0] };

/* ---- a stop ---------------------------------------------------------------------------------- */

bool tour_stop(struct tour *tour, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(tour->name, sizeof tour->name, format, list);
    va_end(list);
    tour->launches = launched_count(NULL);
    return tour->filter == NULL || strstr(tour->name, tour->filter) != NULL;
}

void tour_judge(struct tour *tour, tol_status status, const struct kn_deviation *deviation,
                size_t touched) {
    char text[400];
    const size_t launches = launched_count(NULL) - tour->launches;
    const bool is_right = status == TOL_OK && deviation->count > 0 && deviation->failed == 0 &&
                          touched == 0 && launches > 0;
    const struct tol_device *device = tol_context_device(kn_kernels_context(tour->kernels));
    tour->stops++;
    if (status == TOL_UNSUPPORTED && device->compute_capability < 90) {
        tour->left_out++;
        printf("left  %-58s %s\n", tour->name, tol_message());
        return;
    }
    tour->wrong += !is_right;
    printf("%s %-58s ", is_right ? "right" : "WRONG", tour->name);
    if (status != TOL_OK) {
        printf("%s: %s\n", tol_status_name(status), tol_message());
    } else if (is_right) {
        printf("launches %zu, at most %.2g of what is allowed\n", launches, deviation->normalised);
    } else {
        printf("launches %zu, bytes outside written %zu; %s\n", launches, touched,
               kn_deviation_text(deviation, text, sizeof text));
    }
    fflush(stdout); /* what a tool tells of the next stop comes behind it */
}

/* ---- what must be launched ------------------------------------------------------------------- */

/* An entry's name in PTX, from *at on; NULL: there is none. Moves *at behind it. */
static const char *next_entry(const char **at, const char *end, char *name, size_t bytes) {
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

/* Calls use for each entry of the images of a group (NULL: of all) that a device can run; 0 is
 * any device. */
static void each_entry(const char *group, int compute_capability,
                       void (*use)(const struct image *image, const char *entry, void *user),
                       void *user) {
    for (size_t i = 0; i < IMAGES; i++) {
        if (group != NULL && strcmp(images[i].group, group) != 0) continue;
        for (const struct kn_image *form = images[i].forms; form->packed != NULL; form++) {
            if (form->is_cubin) continue;
            if (compute_capability != 0 && form->compute_capability > compute_capability) continue;
            char *text = NULL, name[96];
            if (kn_image_unpack(form, &text) != TOL_OK) {
                fprintf(stderr, "kernel-tour: %s: %s\n", images[i].name, tol_message());
                exit(2); /* NOLINT(concurrency-mt-unsafe): there is one thread */
            }
            const char *at = text, *end = at + form->bytes;
            while (next_entry(&at, end, name, sizeof name) != NULL) use(&images[i], name, user);
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

static void tell_launched(const char *entry, size_t launches, void *user) {
    *(size_t *)user += 1;
    printf("launched %s %zu\n", entry, launches);
}

/* ---- the program ----------------------------------------------------------------------------- */

struct options {
    const char *group, *filter, *library;
    bool lists;
};

static bool read_options(int argc, char **argv, struct options *options) {
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--group") == 0     ? &options->group
                             : strcmp(argv[i], "--filter") == 0  ? &options->filter
                             : strcmp(argv[i], "--library") == 0 ? &options->library
                                                                 : NULL;
        if (strcmp(argv[i], "--list") == 0) {
            options->lists = true;
        } else if (value != NULL && i + 1 < argc) {
            *value = argv[++i];
        } else {
            return false;
        }
    }
    bool is_known = options->group == NULL;
    for (size_t i = 0; i < GROUPS; i++) {
        is_known = is_known || strcmp(options->group, groups[i].name) == 0;
    }
    return is_known;
}

/* What came of it all; whether it is right. */
static bool tell(const struct tour *tour, const struct options *options, int compute_capability) {
    struct census census = {0};
    size_t kernels = 0;
    launched_each(tell_launched, &kernels);
    if (options->filter == NULL) {
        each_entry(options->group, compute_capability, count_entry, &census);
    }
    printf("kernel-tour: %zu stops, %zu wrong, %zu left out; %zu launches of %zu kernels; ",
           tour->stops, tour->wrong, tour->left_out, launched_count(NULL), kernels);
    if (options->filter == NULL) {
        printf("%zu of %zu missed\n", census.missed, census.entries);
    } else {
        printf("with a filter nothing is missed\n");
    }
    if (tour->stops == 0) fprintf(stderr, "kernel-tour: no stop has that in its name\n");
    return tour->stops > 0 && tour->wrong == 0 && census.missed == 0;
}

static tol_status run(struct tol_driver *driver, const struct options *options, bool *is_right) {
    tol_status status = TOL_OK;
    struct tol_context *context = NULL;
    struct tour tour = {.filter = options->filter, .random = 1};
    TOL_TRY(launched_watch(driver));
    TOL_TRY(tol_context_create(driver, 0, &context));
    TOL_TRY(tol_stream_create(context, NULL, &tour.stream));
    TOL_TRY(kn_kernels_create(context, &tour.kernels));
    for (size_t i = 0; i < GROUPS; i++) {
        if (options->group == NULL || strcmp(options->group, groups[i].name) == 0) {
            groups[i].run(&tour);
        }
    }
    *is_right = tell(&tour, options, tol_context_device(context)->compute_capability);
out:
    kn_kernels_destroy(tour.kernels);
    tol_stream_destroy(tour.stream);
    tol_context_destroy(context);
    tol_interpose_remove(driver);
    return status;
}

int main(int argc, char **argv) {
    struct options options = {0};
    struct tol_driver *driver = NULL;
    bool is_right = false;
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: kernel-tour [--group ");
        for (size_t i = 0; i < GROUPS; i++) fprintf(stderr, "%s%s", i ? "|" : "", groups[i].name);
        fprintf(stderr, "] [--filter TEXT] [--library PATH] [--list]\n");
        return 2;
    }
    if (options.lists) {
        each_entry(options.group, 0, list_entry, NULL);
        return 0;
    }
    tol_status status = tol_any_driver_open(options.library, &driver, NULL);
    if (status == TOL_OK) status = run(driver, &options, &is_right);
    if (status != TOL_OK) fprintf(stderr, "kernel-tour: %s\n", tol_message());
    tol_driver_close(driver);
    return status != TOL_OK ? 2 : is_right ? 0 : 1;
}
