/*
 * doctor: which drivers and devices there are, and what a test of claims lacks here; with
 * -- PROGRAM, what `tollens soft` would do for that program.
 */
#include "run/command.h"

#include "files/atomic_file.h"
#include "harness/claim.h"
#include "harness/session.h"
#include "record/record.h"
#include "soft_program.h"
#include "soft_toolchain.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Sets a member if there is an object: without --json there is none. */
static void doctor_set(json_t *object, const char *name, json_t *value) {
    json_object_set_new(object, name, value);
}

/* Adds an object to a list, and returns it. */
static json_t *doctor_add_object(json_t *list) {
    json_t *object = json_object();
    return json_array_append_new(list, object) == 0 ? object : NULL;
}

static json_t *integer_or_null(int64_t number) {
    return number >= 0 ? json_integer(number) : json_null();
}

static void show_device(const struct tol_device *device, json_t *object) {
    doctor_set(object, "ordinal", json_integer(device->ordinal));
    doctor_set(object, "name", hyp_record_text(device->name));
    doctor_set(object, "compute_capability", json_integer(device->compute_capability));
    doctor_set(object, "memory_bytes", json_integer((json_int_t)device->memory_bytes));
    doctor_set(object, "multiprocessors", json_integer(device->multiprocessors));
    doctor_set(object, "is_supported",
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

/* What NVML reports about a device, if it is available. */
static void show_nvml(const struct tol_health_device *device, json_t *object) {
    doctor_set(object, "nvml", device->is_told ? json_null() : hyp_record_text(device->reason));
    doctor_set(object, "nvml_free_bytes", integer_or_null(device->free_bytes));
    doctor_set(object, "ecc_uncorrected", integer_or_null(device->ecc_uncorrected));
    doctor_set(object, "temperature_celsius", integer_or_null(device->temperature_celsius));
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

/* Creates a context, as every attack does. */
static bool try_context(struct tol_driver *driver, int ordinal, json_t *object) {
    struct tol_context *context = NULL;
    struct tol_health health = {0};
    if (tol_context_create(driver, ordinal, &context) != TOL_OK ||
        tol_health_check(context, NULL, &health) != TOL_OK) {
        hyp_command_say("    a context could not be created: %s\n", hyp_session_message());
        doctor_set(object, "context", hyp_record_text(hyp_session_message()));
        tol_context_destroy(context);
        return false;
    }
    hyp_command_say("    a context can be created; %.1f of %.1f GiB free\n",
                    (double)health.free_bytes / (1u << 30),
                    (double)health.total_bytes / (1u << 30));
    if (!health.is_healthy) hyp_command_say("    unhealthy: %s\n", health.complaint);
    doctor_set(object, "context", json_null());
    doctor_set(object, "free_bytes", json_integer((json_int_t)health.free_bytes));
    doctor_set(object, "health",
               health.is_healthy ? json_null() : hyp_record_text(health.complaint));
    show_nvml(&health.device, object);
    tol_context_destroy(context);
    return true;
}

static bool show_driver(enum hyp_device_kind kind, json_t *drivers) {
    json_t *object = doctor_add_object(drivers), *devices = json_array();
    struct tol_driver *driver = NULL;
    bool works = false;
    int count = 0;
    doctor_set(object, "kind", json_string(hyp_device_kind_name(kind)));
    doctor_set(object, "devices", devices);
    if (hyp_session_open(&kind, &driver) != TOL_OK) {
        doctor_set(object, "error", hyp_record_text(hyp_session_message()));
        hyp_command_say("%s: not available: %s\n", hyp_device_kind_name(kind),
                        hyp_session_message());
        return false;
    }
    int version = tol_driver_version(driver);
    doctor_set(object, "error", json_null());
    doctor_set(object, "path", hyp_record_text(tol_driver_path(driver)));
    doctor_set(object, "cuda_version", json_integer(version));
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
        json_t *one = doctor_add_object(devices);
        show_device(&device, one);
        works |= try_context(driver, i, one);
    }
    tol_driver_close(driver);
    return works;
}

/* Criterion's workers communicate through these. */
static bool show_folder(const char *folder) {
    bool writable = access(folder, W_OK) == 0;
    if (!writable)
        hyp_command_say("%s is not writable, and the processes of the attacks need it\n", folder);
    return writable;
}

int hyp_command_doctor(int count, char **words) {
    if (count > 1 && strcmp(words[0], "--") == 0) {
        if (hyp_command_is_json())
            return hyp_command_complain("doctor -- PROGRAM prints text, without --json");
        return hyp_soft_program_doctor(words[1], hyp_session_soft_library());
    }
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
        hyp_soft_toolchain_say();
    }
    return HYP_EXIT_OK;
}
