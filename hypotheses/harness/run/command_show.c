/*
 * doctor, list and explain: what there is, before anything is run.
 */
#include "harness/claim.h"
#include "attack/ladder.h"
#include "command.h"
#include "files/atomic_file.h"
#include "plugin/plugins.h"
#include "harness/sabotage.h"
#include "harness/session.h"
#include "worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- doctor ---------------------------------------------------------------------------------- */

static void show_device(const struct tol_device *device) {
    printf("  device %d: %s, compute capability %d.%d, %.1f GiB, %d multiprocessor%s\n",
           device->ordinal, device->name, device->compute_capability / 10,
           device->compute_capability % 10, (double)device->memory_bytes / (1u << 30),
           device->multiprocessors, hyp_plural((unsigned)device->multiprocessors));
    if (device->compute_capability < TOL_COMPUTE_CAPABILITY_MIN) {
        printf("    too old: %d.%d is the oldest supported\n", TOL_COMPUTE_CAPABILITY_MIN / 10,
               TOL_COMPUTE_CAPABILITY_MIN % 10);
    }
}

/* What NVML reports of a device, where it does. */
static void show_nvml(const struct tol_health_device *device) {
    if (!device->is_told) {
        printf("    NVML is not available: %s\n", device->reason);
        return;
    }
    printf("    NVML is available");
    if (device->free_bytes >= 0) {
        printf("; %.1f GiB free", (double)device->free_bytes / (1u << 30));
    }
    if (device->process_bytes >= 0) {
        printf("; %.1f MiB used by this process", (double)device->process_bytes / (1u << 20));
    }
    if (device->ecc_uncorrected >= 0) {
        printf("; %" PRId64 " uncorrected ECC error%s", device->ecc_uncorrected,
               device->ecc_uncorrected == 1 ? "" : "s");
    }
    if (device->temperature_celsius >= 0)
        printf("; %d degrees Celsius", device->temperature_celsius);
    putchar('\n');
}

/* Makes a context, as every attack does. */
static bool try_context(struct tol_driver *driver, int ordinal) {
    struct tol_context *context = NULL;
    struct tol_health health = {0};
    if (tol_context_create(driver, ordinal, &context) != TOL_OK ||
        tol_health_check(context, NULL, &health) != TOL_OK) {
        printf("    a context could not be created: %s\n", hyp_session_message());
        tol_context_destroy(context);
        return false;
    }
    printf("    a context can be created; %.1f of %.1f GiB free\n",
           (double)health.free_bytes / (1u << 30), (double)health.total_bytes / (1u << 30));
    if (!health.is_healthy) printf("    unhealthy: %s\n", health.complaint);
    show_nvml(&health.device);
    tol_context_destroy(context);
    return true;
}

static bool show_driver(enum hyp_device_kind kind) {
    struct tol_driver *driver = NULL;
    bool works = false;
    int count = 0;
    if (hyp_session_open(&kind, &driver) != TOL_OK) {
        printf("%s: not available: %s\n", hyp_device_kind_name(kind), hyp_session_message());
        return false;
    }
    int version = tol_driver_version(driver);
    printf("%s: %s, supports CUDA up to %d.%d\n", hyp_device_kind_name(kind),
           tol_driver_path(driver), version / 1000, version % 1000 / 10);
    if (tol_device_count(driver, &count) != TOL_OK)
        printf("  the devices cannot be counted: %s\n", hyp_session_message());
    for (int i = 0; i < count; i++) {
        struct tol_device device;
        if (tol_device_read(driver, i, &device) != TOL_OK) {
            printf("  device %d: %s\n", i, hyp_session_message());
            continue;
        }
        show_device(&device);
        works |= try_context(driver, i);
    }
    tol_driver_close(driver);
    return works;
}

/* Criterion's workers talk through these. */
static bool show_folder(const char *folder) {
    bool writable = access(folder, W_OK) == 0;
    if (!writable) printf("%s is not writable, and the processes of the attacks need it\n", folder);
    return writable;
}

int hyp_command_doctor(int count, char **words) {
    if (count > 0) return hyp_command_complain("doctor takes no arguments: %s", words[0]);
    bool gpu = show_driver(HYP_DEVICE_CUDA), soft = show_driver(HYP_DEVICE_SOFT);
    const char *root = hyp_session_root();
    printf("fixtures: %s\n", root != NULL ? root : hyp_error());
    bool folders = show_folder("/tmp") && show_folder("/dev/shm");
    if (root == NULL || !folders || (!gpu && !soft)) {
        printf("Claims cannot be tested here until these problems are fixed.\n");
        return HYP_EXIT_ERROR;
    }
    printf("%s\n", gpu ? "Claims can be tested on a GPU here."
                       : "Claims can be tested on the soft device here; those about a GPU's speed "
                         "are not tested.");
    printf("What can be tested here, and how:\n");
    if (gpu) printf("  all claims, on the GPU              tollens run\n");
    if (soft) {
        printf("  claims about results                tollens run --device soft\n"
               "  a CUDA program of yours             tollens soft -- PROGRAM ARGUMENTS\n");
    }
    return HYP_EXIT_OK;
}

/* ---- list ------------------------------------------------------------------------------------ */

int hyp_command_list(int count, char **words) {
    if (count > 0) return hyp_command_complain("list takes no arguments: %s", words[0]);
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        size_t saboteurs = 0, attacks = hyp_worker_list(claim->suite, NULL, NULL, 0);
        (void)hyp_claim_saboteurs(claim, &saboteurs);
        printf("%-*s%-70s  ", hyp_claim_width(), claim->id, claim->title);
        if (claim->words == NULL) {
            printf("not implemented yet\n");
        } else {
            printf("%zu attack%s, %zu saboteur%s\n", attacks, hyp_plural(attacks), saboteurs,
                   hyp_plural(saboteurs));
        }
    }
    return HYP_EXIT_OK;
}

/* ---- explain --------------------------------------------------------------------------------- */

/* Prints text under a heading, broken into lines of at most WIDTH characters. */
static void put_words(const char *heading, const char *text) {
    enum { WIDTH = 92, INDENT = 14 };
    size_t column = 0;
    if (text == NULL) return;
    printf("%-*s", INDENT, heading);
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH - INDENT) {
            printf("\n%*s", INDENT, "");
            column = 0;
        }
        column += (size_t)printf("%s%.*s", column > 0 ? " " : "", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static const char *find_sentence(const char *name) {
    size_t index = 0;
    return hyp_sabotage_find(name, &index) ? hyp_sabotage_sentence(index) : "";
}

static void explain(const struct hyp_claim *claim) {
    char threshold[128], unit[HYP_UNIT_BYTES];
    const char *names[64];
    size_t count = hyp_worker_list(claim->suite, NULL, names, 64);
    printf("%s: %s\n\n", claim->id, claim->title);
    snprintf(threshold, sizeof threshold, "%s %.6g %s", hyp_direction_words(claim->direction),
             claim->threshold, hyp_unit_of(claim->threshold, claim->unit, unit));
    if (claim->words != NULL) {
        put_words("claim", claim->words->claim);
        put_words("prediction", claim->words->prediction);
        put_words("falsified if", claim->words->falsified_if);
        put_words("method", claim->words->method);
        put_words("control", claim->words->control);
        put_words("confounders", claim->words->confounders);
    }
    put_words("threshold", threshold);
    put_words("source", claim->source);
    put_words("plugin", claim->plugin);
    if (claim->words == NULL) {
        printf("\nIt has no attack yet, so it is not tested.\n");
        return;
    }
    printf("\nattacks\n");
    for (size_t i = 0; i < count && i < 64; i++) printf("  %s\n", names[i]);
    const struct hyp_saboteur *saboteurs = hyp_claim_saboteurs(claim, &count);
    printf("\nsaboteurs, and the verdict that each must force\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %-24s %-14s %s\n", saboteurs[i].name, hyp_forced_words(saboteurs[i].forced),
               find_sentence(saboteurs[i].name));
    }
    const char *const *ladders = NULL;
    count = hyp_claim_ladders(claim, &ladders);
    if (count > 0) printf("\nfaults whose detection limit --limits finds, from gross to fine\n");
    for (size_t i = 0; i < count; i++) {
        struct hyp_ladder ladder;
        if (!hyp_ladder_read(ladders[i], &ladder)) continue;
        printf("  %s\n%*s%s\n", ladders[i], 6, "", find_sentence(ladder.steps[0]));
    }
}

int hyp_command_explain(int count, char **words) {
    if (count == 0) {
        return hyp_command_complain("explain requires the names of claims, H1 to H%zu",
                                    hyp_claim_own_count());
    }
    for (int i = 0; i < count; i++) {
        const struct hyp_claim *claim = hyp_claim_find(words[i]);
        if (claim == NULL) {
            return hyp_command_complain("%s", hyp_plugin_no_claim(words[i]));
        }
        if (i > 0) putchar('\n');
        explain(claim);
    }
    return HYP_EXIT_OK;
}
