/*
 * Reads the environment. An invalid value is reported once on stderr, and the default applies:
 * before cuInit a driver library has no better place to report it.
 */
#include "options.h"

#include "dice.h"
#include "suppress.h"
#include "tollens/plain_text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static struct soft_options shared;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int complaints;

static void options_complain(const char *name, const char *value, const char *allowed) {
    complaints++;
    tol_plain_print(stderr, "tollens-soft: %s=%s is ignored: it must be %s\n", name, value,
                    allowed);
}

/* Digits followed by K, M or G. strtoull would also accept blanks, a sign and overflow. */
static bool options_read_size(const char *text, uint64_t *size) {
    static const char units[] = "KMG";
    uint64_t number = 0;
    bool ok = *text >= '0' && *text <= '9';
    for (; ok && *text >= '0' && *text <= '9'; text++) {
        ok = !__builtin_mul_overflow(number, 10u, &number) &&
             !__builtin_add_overflow(number, (uint64_t)(*text - '0'), &number);
    }
    *size = number;
    if (!ok || *text == '\0') return ok;
    const char *unit = strchr(units, *text);
    return unit != NULL && text[1] == '\0' &&
           !__builtin_mul_overflow(number, 1024ull << (10 * (unit - units)), size);
}

static uint64_t options_read_number(const char *name, uint64_t low, uint64_t high,
                                    uint64_t otherwise, const char *allowed) {
    const char *value = getenv(name);
    uint64_t number = 0;
    if (value == NULL || value[0] == '\0') return otherwise;
    if (options_read_size(value, &number) && number >= low && number <= high) return number;
    options_complain(name, value, allowed);
    return otherwise;
}

void soft_options_uuid(int hardware, char uuid[SOFT_UUID_BYTES]) {
    static const char name[SOFT_UUID_BYTES] = "tollens soft dev";
    memcpy(uuid, name, SOFT_UUID_BYTES);
    uuid[SOFT_UUID_BYTES - 1] = (char)('0' + hardware);
}

void soft_options_uuid_text(int hardware, char text[SOFT_UUID_TEXT - 4]) {
    char uuid[SOFT_UUID_BYTES];
    size_t at = 0;
    soft_options_uuid(hardware, uuid);
    for (int i = 0; i < SOFT_UUID_BYTES; i++) {
        const bool is_part = i == 4 || i == 6 || i == 8 || i == 10;
        at += (size_t)snprintf(text + at, SOFT_UUID_TEXT - 4 - at, "%s%02x", is_part ? "-" : "",
                               (unsigned char)uuid[i]);
    }
}

/* Whether a word begins the name of a device, "GPU-746f6c6c-656e-7320-...", after "GPU-". */
static bool options_names_device(const char *word, size_t length, int hardware) {
    char text[SOFT_UUID_TEXT - 4];
    soft_options_uuid_text(hardware, text);
    return length > 0 && length <= strlen(text) && strncasecmp(word, text, length) == 0;
}

/* The device that a word of CUDA_VISIBLE_DEVICES means: an index, or the beginning of one UUID
 * alone. -1: none; no device of ours has MIG instances. */
static int options_visible_device(const char *word, size_t length, int devices) {
    int found = -1;
    if (length > 0 && length < 4 && strspn(word, "0123456789") >= length) {
        const int index = atoi(word);
        return index < devices ? index : -1;
    }
    if (length <= 4 || strncmp(word, "GPU-", 4) != 0) return -1;
    for (int device = 0; device < devices; device++) {
        if (!options_names_device(word + 4, length - 4, device)) continue;
        if (found >= 0) return -1;
        found = device;
    }
    return found;
}

/* As the CUDA Programming Guide has it: devices in the order of the list, up to the first entry
 * that names no device. A device that is listed twice ends the list, too. */
static void options_read_visible(struct soft_options *options) {
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    const int devices = options->devices;
    options->all_devices = devices;
    for (int i = 0; i < devices; i++) options->hardware[i] = i;
    if (value == NULL) return;
    options->devices = 0;
    for (const char *word = value; options->devices < devices;) {
        word += strspn(word, " \t");
        const size_t whole = strcspn(word, ",");
        size_t length = whole;
        while (length > 0 && (word[length - 1] == ' ' || word[length - 1] == '\t')) length--;
        const int device = options_visible_device(word, length, devices);
        bool is_new = device >= 0;
        for (int i = 0; i < options->devices; i++) is_new &= options->hardware[i] != device;
        if (!is_new) return;
        options->hardware[options->devices++] = device;
        if (word[whole] == '\0') return;
        word += whole + 1;
    }
}

/* PTX ISA 9.0, section 11.1.2: the targets from 7.0 on. The default is the newest whose
 * instructions without a suffix are all there: of 10.0 and later, some are refused. */
static void options_read_compute(struct soft_options *options) {
    static const int known[] = {70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
    static const char what[] = "70, 72, 75, 80, 86 to 90, 100, 103, 110, 120 or 121";
    const char *name = "TOLLENS_SOFT_COMPUTE";
    const int value = (int)options_read_number(name, 70, 121, 90, what);
    bool is_known = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) is_known |= known[i] == value;
    if (!is_known) options_complain(name, getenv(name), what);
    options->compute_capability = is_known ? value : 90;
}

static void read_checks(struct soft_options *options) {
    const struct {
        const char *word;
        bool *option;
    } words[] = {
        {"memory", NULL}, /* always on */
        {"init", &options->check_init},
        {"sync", &options->check_sync},
        {"race", &options->check_race},
        {"race=strict", &options->check_race_strict},
        {"stream", &options->check_stream},
        {"leak", &options->check_leak},
        {"fatal", &options->check_fatal},
        {"continue", &options->check_continue},
    };
    enum { WORDS = sizeof words / sizeof words[0] };
    const char *value = getenv("TOLLENS_SOFT_CHECK");
    options->check_init = options->check_sync = true;
    if (value == NULL || value[0] == '\0') return;
    const struct soft_options before = *options;
    options->check_init = options->check_sync = false;
    for (const char *word = value; *word != '\0';) {
        size_t length = strcspn(word, ","), i = 0;
        while (i < WORDS &&
               (strlen(words[i].word) != length || memcmp(words[i].word, word, length) != 0)) {
            i++;
        }
        if (i == WORDS) {
            options_complain("TOLLENS_SOFT_CHECK", value,
                             "a list of: memory, init, sync, race, race=strict, stream, leak, "
                             "fatal, continue");
            *options = before;
            return;
        }
        if (words[i].option != NULL) *words[i].option = true;
        word += length;
        if (*word == ',') word++;
    }
    options->check_race |= options->check_race_strict;
}

static void options_read_suppressions(void) {
    const char *path = getenv("TOLLENS_SOFT_SUPPRESSIONS");
    char why[200], what[260];
    if (path == NULL || path[0] == '\0' || soft_suppress_read(path, why, sizeof why)) return;
    snprintf(what, sizeof what, "a file of suppressions: %s", why);
    options_complain("TOLLENS_SOFT_SUPPRESSIONS", path, what);
}

static enum soft_order options_read_order(void) {
    static const char *const words[] = {"turns", "oldest", "newest", "drawn"};
    const char *value = getenv("TOLLENS_SOFT_ORDER");
    if (value == NULL || value[0] == '\0') return SOFT_ORDER_TURNS;
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(value, words[i]) == 0) return (enum soft_order)i;
    }
    options_complain("TOLLENS_SOFT_ORDER", value, "turns, oldest, newest or drawn");
    return SOFT_ORDER_TURNS;
}

void soft_options_read(struct soft_options *options) {
    *options = (struct soft_options){0};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores < 1) cores = 1;
    if (cores > 256) cores = 256;
    options->devices = (int)options_read_number("TOLLENS_SOFT_DEVICES", 1, SOFT_OPTIONS_DEVICES_MAX,
                                                1, "a number from 1 to 8");
    options_read_visible(options);
    options->memory_bytes = options_read_number("TOLLENS_SOFT_MEMORY", 1 << 20, 1ull << 42,
                                                8ull << 30, "a size from 1M to 4096G");
    options->granularity = options_read_number("TOLLENS_SOFT_GRANULARITY", 4 << 10, 2 << 20,
                                               2 << 20, "a power of two from 4K to 2M");
    if ((options->granularity & (options->granularity - 1)) != 0) {
        options_complain("TOLLENS_SOFT_GRANULARITY", getenv("TOLLENS_SOFT_GRANULARITY"),
                         "a power of two from 4K to 2M");
        options->granularity = 2 << 20;
    }
    options->workers = (int)options_read_number("TOLLENS_SOFT_WORKERS", 1, 256, (uint64_t)cores,
                                                "a number from 1 to 256");
    options_read_compute(options);
    options->driver_version = (int)options_read_number(
        "TOLLENS_SOFT_DRIVER_VERSION", SOFT_DRIVER_VERSION_MIN, SOFT_DRIVER_VERSION_MAX,
        SOFT_DRIVER_VERSION_DEFAULT, "a version from 11000 to 13020");
    options->budget = options_read_number("TOLLENS_SOFT_BUDGET", 0, UINT64_MAX, 0, "a number");
    options->seed = options_read_number("TOLLENS_SOFT_SEED", 0, UINT64_MAX, 0, "a number");
    options->core = (int)options_read_number("TOLLENS_SOFT_CORE", 0, 4, 0, "0, 1, 3 or 4");
    if (options->core == 2) {
        options_complain("TOLLENS_SOFT_CORE", "2", "0, 1, 3 or 4");
        options->core = 0;
    }
    options->order = options_read_order();
    options->report = getenv("TOLLENS_SOFT_REPORT");
    options->summary = getenv("TOLLENS_SOFT_SUMMARY");
    options->trace = getenv("TOLLENS_SOFT_TRACE");
    options->faults = getenv("TOLLENS_SOFT_FAULTS");
    options_read_suppressions();
    read_checks(options);
}

/* For `tollens soft`, which refuses what a driver can only ignore. Not thread-safe. */
__attribute__((visibility("default"))) int tollens_soft_options_complaints(void);
int tollens_soft_options_complaints(void) {
    struct soft_options options;
    complaints = 0;
    soft_options_read(&options);
    return complaints;
}

uint64_t soft_options_turn(uint64_t number) {
    const enum soft_order order = soft_options()->order;
    if (order == SOFT_ORDER_NEWEST) return UINT64_MAX - number;
    if (order == SOFT_ORDER_DRAWN) return (soft_dice(soft_options()->seed, number) >> 1) + 1;
    return number;
}

static void read_once(void) {
    soft_options_read(&shared);
}

const struct soft_options *soft_options(void) {
    pthread_once(&once, read_once);
    return &shared;
}
