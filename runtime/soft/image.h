/*
 * Image: PTX that has been read and lowered, with its variables in device memory.
 */
#ifndef SOFT_IMAGE_H
#define SOFT_IMAGE_H

#include "arena.h"
#include "code.h"
#include "ptx.h"
#include "report.h"

#include <stdatomic.h>

struct soft_module {
    struct soft_arena arena; /* holds all below */
    struct ptx_module ptx;
    char *text; /* a copy of the PTX, for reports */
    size_t length;
    int device;
    atomic_int references; /* the handle, and every launch that has not ended */
    uint32_t sites;
    struct soft_function *functions; /* the handles given out, by entry */
    struct soft_module *next;        /* in the context's list */
};

/* What a CUfunction points to. */
struct soft_function {
    struct soft_module *module;
    const struct ptx_function *ptx;
    const struct soft_code *code;
    uint32_t dynamic_shared_max; /* as allowed by cuFuncSetAttribute */
    struct soft_function *next;
};

/* Reads and lowers PTX of length bytes and places its variables on a device. Returns a CUresult; on
 * failure log holds the diagnostic (cut to log_bytes, terminated), and nothing is kept. */
int soft_module_load(const char *text, size_t length, int device, struct soft_module **module,
                     char *log, size_t log_bytes);

/* Gives back a reference; the last one frees the module and its variables. */
void soft_module_release(struct soft_module *module);

/* Fills in which instruction of which source line a report is about. */
void soft_module_describe(const struct soft_module *module, const struct soft_code *code,
                          const struct soft_instruction *instruction, struct soft_report *report);

#endif
