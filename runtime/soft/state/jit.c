/*
 * Options and logs.
 */
#include "jit.h"

#include "check/checks.h"
#include "base/options.h"
#include "base/soft_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option whose value is only checked: an interpreter has no registers to save and nothing to
 * optimise. */
struct option_range {
    int option;
    uintptr_t low, high;
};

static const struct option_range ranges[] = {
    {CU_JIT_MAX_REGISTERS, 0, UINT32_MAX},
    {CU_JIT_THREADS_PER_BLOCK, 0, UINT32_MAX},
    {CU_JIT_OPTIMIZATION_LEVEL, 0, 4},
    {CU_JIT_TARGET_FROM_CUCONTEXT, 0, UINTPTR_MAX}, /* needs no value */
    {CU_JIT_FALLBACK_STRATEGY, 0, 1},
    {CU_JIT_GENERATE_DEBUG_INFO, 0, 1},
    {CU_JIT_LOG_VERBOSE, 0, 1},
    {CU_JIT_GENERATE_LINE_INFO, 0, 1},
    {CU_JIT_CACHE_MODE, 0, 2},
    {CU_JIT_NEW_SM3X_OPT, 0, UINTPTR_MAX},
    {CU_JIT_FAST_COMPILE, 0, UINTPTR_MAX},
    {CU_JIT_GLOBAL_SYMBOL_COUNT, 0, 0}, /* symbols of the host are not offered */
    {CU_JIT_LTO, 0, 0},                 /* nor is link-time optimisation */
    {CU_JIT_FTZ, 0, 1},
    {CU_JIT_PREC_DIV, 0, 1},
    {CU_JIT_PREC_SQRT, 0, 1},
    {CU_JIT_FMA, 0, 1},
    {CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES, 0, 1},
    {CU_JIT_POSITION_INDEPENDENT_CODE, 0, 1},
    {CU_JIT_MIN_CTA_PER_SM, 0, UINT32_MAX},
    {CU_JIT_MAX_THREADS_PER_BLOCK, 0, UINT32_MAX},
    {CU_JIT_OVERRIDE_DIRECTIVE_VALUES, 0, 1},
    {CU_JIT_SPLIT_COMPILE, 0, UINT32_MAX},
};

static bool is_in_range(int option, uintptr_t value) {
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].option == option) return value >= ranges[i].low && value <= ranges[i].high;
    }
    /* Names without a count are ignored. */
    return option >= CU_JIT_GLOBAL_SYMBOL_NAMES && option < CU_JIT_NUM_OPTIONS;
}

static bool is_target(uintptr_t value) {
    static const uintptr_t targets[] = {30, 32, 35, 37, 50, 52, 53,  60,  61,  62,  70, 72,
                                        75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
    uintptr_t number = value & 0xffff; /* above: 90a, 100f and so on */
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        if (targets[i] == number) return value >> 18 == 0;
    }
    return false;
}

static bool read_option(int option, void **value, struct soft_jit *jit) {
    uintptr_t number = (uintptr_t)*value;
    switch (option) {
    case CU_JIT_INFO_LOG_BUFFER:
        jit->info.buffer = *value;
        return true;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        jit->info.bytes = number;
        jit->info.size = value;
        return true;
    case CU_JIT_ERROR_LOG_BUFFER:
        jit->errors.buffer = *value;
        return true;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        jit->errors.bytes = number;
        jit->errors.size = value;
        return true;
    case CU_JIT_WALL_TIME:
        jit->wall_time = value;
        return true;
    case CU_JIT_LOG_VERBOSE:
        jit->verbose = number != 0;
        break;
    case CU_JIT_TARGET:
        jit->target = (int)(number & 0xffff);
        return is_target(number);
    default:
        break;
    }
    return is_in_range(option, number);
}

CUresult soft_jit_read(unsigned count, const CUjit_option *options, void **values,
                       struct soft_jit *jit) {
    *jit = (struct soft_jit){.begin_ns = soft_now_ns(), .image_bytes = SIZE_MAX};
    if (count > 0 && (options == NULL || values == NULL)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!read_option((int)options[i], &values[i], jit)) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static void jit_answer(const struct soft_jit_log *log, const char *text) {
    size_t length = 0;
    if (log->buffer != NULL && log->bytes > 0) {
        snprintf(log->buffer, log->bytes, "%s", text);
        length = strlen(log->buffer) + (text[0] != '\0');
    }
    if (log->size != NULL) *log->size = (void *)(uintptr_t)length;
}

static void log_time(const struct soft_jit *jit) {
    if (jit->wall_time == NULL) return;
    float ms = (float)((double)(soft_now_ns() - jit->begin_ns) * 1e-6);
    memcpy((void *)jit->wall_time, &ms, sizeof ms);
}

void soft_jit_fail(const struct soft_jit *jit, const char *text) {
    if (!jit->is_part) soft_refusal_add(SOFT_REFUSED_IMAGE, text);
    jit_answer(&jit->info, "");
    jit_answer(&jit->errors, text);
    log_time(jit);
    /* Without a buffer for the log, the program would get only a code. */
    if (jit->errors.buffer != NULL && jit->errors.bytes > 0) {
        soft_log_add(text);
    } else {
        soft_log_print(text);
    }
}

/* The log of a verbose load, per kernel. */
static void log_kernels(const struct soft_jit *jit, const struct soft_module *module) {
    char text[4096] = "";
    size_t used = 0;
    for (const struct soft_function *f = module->functions; f != NULL && jit->verbose;
         f = f->next) {
        if (!soft_module_complete(f)) break;
        int length = snprintf(text + used, sizeof text - used,
                              "ptx: info: kernel '%s' for sm_%u: %u registers, %u bytes of shared "
                              "and %u of local memory\n",
                              f->code->name, f->unit->ptx.target, f->code->registers,
                              f->code->shared_bytes, f->code->local_bytes);
        if (length < 0 || (size_t)length >= sizeof text - used) break;
        used += (size_t)length;
    }
    text[used] = '\0'; /* the line that did not fit is left out */
    jit_answer(&jit->info, text);
    jit_answer(&jit->errors, "");
}

/* Whether every text is for a device like this one, or for the requested target. PTX ISA 9.0,
 * section 11.1.2: what has a suffix does not run on later devices. */
static bool fits_target(const struct soft_module *module, int target, char *text, size_t bytes) {
    for (unsigned u = 0; u < module->unit_count; u++) {
        const struct ptx_module *ptx = &module->units[u].ptx;
        if (module->units[u].stands_in) continue;
        if (ptx_target_fits(ptx->target, ptx->target_suffix, (unsigned)target)) continue;
        if (ptx->target_suffix != 0 && (int)ptx->target <= target) {
            snprintf(text, bytes,
                     "the PTX is for sm_%u%c, which is for %s of compute capability %u.%u alone, "
                     "and the device has %d.%d\n",
                     ptx->target, ptx->target_suffix,
                     ptx->target_suffix == 'f' ? "the family" : "devices", ptx->target / 10,
                     ptx->target % 10, target / 10, target % 10);
            return false;
        }
        snprintf(text, bytes, "the PTX is for sm_%u, and the device has compute capability %d.%d\n",
                 module->units[u].ptx.target, target / 10, target % 10);
        return false;
    }
    return true;
}

CUresult soft_jit_load(const struct soft_source *sources, unsigned count,
                       const struct soft_reach *home, const struct soft_jit *jit,
                       struct soft_module **module) {
    char text[2048] = "";
    int capability = soft_options()->compute_capability;
    int target = jit->target != 0 ? jit->target : capability;
    if (target > capability) {
        soft_jit_fail(jit, "the requested target is newer than this device's compute capability\n");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    const struct soft_load_log log = {.text = text, .bytes = sizeof text};
    CUresult result = (CUresult)soft_module_load(sources, count, home, module, &log);
    if (result == CUDA_SUCCESS && !fits_target(*module, target, text, sizeof text)) {
        soft_module_release(*module);
        result = CUDA_ERROR_INVALID_PTX;
    }
    if (result != CUDA_SUCCESS) {
        soft_jit_fail(jit, text);
        return result;
    }
    (*module)->hook = soft_checks_hook;
    log_kernels(jit, *module);
    log_time(jit);
    return CUDA_SUCCESS;
}
