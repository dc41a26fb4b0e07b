/*
 * The devices of a model on the command line.
 */
#include "model_devices.h"

#include "files/atomic_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool model_devices_add(struct hyp_model_devices *devices, long number) {
    if (number < 0 || number >= 1024 || devices->count == KN_COLLECTIVE_RANKS_MAX) return false;
    for (unsigned i = 0; i < devices->count; i++) {
        if (devices->ordinals[i] == number) return false;
    }
    devices->ordinals[devices->count++] = (int)number;
    return true;
}

bool hyp_model_devices_read(const char *text, struct hyp_model_devices *devices) {
    const char *at = text;
    devices->count = 0;
    for (bool more = true; more;) {
        char *end = NULL;
        const long number = strtol(at, &end, 10);
        more = *end == ',';
        if (end == at || (*end != '\0' && !more) || !model_devices_add(devices, number)) {
            return hyp_fail("--devices must be numbers of different devices, at most %d, such as "
                            "0,1, not '%s'",
                            KN_COLLECTIVE_RANKS_MAX, text);
        }
        at = end + 1;
    }
    return true;
}

bool hyp_model_way(const char *name, enum kn_collective_way *way) {
    for (int i = 0; i < KN_WAYS; i++) {
        if (i == KN_WAY_RING || strcmp(name, kn_collective_way_name(i)) != 0) continue;
        *way = (enum kn_collective_way)i;
        return true;
    }
    return hyp_fail("--exchange must be auto, direct or flags, not '%s'", name);
}

tol_status hyp_model_devices_open(struct hyp_model_devices *devices, struct tol_driver *driver,
                                  int alone, struct tol_load_options *options) {
    tol_status status = TOL_OK;
    if (devices->count == 0) (void)model_devices_add(devices, alone);
    for (unsigned i = 0; i < devices->count && status == TOL_OK; i++) {
        status = tol_context_create(driver, devices->ordinals[i], &devices->contexts[i]);
    }
    options->peers = devices->contexts + 1;
    options->peer_count = devices->count - 1;
    return status;
}

void hyp_model_devices_close(struct hyp_model_devices *devices) {
    for (unsigned i = 0; i < devices->count; i++) tol_context_destroy(devices->contexts[i]);
}

const char *hyp_model_devices_name(const struct hyp_model_devices *devices) {
    static char text[160];
    const char *name = tol_context_device(devices->contexts[0])->name;
    if (devices->count == 1) return name;
    snprintf(text, sizeof text, "%u of %s", devices->count, name);
    return text;
}
