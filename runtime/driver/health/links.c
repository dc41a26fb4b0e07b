/*
 * Functions of libnvidia-ml about links, each of which may be missing.
 */
#include "tollens/links.h"

#include "core/check.h"
#include "core/context_state.h"
#include "core/library.h"
#include "nvml.h"

enum {
    SUCCESS = 0,
    LINKS_MAX = 18, /* NVML_NVLINK_MAX_LINKS */
    /* Field identifiers. Speeds are in MB/s: what all active links have in common, told before
     * compute capability 9.0, and that of the link that is the field's scope, told since. */
    FIELD_SPEED_COMMON = 90,
    FIELD_SPEED = 164,
    FIELD_DATA_SENT = 138,
    FIELD_DATA_RECEIVED = 139,
    ALL_LINKS = -1 /* UINT_MAX as the scope of a field: the sum over all links */
};

/* nvmlValueType_t. */
enum { VALUE_DOUBLE, VALUE_UNSIGNED, VALUE_UNSIGNED_LONG, VALUE_UNSIGNED_LONG_LONG, VALUE_SIGNED };

/* nvmlFieldValue_t. */
struct field_value {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    int type, result;
    union {
        double real;
        unsigned whole;
        unsigned long long large;
        long long is_signed;
    } value;
};

struct asked {
    void *library, *device;
};

/* A function that writes one unsigned number. */
static int links_number_of(const struct asked *asked, const char *function) {
    int (*ask)(void *device, unsigned *value) = NULL;
    unsigned value = 0;
    if (!tol_library_find(asked->library, function, &ask, sizeof ask) ||
        ask(asked->device, &value) != SUCCESS || value > INT32_MAX) {
        return -1;
    }
    return (int)value;
}

static int64_t links_field_of(const struct asked *asked, unsigned id, unsigned scope) {
    int (*ask)(void *device, int count, struct field_value *fields) = NULL;
    struct field_value field = {.id = id, .scope = scope, .result = -1};
    if (!tol_library_find(asked->library, "nvmlDeviceGetFieldValues", &ask, sizeof ask) ||
        ask(asked->device, 1, &field) != SUCCESS || field.result != SUCCESS) {
        return -1;
    }
    switch (field.type) {
    case VALUE_UNSIGNED:
        return field.value.whole;
    case VALUE_UNSIGNED_LONG:
    case VALUE_UNSIGNED_LONG_LONG:
        return field.value.large <= INT64_MAX ? (int64_t)field.value.large : -1;
    case VALUE_SIGNED:
        return field.value.is_signed >= 0 ? field.value.is_signed : -1;
    default:
        return -1;
    }
}

/* nvmlNvlinkVersion_t in tenths. */
static int links_version_of(unsigned code) {
    static const int tenths[] = {-1, 10, 20, 22, 30, 31, 40, 50};
    return code < sizeof tenths / sizeof tenths[0] ? tenths[code] : -1;
}

/* is_active has LINKS_MAX entries. */
static int64_t speed_of(const struct asked *asked, const bool *is_active, int count) {
    int64_t all = 0;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        if (!is_active[link]) continue;
        const int64_t speed = links_field_of(asked, FIELD_SPEED, link);
        if (speed <= 0) {
            const int64_t common = links_field_of(asked, FIELD_SPEED_COMMON, 0);
            return common > 0 ? common * count : -1;
        }
        all += speed;
    }
    return all;
}

static void ask_nvlinks(const struct asked *asked, struct tol_links *links) {
    int (*state)(void *device, unsigned link, unsigned *is_active) = NULL;
    int (*version)(void *device, unsigned link, unsigned *value) = NULL;
    if (!tol_library_find(asked->library, "nvmlDeviceGetNvLinkState", &state, sizeof state)) return;
    tol_library_find(asked->library, "nvmlDeviceGetNvLinkVersion", &version, sizeof version);
    bool is_active[LINKS_MAX] = {false};
    links->nvlinks = 0;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        unsigned found = 0, code = 0;
        if (state(asked->device, link, &found) != SUCCESS || found == 0) continue;
        is_active[link] = true;
        if (links->nvlinks++ == 0 && version != NULL &&
            version(asked->device, link, &code) == SUCCESS) {
            links->nvlink_version = links_version_of(code);
        }
    }
    if (links->nvlinks == 0) return;
    links->nvlink_mb_per_s = speed_of(asked, is_active, links->nvlinks);
    links->nvlink_sent_kib = links_field_of(asked, FIELD_DATA_SENT, (unsigned)ALL_LINKS);
    links->nvlink_received_kib = links_field_of(asked, FIELD_DATA_RECEIVED, (unsigned)ALL_LINKS);
}

tol_status tol_links_read(const struct tol_context *context, struct tol_links *links) {
    tol_status status = TOL_OK;
    struct asked asked = {NULL, NULL};
    TOL_CHECK(context != NULL && links != NULL, TOL_INVALID_ARGUMENT,
              "tol_links_read: an argument is NULL");
    *links = (struct tol_links){.pcie_generation = -1,
                                .pcie_width = -1,
                                .pcie_generation_max = -1,
                                .pcie_width_max = -1,
                                .nvlinks = -1,
                                .nvlink_version = -1,
                                .nvlink_mb_per_s = -1,
                                .nvlink_sent_kib = -1,
                                .nvlink_received_kib = -1};
    links->is_told = tol_nvml_find(context->device.pci_bus_id, context->device.name, &asked.library,
                                   &asked.device, links->reason, sizeof links->reason);
    if (!links->is_told) return TOL_OK;
    links->pcie_generation = links_number_of(&asked, "nvmlDeviceGetCurrPcieLinkGeneration");
    links->pcie_width = links_number_of(&asked, "nvmlDeviceGetCurrPcieLinkWidth");
    links->pcie_generation_max = links_number_of(&asked, "nvmlDeviceGetMaxPcieLinkGeneration");
    links->pcie_width_max = links_number_of(&asked, "nvmlDeviceGetMaxPcieLinkWidth");
    ask_nvlinks(&asked, links);
out:
    return status;
}

double tol_pcie_peak(int generation, int width, enum tol_pcie_direction direction,
                     unsigned payload_bytes) {
    static const double giga_transfers[] = {2.5, 5, 8, 16, 32};
    enum { WRITE_OVERHEAD = 24, COMPLETION_OVERHEAD = 20, PAYLOAD_BYTES = 256 };
    if (generation < 1 || generation > 5 || width < 1) return 0;
    const double coding = generation < 3 ? 8.0 / 10 : 128.0 / 130;
    const double payload = payload_bytes > 0 ? payload_bytes : PAYLOAD_BYTES;
    const double overhead = direction == TOL_PCIE_TO_HOST ? WRITE_OVERHEAD : COMPLETION_OVERHEAD;
    return giga_transfers[generation - 1] * 1e9 * width * coding / 8 * payload /
           (payload + overhead);
}
