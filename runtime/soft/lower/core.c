/*
 * Choosing a core.
 */
#include "core.h"

#include "base/options.h"

#include <pthread.h>
#include <stdio.h>

extern const struct soft_core soft_core_x1;
#if defined(SOFT_HAS_LEVELS)
/* A library may omit them, which halves its link time: ci/falsify. */
extern const struct soft_core soft_core_x3 __attribute__((weak));
extern const struct soft_core soft_core_x4 __attribute__((weak));
#endif

static const struct soft_core *chosen = &soft_core_x1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void core_choose(void) {
#if defined(SOFT_HAS_LEVELS)
    int wanted = soft_options()->core;
    __builtin_cpu_init();
    bool v3 = &soft_core_x3 != NULL && __builtin_cpu_supports("avx2") &&
              __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
              __builtin_cpu_supports("popcnt");
    bool v4 = v3 && &soft_core_x4 != NULL && __builtin_cpu_supports("avx512f") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    if ((wanted == 3 && !v3) || (wanted == 4 && !v4)) {
        fprintf(stderr,
                "tollens-soft: TOLLENS_SOFT_CORE=%d is ignored: this processor, or this library, "
                "does not have that level\n",
                wanted);
        wanted = 0;
    }
    if (v4 && (wanted == 0 || wanted == 4)) {
        chosen = &soft_core_x4;
    } else if (v3 && (wanted == 0 || wanted == 3)) {
        chosen = &soft_core_x3;
    }
#endif
}

const struct soft_core *soft_core(void) {
    pthread_once(&once, core_choose);
    return chosen;
}

const char *soft_op_name(enum soft_op op) {
    static const char *const names[] = {
#define SOFT_OP(name) #name,
#include "ops.def"
    };
    return op < SOFT_OPS ? names[op] : "?";
}
