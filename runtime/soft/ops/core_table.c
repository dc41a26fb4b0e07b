/*
 * The table of one core: compiled with it, once for each.
 */
#include "lower/core.h"
#include "op_body.h"

#define SOFT_QUOTED(core) SOFT_QUOTE(core)
#define SOFT_QUOTE(core) #core
#define SOFT_TABLE(core) SOFT_TABLE_NAME(core)
#define SOFT_TABLE_NAME(core) soft_core_##core

extern const struct soft_core SOFT_TABLE(SOFT_CORE);

const struct soft_core SOFT_TABLE(SOFT_CORE) = {
    .name = SOFT_QUOTED(SOFT_CORE),
    .run =
        {
#define SOFT_OP(name) {SOFT_FULL(name), SOFT_PART(name)},
#include "lower/ops.def"
        },
};
