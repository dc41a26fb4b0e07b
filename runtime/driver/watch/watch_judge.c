/*
 * Applies the rules to what a call is about to do.
 */
#include "watch_state.h"

/* The effects that a kind of rule looks at, a bit each. "usual" counts time with each call. */
#define BIT(effect) (1u << WATCH_##effect)
static const unsigned effects_of[] = {
    [TOL_WATCH_WRITTEN_ONCE] = BIT(IN) | BIT(WRITTEN) | BIT(STORED),
    [TOL_WATCH_NO_READ_BACK] = BIT(OUT),
    [TOL_WATCH_COPY_OUT_LIMIT] = BIT(OUT),
    [TOL_WATCH_KNOWN_MODULES] = 0, /* launches of their kernels are no effect on a block */
    [TOL_WATCH_USUAL] = BIT(EFFECTS) - 1,
    [TOL_WATCH_NO_COPY] = BIT(OUT) | BIT(READ),
    [TOL_WATCH_NO_SHARE] = BIT(SHARED),
    [TOL_WATCH_KNOWN_KERNELS] = BIT(LAUNCHED) | BIT(LOADED),
};

void watch_judge_prepare(struct tol_watch *watch) {
    for (size_t i = 0; i < watch->rule_count; i++) {
        const enum tol_watch_kind kind = watch->rules[i].kind;
        const uint64_t bit = (uint64_t)1 << i;
        if (kind == TOL_WATCH_KNOWN_MODULES) watch->rules_of_modules |= bit;
        for (unsigned effect = 0; effect < WATCH_EFFECTS; effect++) {
            if (effects_of[kind] >> effect & 1) watch->rules_of[effect] |= bit;
        }
    }
}

bool watch_judge_needs_clock(const struct tol_watch *watch) {
    for (size_t i = 0; i < watch->rule_count; i++) {
        const enum tol_watch_kind kind = watch->rules[i].kind;
        if (kind == TOL_WATCH_COPY_OUT_LIMIT || kind == TOL_WATCH_USUAL) return true;
    }
    return false;
}

uint64_t watch_judge_rules(const struct tol_watch *watch, const struct watch_found *found) {
    return found->block != NULL ? found->block->rules & watch->rules_of[found->effect]
                                : watch->rules_of_modules;
}

static bool watch_judge_broke(struct tol_watch *watch, const struct watch_rule *rule,
                              const struct watch_deed *deed, double value, double limit,
                              const char *unit) {
    watch_alarm(watch, rule, deed, value, limit, unit);
    return rule->refuse;
}

static bool judge_write(struct tol_watch *watch, const struct watch_rule *rule,
                        const struct watch_deed *deed) {
    const struct watch_block *block = deed->block;
    const uint64_t before = atomic_load(&block->bytes_in) + atomic_load(&block->bytes_written) +
                            atomic_load(&block->bytes_stored),
                   room = block->end - block->begin;
    if (before + deed->bytes <= room) return false;
    return watch_judge_broke(watch, rule, deed, (double)(before + deed->bytes), (double)room,
                             "bytes");
}

/* A bucket of tokens: one second's bytes at most, filled at the rate of the rule. */
static bool judge_rate(struct tol_watch *watch, struct watch_rule *rule,
                       const struct watch_deed *deed) {
    const double rate = rule->mb_per_s * 1e6;
    pthread_mutex_lock(&rule->lock);
    if (rule->filled_ns == 0)
        rule->tokens = rate;
    else if (deed->now_ns > rule->filled_ns) {
        rule->tokens += rate * (double)(deed->now_ns - rule->filled_ns) * 1e-9;
    }
    if (rule->tokens > rate) rule->tokens = rate;
    if (deed->now_ns > rule->filled_ns) rule->filled_ns = deed->now_ns;
    const double left = rule->tokens - (double)deed->bytes;
    const bool is_over = left < 0;
    /* What is refused is not copied; what is not, is paid by the time that follows. */
    if (!is_over || !rule->refuse) rule->tokens = left;
    pthread_mutex_unlock(&rule->lock);
    if (!is_over) return false;
    return watch_judge_broke(watch, rule, deed, (rate - left) * 1e-6, rule->mb_per_s,
                             "MB in a second");
}

static bool judge_usual(struct tol_watch *watch, struct watch_rule *rule,
                        const struct watch_deed *deed) {
    static const char *const units[WATCH_VALUES] = {
        "copies to the host per window", "bytes to the host per window",
        "bytes from the host per window", "launches a window"};
    uint64_t seen = 0, limit = 0;
    const uint64_t add[WATCH_VALUES] = {
        [WATCH_COPIES_OUT] = deed->effect == WATCH_OUT ? deed->count : 0,
        [WATCH_BYTES_OUT] = deed->effect == WATCH_OUT ? deed->bytes : 0,
        [WATCH_BYTES_IN] = deed->effect == WATCH_IN ? deed->bytes : 0,
        [WATCH_LAUNCHES] = deed->effect == WATCH_LAUNCHED ? deed->count : 0,
    };
    pthread_mutex_lock(&rule->lock);
    const enum watch_value value =
        watch_baseline_add(&rule->baseline, deed->now_ns, add, &seen, &limit);
    pthread_mutex_unlock(&rule->lock);
    if (value == WATCH_VALUES) return false;
    return watch_judge_broke(watch, rule, deed, (double)seen, (double)limit, units[value]);
}

static bool judge_copy(struct tol_watch *watch, const struct watch_rule *rule,
                       const struct watch_deed *deed) {
    return watch_judge_broke(watch, rule, deed, (double)deed->bytes, 0, "bytes copied");
}

/* A kernel that the watch does not know cannot be learned. */
static bool judge_kernel(struct tol_watch *watch, const struct watch_rule *rule,
                         const struct watch_deed *deed) {
    const uint64_t bit = (uint64_t)1 << (rule - watch->rules);
    if (deed->kernel != NULL) {
        if ((atomic_load(&deed->kernel->learned) & bit) != 0) return false;
        if (!atomic_load(&watch->kernels_closed)) {
            atomic_fetch_or(&deed->kernel->learned, bit);
            return false;
        }
    } else if (!atomic_load(&watch->kernels_closed)) {
        return false;
    }
    return deed->effect == WATCH_LOADED ? watch_judge_broke(watch, rule, deed, (double)deed->bytes,
                                                            0, "bytes read by the kernel")
                                        : watch_judge_broke(watch, rule, deed, (double)deed->count,
                                                            0, "launches with its address");
}

static bool judge_rule(struct tol_watch *watch, struct watch_rule *rule,
                       const struct watch_deed *deed) {
    switch (rule->kind) {
    case TOL_WATCH_KNOWN_MODULES:
        return watch_judge_broke(watch, rule, deed, (double)deed->count, 0, "launches");
    case TOL_WATCH_WRITTEN_ONCE:
        return judge_write(watch, rule, deed);
    case TOL_WATCH_NO_READ_BACK:
        return watch_judge_broke(watch, rule, deed, (double)deed->bytes, 0, "bytes to the host");
    case TOL_WATCH_COPY_OUT_LIMIT:
        return judge_rate(watch, rule, deed);
    case TOL_WATCH_USUAL:
        return judge_usual(watch, rule, deed);
    case TOL_WATCH_NO_COPY:
        return judge_copy(watch, rule, deed);
    case TOL_WATCH_NO_SHARE:
        return watch_judge_broke(watch, rule, deed, (double)deed->bytes, 0, "bytes shared");
    case TOL_WATCH_KNOWN_KERNELS:
        return judge_kernel(watch, rule, deed);
    default:
        return false;
    }
}

bool watch_judge(struct tol_watch *watch, uint64_t rules, const struct watch_deed *deed) {
    bool is_refused = false;
    for (; rules != 0; rules &= rules - 1) {
        is_refused = judge_rule(watch, &watch->rules[__builtin_ctzll(rules)], deed) || is_refused;
    }
    return is_refused;
}
