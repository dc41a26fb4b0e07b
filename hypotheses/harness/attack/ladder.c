/*
 * Reads the ladders of sabotage.toml and of plugins.
 */
#include "ladder.h"

#include "files/atomic_file.h"
#include "harness/sabotage.h"

#include <stdio.h>
#include <string.h>

/* Adds a step and checks that it is finer than the one before. */
static bool add_step(const char *text, const char *amount, size_t length,
                     struct hyp_ladder *ladder) {
    if (ladder->count == HYP_LADDER_STEPS_MAX) {
        return hyp_fail("the ladder %s has more than %d steps", text, HYP_LADDER_STEPS_MAX);
    }
    char *step = ladder->steps[ladder->count];
    const int written =
        snprintf(step, HYP_LADDER_NAME_BYTES, "%.*s%s%.*s", (int)strcspn(text, "="), text,
                 amount != NULL ? "=" : "", (int)length, amount ? amount : "");
    if (written >= HYP_LADDER_NAME_BYTES) {
        return hyp_fail("a step of the ladder %s is too long", text);
    }
    if (!hyp_sabotage_find(step, NULL)) return false;
    const size_t at = ladder->count++;
    if (at == 0) return true;
    const double before = hyp_sabotage_amount(ladder->steps[at - 1], ladder->fault),
                 now = hyp_sabotage_amount(step, ladder->fault);
    const bool is_rare = strstr(ladder->fault, "_one_in") != NULL;
    if (is_rare ? now > before : now < before) return true;
    return hyp_fail("the ladder %s must go from gross to fine, and %g comes after %g", text, now,
                    before);
}

bool hyp_ladder_read(const char *text, struct hyp_ladder *ladder) {
    const size_t name = strcspn(text, "=");
    memset(ladder, 0, sizeof *ladder);
    if (name == 0 || name >= sizeof ladder->fault) {
        return hyp_fail("'%s' is not a ladder: it must be a fault with amounts, such as "
                        "launch_drop_one_in=100,1000",
                        text);
    }
    memcpy(ladder->fault, text, name);
    if (text[name] == '\0') return add_step(text, NULL, 0, ladder);
    for (const char *amount = text + name + 1;;) {
        const size_t length = strcspn(amount, ",");
        if (!add_step(text, amount, length, ladder)) return false;
        if (amount[length] == '\0') return true;
        amount += length + 1;
    }
}
