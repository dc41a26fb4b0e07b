/*
 * Faults by name: what there is, what a name says, and how a fault is installed.
 */
#include "harness/sabotage.h"

#include "core/planted.h"
#include "files/atomic_file.h"
#include "rare_turn.h"
#include "sabotage_lists.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLUGIN_FAULTS_MAX = 256 };

static struct {
    uint64_t seed;
    const char *attack;
} place = {0, ""};

static double installed_amount; /* one fault is installed in a process */

static const struct hyp_fault *plugin_faults[PLUGIN_FAULTS_MAX]; /* of plugins */
static size_t plugin_fault_count;

static const struct hyp_fault *fault_at(size_t index) {
    size_t gross = 0, rare = 0;
    while (hyp_gross_fault(gross) != NULL) gross++;
    while (hyp_rare_fault(rare) != NULL) rare++;
    if (index < gross) return hyp_gross_fault(index);
    if (index < gross + rare) return hyp_rare_fault(index - gross);
    index -= gross + rare;
    return index < plugin_fault_count ? plugin_faults[index] : NULL;
}

double hyp_sabotage_given(void) {
    return installed_amount;
}

void hyp_sabotage_give(double amount) {
    installed_amount = amount;
}

bool hyp_sabotage_add(const struct hyp_fault *fault) {
    for (size_t i = 0; fault_at(i) != NULL; i++) {
        if (strcmp(fault_at(i)->name, fault->name) == 0) {
            return hyp_fail("a saboteur named '%s' exists already", fault->name);
        }
    }
    if (plugin_fault_count == PLUGIN_FAULTS_MAX) {
        return hyp_fail("plugins can add at most %d saboteurs", PLUGIN_FAULTS_MAX);
    }
    plugin_faults[plugin_fault_count++] = fault;
    return true;
}

const char *hyp_sabotage_name(size_t index) {
    return fault_at(index) != NULL ? fault_at(index)->name : NULL;
}

const char *hyp_sabotage_sentence(size_t index) {
    return fault_at(index) != NULL ? fault_at(index)->sentence : NULL;
}

double hyp_sabotage_amount(const char *name, const char *base) {
    size_t length = strlen(base);
    bool is_it = name != NULL && strncmp(name, base, length) == 0 && name[length] == '=';
    return is_it ? strtod(name + length + 1, NULL) : 0;
}

bool hyp_sabotage_find(const char *name, size_t *index) {
    size_t length = strcspn(name, "=");
    for (size_t i = 0; fault_at(i) != NULL; i++) {
        const struct hyp_fault *fault = fault_at(i);
        if (strlen(fault->name) != length || strncmp(fault->name, name, length) != 0) continue;
        char *end = NULL;
        double given = name[length] == '=' ? strtod(name + length + 1, &end) : 0;
        if (fault->has_amount && !(isfinite(given) && given > 0 && *end == '\0')) {
            return hyp_fail("the saboteur %s requires an amount, such as %s=3", name, fault->name);
        }
        if (!fault->has_amount && end != NULL) {
            return hyp_fail("the saboteur %s takes no amount", fault->name);
        }
        if (strstr(fault->name, "_one_in") != NULL && given < 1) {
            return hyp_fail("the saboteur %s occurs once in 1 or more, not in %g", fault->name,
                            given);
        }
        if (index != NULL) *index = i;
        return true;
    }
    return hyp_fail("there is no saboteur named '%s'", name);
}

bool hyp_sabotage_pool(const char *name, struct tol_pool_options *options) {
    size_t index = 0;
    if (name == NULL || !hyp_sabotage_find(name, &index) || fault_at(index)->plant == NULL) {
        return false;
    }
    hyp_sabotage_give(hyp_sabotage_amount(name, fault_at(index)->name));
    fault_at(index)->plant(options);
    return true;
}

void hyp_sabotage_place(uint64_t seed, const char *attack) {
    place.seed = seed;
    place.attack = attack;
}

bool hyp_sabotage_turn(const char *name, const char *base) {
    return hyp_sabotage_amount(name, base) > 0 && hyp_rare_now();
}

bool hyp_sabotage_now(void) {
    return hyp_rare_now();
}

/* 100000 as "100,000", 2.5 as "2.5". */
static void write_number(double number, char *text, size_t bytes) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.6g", number);
    if (number != floor(number) || number >= 1e15) {
        snprintf(text, bytes, "%s", digits);
        return;
    }
    snprintf(digits, sizeof digits, "%.0f", number);
    const size_t length = strlen(digits);
    size_t used = 0;
    for (size_t i = 0; i < length && used + 2 < bytes; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
}

const char *hyp_sabotage_words(const char *name, char *text, size_t bytes) {
    static const char *const places[] = {"this many", "this percentage"};
    char number[48];
    size_t index = 0;
    const char *sentence = hyp_sabotage_find(name, &index) ? fault_at(index)->sentence : name;
    snprintf(text, bytes, "%s", sentence);
    const double given =
        strchr(name, '=') != NULL ? hyp_sabotage_amount(name, fault_at(index)->name) : 0;
    const char *every = strstr(sentence, " in this many ");
    if (given == 1 && every != NULL && strncmp(sentence, "one ", 4) == 0 &&
        strncmp(every, " in this many MiB", 17) != 0) {
        snprintf(text, bytes, "every %.*s%s", (int)(every - sentence - 4), sentence + 4,
                 every + strlen(" in this many"));
        return text;
    }
    for (size_t i = 0; i < 2 && given > 0; i++) {
        const char *at = strstr(sentence, places[i]);
        if (at == NULL) continue;
        write_number(given, number, sizeof number);
        snprintf(text, bytes, "%.*s%s%s%s", (int)(at - sentence), sentence, number,
                 i == 1 ? " %" : "", at + strlen(places[i]));
        break;
    }
    return text;
}

const char *hyp_sabotage_mistake(const char *name, const char *operation) {
    const size_t length = strlen(operation);
    if (name == NULL || strncmp(name, operation, length) != 0 || name[length] != '_') return NULL;
    if (strchr(name, '=') != NULL) return NULL; /* a fault of the result */
    return name + length + 1;
}

bool hyp_sabotage_spares(const char *name, const char *operation) {
    static const char *const operations[] = {"gemm",   "grouped", "quant", "attention", "gradients",
                                             "packed", "paged",   "e4m3",  "dequantise"};
    for (size_t i = 0; name != NULL && i < sizeof operations / sizeof operations[0]; i++) {
        const size_t length = strlen(operations[i]);
        if (strncmp(name, operations[i], length) == 0 && name[length] == '_') {
            return strcmp(operations[i], operation) != 0;
        }
    }
    return false;
}

bool hyp_sabotage_hooks(const char *name, struct tol_interpose_options *options) {
    size_t index = 0;
    if (!hyp_sabotage_find(name, &index)) return false;
    const double amount = hyp_sabotage_amount(name, fault_at(index)->name);
    hyp_sabotage_give(amount);
    hyp_rare_begin(amount, place.seed, place.attack);
    *options = (struct tol_interpose_options){.before = fault_at(index)->before,
                                              .after = fault_at(index)->after};
    atomic_store(&tol_planted_no_lock, strcmp(fault_at(index)->name, "lock_missing") == 0);
    return true;
}

bool hyp_sabotage_install(const char *name, struct tol_driver *driver) {
    struct tol_interpose_options options;
    if (!hyp_sabotage_hooks(name, &options)) return false;
    if (options.before == NULL && options.after == NULL) return true;
    if (tol_interpose_install(driver, &options) == TOL_OK) return true;
    return hyp_fail("the saboteur %s could not be installed: %s", name, tol_message());
}
