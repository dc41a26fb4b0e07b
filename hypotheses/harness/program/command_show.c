/*
 * doctor, list and explain: what there is, before anything is run.
 */
#include "harness/claim.h"
#include "attack/ladder.h"
#include "run/command.h"
#include "files/atomic_file.h"
#include "plugin/plugins.h"
#include "harness/sabotage.h"
#include "record/record.h"
#include "harness/session.h"
#include "run/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- doctor ---------------------------------------------------------------------------------- */

/* Sets a member if there is an object: without --json there is none. */
static void set(json_t *object, const char *name, json_t *value) {
    json_object_set_new(object, name, value);
}

/* Adds an object to a list, and returns it. */
static json_t *add_object(json_t *list) {
    json_t *object = json_object();
    return json_array_append_new(list, object) == 0 ? object : NULL;
}

static json_t *integer_or_null(int64_t number) {
    return number >= 0 ? json_integer(number) : json_null();
}

static void show_device(const struct tol_device *device, json_t *object) {
    set(object, "ordinal", json_integer(device->ordinal));
    set(object, "name", hyp_record_text(device->name));
    set(object, "compute_capability", json_integer(device->compute_capability));
    set(object, "memory_bytes", json_integer((json_int_t)device->memory_bytes));
    set(object, "multiprocessors", json_integer(device->multiprocessors));
    set(object, "is_supported",
        json_boolean(device->compute_capability >= TOL_COMPUTE_CAPABILITY_MIN));
    hyp_command_say("  device %d: %s, compute capability %d.%d, %.1f GiB, %d multiprocessor%s\n",
                    device->ordinal, device->name, device->compute_capability / 10,
                    device->compute_capability % 10, (double)device->memory_bytes / (1u << 30),
                    device->multiprocessors, hyp_plural((unsigned)device->multiprocessors));
    if (device->compute_capability < TOL_COMPUTE_CAPABILITY_MIN) {
        hyp_command_say("    too old: %d.%d is the oldest supported\n",
                        TOL_COMPUTE_CAPABILITY_MIN / 10, TOL_COMPUTE_CAPABILITY_MIN % 10);
    }
}

/* What NVML reports of a device, where it does. */
static void show_nvml(const struct tol_health_device *device, json_t *object) {
    set(object, "nvml", device->is_told ? json_null() : hyp_record_text(device->reason));
    set(object, "nvml_free_bytes", integer_or_null(device->free_bytes));
    set(object, "ecc_uncorrected", integer_or_null(device->ecc_uncorrected));
    set(object, "temperature_celsius", integer_or_null(device->temperature_celsius));
    if (!device->is_told) {
        hyp_command_say("    NVML is not available: %s\n", device->reason);
        return;
    }
    hyp_command_say("    NVML is available");
    if (device->free_bytes >= 0) {
        hyp_command_say("; %.1f GiB free", (double)device->free_bytes / (1u << 30));
    }
    if (device->process_bytes >= 0) {
        hyp_command_say("; %.1f MiB used by this process",
                        (double)device->process_bytes / (1u << 20));
    }
    if (device->ecc_uncorrected >= 0) {
        hyp_command_say("; %" PRId64 " uncorrected ECC error%s", device->ecc_uncorrected,
                        device->ecc_uncorrected == 1 ? "" : "s");
    }
    if (device->temperature_celsius >= 0)
        hyp_command_say("; %d degrees Celsius", device->temperature_celsius);
    hyp_command_say("\n");
}

/* Makes a context, as every attack does. */
static bool try_context(struct tol_driver *driver, int ordinal, json_t *object) {
    struct tol_context *context = NULL;
    struct tol_health health = {0};
    if (tol_context_create(driver, ordinal, &context) != TOL_OK ||
        tol_health_check(context, NULL, &health) != TOL_OK) {
        hyp_command_say("    a context could not be created: %s\n", hyp_session_message());
        set(object, "context", hyp_record_text(hyp_session_message()));
        tol_context_destroy(context);
        return false;
    }
    hyp_command_say("    a context can be created; %.1f of %.1f GiB free\n",
                    (double)health.free_bytes / (1u << 30),
                    (double)health.total_bytes / (1u << 30));
    if (!health.is_healthy) hyp_command_say("    unhealthy: %s\n", health.complaint);
    set(object, "context", json_null());
    set(object, "free_bytes", json_integer((json_int_t)health.free_bytes));
    set(object, "health", health.is_healthy ? json_null() : hyp_record_text(health.complaint));
    show_nvml(&health.device, object);
    tol_context_destroy(context);
    return true;
}

static bool show_driver(enum hyp_device_kind kind, json_t *drivers) {
    json_t *object = add_object(drivers), *devices = json_array();
    struct tol_driver *driver = NULL;
    bool works = false;
    int count = 0;
    set(object, "kind", json_string(hyp_device_kind_name(kind)));
    set(object, "devices", devices);
    if (hyp_session_open(&kind, &driver) != TOL_OK) {
        set(object, "error", hyp_record_text(hyp_session_message()));
        hyp_command_say("%s: not available: %s\n", hyp_device_kind_name(kind),
                        hyp_session_message());
        return false;
    }
    int version = tol_driver_version(driver);
    set(object, "error", json_null());
    set(object, "path", hyp_record_text(tol_driver_path(driver)));
    set(object, "cuda_version", json_integer(version));
    hyp_command_say("%s: %s, supports CUDA up to %d.%d\n", hyp_device_kind_name(kind),
                    tol_driver_path(driver), version / 1000, version % 1000 / 10);
    if (tol_device_count(driver, &count) != TOL_OK)
        hyp_command_say("  the devices cannot be counted: %s\n", hyp_session_message());
    for (int i = 0; i < count; i++) {
        struct tol_device device;
        if (tol_device_read(driver, i, &device) != TOL_OK) {
            hyp_command_say("  device %d: %s\n", i, hyp_session_message());
            continue;
        }
        json_t *one = add_object(devices);
        show_device(&device, one);
        works |= try_context(driver, i, one);
    }
    tol_driver_close(driver);
    return works;
}

/* Criterion's workers talk through these. */
static bool show_folder(const char *folder) {
    bool writable = access(folder, W_OK) == 0;
    if (!writable)
        hyp_command_say("%s is not writable, and the processes of the attacks need it\n", folder);
    return writable;
}

int hyp_command_doctor(int count, char **words) {
    if (count > 0) return hyp_command_complain("doctor takes no arguments: %s", words[0]);
    json_t *drivers = json_array();
    bool gpu = show_driver(HYP_DEVICE_CUDA, drivers);
    bool soft = show_driver(HYP_DEVICE_SOFT, drivers);
    const char *root = hyp_session_root();
    hyp_command_say("fixtures: %s\n", root != NULL ? root : hyp_error());
    bool folders = show_folder("/tmp") && show_folder("/dev/shm");
    const bool works = root != NULL && folders && (gpu || soft);
    const int code = works ? HYP_EXIT_OK : HYP_EXIT_ERROR;
    json_t *document = json_pack("{s:o, s:o, s:b, s:b, s:b}", "drivers", drivers, "fixtures",
                                 root != NULL ? hyp_record_text(root) : json_null(),
                                 "folders_are_writable", (int)folders, "tests_on_gpu",
                                 (int)(gpu && works), "tests_on_soft", (int)(soft && works));
    if (hyp_command_is_json()) return hyp_command_answer("doctor", document, code);
    json_decref(document);
    if (!works) {
        hyp_command_say("Claims cannot be tested here until these problems are fixed.\n");
        return code;
    }
    hyp_command_say("%s\n",
                    gpu ? "Claims can be tested on a GPU here."
                        : "Claims can be tested on the soft device here; those about a GPU's speed "
                          "are not tested.");
    hyp_command_say("What can be tested here, and how:\n");
    if (gpu) hyp_command_say("  all claims, on the GPU              tollens run\n");
    if (soft) {
        hyp_command_say(
            "  claims about results                tollens run --device soft\n"
            "  a CUDA program of yours             tollens soft -- PROGRAM ARGUMENTS\n");
    }
    return HYP_EXIT_OK;
}

/* ---- list ------------------------------------------------------------------------------------ */

int hyp_command_list(int count, char **words) {
    if (count > 0) return hyp_command_complain("list takes no arguments: %s", words[0]);
    json_t *rows = json_array();
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        size_t saboteurs = 0, attacks = hyp_worker_list(claim->suite, NULL, NULL, 0);
        (void)hyp_claim_saboteurs(claim, &saboteurs);
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:s?, s:b, s:I, s:I}", "id", claim->id, "title",
                                        claim->title, "plugin", claim->plugin, "is_implemented",
                                        (int)(claim->words != NULL), "attacks", (json_int_t)attacks,
                                        "saboteurs", (json_int_t)saboteurs));
        hyp_command_say("%-*s%-70s  ", hyp_claim_width(), claim->id, claim->title);
        if (claim->words == NULL) {
            hyp_command_say("not implemented yet\n");
        } else {
            hyp_command_say("%zu attack%s, %zu saboteur%s\n", attacks, hyp_plural(attacks),
                            saboteurs, hyp_plural(saboteurs));
        }
    }
    json_t *document = json_pack("{s:o}", "claims", rows);
    if (hyp_command_is_json()) return hyp_command_answer("list", document, HYP_EXIT_OK);
    json_decref(document);
    return HYP_EXIT_OK;
}

/* ---- explain --------------------------------------------------------------------------------- */

/* Prints text under a heading, broken into lines of at most WIDTH characters. */
static void put_words(const char *heading, const char *text) {
    enum { WIDTH = 92, INDENT = 14 };
    size_t column = 0;
    if (text == NULL) return;
    hyp_command_say("%-*s", INDENT, heading);
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH - INDENT) {
            hyp_command_say("\n%*s", INDENT, "");
            column = 0;
        }
        hyp_command_say("%s%.*s", column > 0 ? " " : "", (int)length, text);
        column += length + (column > 0);
        text += length;
        text += strspn(text, " ");
    }
    hyp_command_say("\n");
}

static const char *find_sentence(const char *name) {
    size_t index = 0;
    return hyp_sabotage_find(name, &index) ? hyp_sabotage_sentence(index) : "";
}

static void explain(const struct hyp_claim *claim) {
    char threshold[128], unit[HYP_UNIT_BYTES];
    const char *names[64];
    size_t count = hyp_worker_list(claim->suite, NULL, names, 64);
    hyp_command_say("%s: %s\n\n", claim->id, claim->title);
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
        hyp_command_say("\nIt has no attack yet, so it is not tested.\n");
        return;
    }
    hyp_command_say("\nattacks\n");
    for (size_t i = 0; i < count && i < 64; i++) hyp_command_say("  %s\n", names[i]);
    const struct hyp_saboteur *saboteurs = hyp_claim_saboteurs(claim, &count);
    hyp_command_say("\nsaboteurs, and the verdict that each must force\n");
    for (size_t i = 0; i < count; i++) {
        hyp_command_say("  %-24s %-14s %s\n", saboteurs[i].name,
                        hyp_forced_words(saboteurs[i].forced), find_sentence(saboteurs[i].name));
    }
    const char *const *ladders = NULL;
    count = hyp_claim_ladders(claim, &ladders);
    if (count > 0)
        hyp_command_say("\nfaults whose detection limit --limits finds, from gross to fine\n");
    for (size_t i = 0; i < count; i++) {
        struct hyp_ladder ladder;
        if (!hyp_ladder_read(ladders[i], &ladder)) continue;
        hyp_command_say("  %s\n%*s%s\n", ladders[i], 6, "", find_sentence(ladder.steps[0]));
    }
}

/* The same for programs. */
static json_t *explanation(const struct hyp_claim *claim) {
    const char *names[64];
    const char *const *ladders = NULL;
    json_t *attacks = json_array(), *saboteurs = json_array(), *limits = json_array();
    const struct hyp_words none = {.claim = NULL},
                           *words = claim->words != NULL ? claim->words : &none;
    size_t count = claim->words != NULL ? hyp_worker_list(claim->suite, NULL, names, 64) : 0;
    for (size_t i = 0; i < count && i < 64; i++) {
        json_array_append_new(attacks, json_string(names[i]));
    }
    const struct hyp_saboteur *all = hyp_claim_saboteurs(claim, &count);
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(saboteurs, json_pack("{s:s, s:s, s:s}", "name", all[i].name, "must",
                                                   hyp_forced_words(all[i].forced), "words",
                                                   find_sentence(all[i].name)));
    }
    count = hyp_claim_ladders(claim, &ladders);
    for (size_t i = 0; i < count; i++) json_array_append_new(limits, json_string(ladders[i]));
    return json_pack(
        "{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:f, s:s, s:s, s:s?, s:s?, s:o, s:o, s:o}",
        "id", claim->id, "title", claim->title, "claim", words->claim, "prediction",
        words->prediction, "falsified_if", words->falsified_if, "method", words->method, "control",
        words->control, "confounders", words->confounders, "threshold", claim->threshold, "unit",
        claim->unit, "direction", hyp_direction_name(claim->direction), "source", claim->source,
        "plugin", claim->plugin, "attacks", attacks, "saboteurs", saboteurs, "limits", limits);
}

int hyp_command_explain(int count, char **words) {
    json_t *claims = json_array();
    if (count == 0) {
        json_decref(claims);
        hyp_command_next("%s list", hyp_command_program());
        return hyp_command_complain("explain requires the names of claims, H1 to H%zu",
                                    hyp_claim_own_count());
    }
    for (int i = 0; i < count; i++) {
        const struct hyp_claim *claim = hyp_claim_find(words[i]);
        if (claim == NULL) {
            json_decref(claims);
            hyp_command_next("%s list", hyp_command_program());
            return hyp_command_complain("%s", hyp_plugin_no_claim(words[i]));
        }
        if (i > 0) hyp_command_say("\n");
        explain(claim);
        json_array_append_new(claims, explanation(claim));
    }
    json_t *document = json_pack("{s:o}", "claims", claims);
    if (hyp_command_is_json()) return hyp_command_answer("explain", document, HYP_EXIT_OK);
    json_decref(document);
    return HYP_EXIT_OK;
}
