/*
 * Fuzz target: the environment of the soft device, one variable per line. For any values, each
 * option is within its bounds, and an accepted number equals the number in the text.
 */
#include "fuzz.h"

#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {
    "TOLLENS_SOFT_DEVICES", "TOLLENS_SOFT_MEMORY",  "TOLLENS_SOFT_GRANULARITY",
    "TOLLENS_SOFT_WORKERS", "TOLLENS_SOFT_COMPUTE", "TOLLENS_SOFT_DRIVER_VERSION",
    "TOLLENS_SOFT_BUDGET",  "TOLLENS_SOFT_SEED",    "TOLLENS_SOFT_CORE",
    "TOLLENS_SOFT_CHECK",   "TOLLENS_SOFT_REPORT",  "TOLLENS_SOFT_FAULTS",
    "TOLLENS_SOFT_ORDER",
};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

static void options_check(bool holds, const char *what) {
    if (!holds) fuzz_fail(what, 0, "");
}

/* Digits and at most one of K, M and G, without an overflow: what such a text is worth. */
static bool options_value_of(const char *text, uint64_t *value) {
    static const char units[] = "KMG";
    *value = 0;
    if (*text < '0' || *text > '9') return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(*value, 10u, value)) return false;
        if (__builtin_add_overflow(*value, (uint64_t)(*text - '0'), value)) return false;
    }
    if (*text == '\0') return true;
    const char *unit = strchr(units, *text);
    return unit != NULL && text[1] == '\0' &&
           !__builtin_mul_overflow(*value, 1024ull << (10 * (unit - units)), value);
}

/* An option that is not the default must be what its variable says. */
static void options_check_number(const char *name, uint64_t option, uint64_t otherwise) {
    const char *text = getenv(name);
    uint64_t value = 0;
    if (option == otherwise || text == NULL) return;
    options_check(options_value_of(text, &value) && value == option, name);
}

static void check_all(const struct soft_options *o, const struct soft_options *defaults) {
    options_check(o->devices >= 1 && o->devices <= 8, "devices");
    options_check(o->memory_bytes >= 1 << 20 && o->memory_bytes <= 1ull << 42, "memory");
    options_check(o->granularity >= 4096 && o->granularity <= 2 << 20, "granularity");
    options_check((o->granularity & (o->granularity - 1)) == 0, "granularity is a power of two");
    options_check(o->workers >= 1 && o->workers <= 256, "workers");
    options_check(o->compute_capability >= 70 && o->compute_capability <= 121,
                  "compute capability");
    options_check(o->driver_version >= 11000 && o->driver_version <= 13020, "driver version");
    options_check(o->order <= SOFT_ORDER_DRAWN, "order");
    options_check(o->core == 0 || o->core == 1 || o->core == 3 || o->core == 4, "core");
    options_check_number("TOLLENS_SOFT_DEVICES", (uint64_t)o->devices, (uint64_t)defaults->devices);
    options_check_number("TOLLENS_SOFT_MEMORY", o->memory_bytes, defaults->memory_bytes);
    options_check_number("TOLLENS_SOFT_GRANULARITY", o->granularity, defaults->granularity);
    options_check_number("TOLLENS_SOFT_WORKERS", (uint64_t)o->workers, (uint64_t)defaults->workers);
    options_check_number("TOLLENS_SOFT_BUDGET", o->budget, defaults->budget);
    options_check_number("TOLLENS_SOFT_SEED", o->seed, defaults->seed);
    options_check_number("TOLLENS_SOFT_CORE", (uint64_t)o->core, (uint64_t)defaults->core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct soft_options defaults, options;
    for (int i = 0; i < VARIABLES; i++) unsetenv(variables[i]);
    soft_options_read(&defaults);
    char *text = fuzz_text(data, size), *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        for (int i = 0; i < VARIABLES; i++) {
            size_t length = strlen(variables[i]);
            bool is_it = strncmp(line, variables[i], length) == 0 && line[length] == '=';
            if (is_it) setenv(variables[i], line + length + 1, 1);
        }
    }
    soft_options_read(&options);
    check_all(&options, &defaults);
    free(text);
    return 0;
}
