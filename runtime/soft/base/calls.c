/*
 * The names of the exported functions, from their list.
 */
#include "calls.h"

#define SUFFIX_NONE ""
#define SUFFIX_PTDS "_ptds"
#define SUFFIX_PTSZ "_ptsz"

const struct soft_call_name soft_call_names[SOFT_CALLS] = {
#define SOFT_FN(thread, version, base, name, parameters, names) {#base, #name, SUFFIX_##thread},
#include "functions.def"
};
