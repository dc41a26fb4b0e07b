/*
 * ptx-walk: passes every single precision number to the approximate functions of a driver, and
 * prints the largest errors.
 *
 *   ptx-walk [--driver PATH] [--function NAME] [--step N]
 *
 * The true value is libm's in double precision. Every function has the bounds of the PTX ISA for
 * parts of the number line; one line is printed per part. --step 1000 tests every thousandth
 * number. Exit code: 0; 1 where a bound is broken; 2 for an error. Source: PTX ISA 9.0, section
 * 9.7.3.
 */
#include "table_device.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A part of the number line, by magnitude, and its maximum error. */
struct part {
    const char *name;
    double low, high; /* of |x|: low < |x| <= high */
    enum table_bound_kind bound;
    double size; /* units of the last place; or the error itself */
};

struct function {
    const char *name, *spelling;
    double (*true_value)(double x);
    bool flushes;
    struct part parts[3];
};

static double ptx_walk_reciprocal(double x) {
    return 1 / x;
}
static double reciprocal_root(double x) {
    return 1 / sqrt(x);
}

#define WHOLE_LINE(bound, size)                                                                    \
    {                                                                                              \
        {"all", -1, (double)INFINITY, bound, size}, {                                              \
            NULL, 0, 0, TABLE_EXACT, 0                                                             \
        }                                                                                          \
    }
#define TURN 6.283185307179586
#define SINE                                                                                       \
    {                                                                                              \
        {"|x| <= 2 pi", -1, TURN, TABLE_ABSOLUTE, 0x1.6a09ep-21},             /* 2^-20.5 */        \
            {"|x| <= 100 pi", TURN, 50 * TURN, TABLE_ABSOLUTE, 0x1.3b2cp-15}, /* 2^-14.7 */        \
        {                                                                                          \
            NULL, 0, 0, TABLE_EXACT, 0                                                             \
        }                                                                                          \
    }
#define LOGARITHM                                                                                  \
    {                                                                                              \
        {"1/2 < x <= 2", 0.5, 2, TABLE_ABSOLUTE, 0x1p-22},                                         \
            {"x <= 1/2", -1, 0.5, TABLE_RELATIVE, 0x1p-22}, {                                      \
            "x > 2", 2, (double)INFINITY, TABLE_RELATIVE, 0x1p-22                                  \
        }                                                                                          \
    }

static const struct function functions[] = {
    {"rcp", "rcp.approx.f32", ptx_walk_reciprocal, false, WHOLE_LINE(TABLE_ULP, 1)},
    {"rcp.ftz", "rcp.approx.ftz.f32", ptx_walk_reciprocal, true, WHOLE_LINE(TABLE_ULP, 1)},
    {"sqrt", "sqrt.approx.f32", sqrt, false, WHOLE_LINE(TABLE_RELATIVE, 0x1p-23)},
    {"sqrt.ftz", "sqrt.approx.ftz.f32", sqrt, true, WHOLE_LINE(TABLE_RELATIVE, 0x1p-23)},
    {"rsqrt", "rsqrt.approx.f32", reciprocal_root, false,
     WHOLE_LINE(TABLE_RELATIVE, 0x1.125p-23)}, /* 2^-22.9 */
    {"rsqrt.ftz", "rsqrt.approx.ftz.f32", reciprocal_root, true,
     WHOLE_LINE(TABLE_RELATIVE, 0x1.125p-23)},
    {"sin", "sin.approx.f32", sin, false, SINE},
    {"sin.ftz", "sin.approx.ftz.f32", sin, true, SINE},
    {"cos", "cos.approx.f32", cos, false, SINE},
    {"cos.ftz", "cos.approx.ftz.f32", cos, true, SINE},
    {"lg2", "lg2.approx.f32", log2, false, LOGARITHM},
    {"lg2.ftz", "lg2.approx.ftz.f32", log2, true, LOGARITHM},
    {"ex2", "ex2.approx.f32", exp2, false, WHOLE_LINE(TABLE_ULP, 2)},
    {"ex2.ftz", "ex2.approx.ftz.f32", exp2, true, WHOLE_LINE(TABLE_ULP, 2)},
    {"tanh", "tanh.approx.f32", tanh, false, WHOLE_LINE(TABLE_RELATIVE, 0x1p-11)},
};

enum { CHUNK = 1 << 22, THREADS_MAX = 64 };

/* The worst of a part, by each measure, and where. */
struct worst {
    double ulp, absolute, relative;
    uint32_t ulp_at, absolute_at, relative_at;
    uint64_t count, broken; /* results looked at; those past the bound, or not what they must be */
    uint32_t broken_at;
};

struct job {
    const struct function *function;
    const uint32_t *results;
    uint32_t first, begin, end, step;
    struct worst worst[3];
};

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double ptx_walk_flushed(double x) {
    return fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}

static void ptx_walk_judge(const struct part *part, struct worst *worst, uint32_t at, double y,
                           double value) {
    double error = fabs(y - value), size = fabs(value);
    int exponent = size > 0x1p-126 ? ilogb(size) : -126;
    double ulp = error / ldexp(1, exponent - 23), relative = size > 0 ? error / size : error;
    /* Rounding a subnormal result is half its last place, whatever the bound says. */
    bool subnormal = size < 0x1p-126 && error <= 0x1p-150;
    double measure = part->bound == TABLE_ULP        ? ulp
                     : part->bound == TABLE_ABSOLUTE ? error
                                                     : relative;
    if (ulp > worst->ulp) worst->ulp = ulp, worst->ulp_at = at;
    if (error > worst->absolute) worst->absolute = error, worst->absolute_at = at;
    if (relative > worst->relative && !subnormal) {
        worst->relative = relative, worst->relative_at = at;
    }
    if (!(measure <= part->size) && !subnormal) worst->broken++, worst->broken_at = at;
}

static void ptx_walk_look(struct job *job, uint32_t at, uint32_t bits) {
    const struct function *function = job->function;
    double x = (double)float_of(at), y = (double)float_of(bits);
    if (function->flushes) x = ptx_walk_flushed(x);
    double value = function->true_value(x), size = fabs(x);
    for (int i = 0; i < 3 && function->parts[i].name != NULL; i++) {
        const struct part *part = &function->parts[i];
        struct worst *worst = &job->worst[i];
        if (!(size > part->low && size <= part->high) && !(isnan(x) && i == 0)) continue;
        worst->count++;
        /* Some results have no error: NaN, infinity, what is flushed, and what overflows. */
        if (isnan(value) ? bits == 0x7fffffff : isinf(value) && y == value) continue;
        if (fabs(value) > 0x1.fffffcp127 && isinf(y) && signbit(y) == signbit(value)) continue;
        if (function->flushes && fabs(value) < 0x1.00001p-126 && y == 0) continue;
        ptx_walk_judge(part, worst, at, y, value);
    }
}

static void *ptx_walk_compare(void *context) {
    struct job *job = context;
    for (uint32_t i = job->begin; i < job->end; i++) {
        ptx_walk_look(job, job->first + i * job->step, job->results[i]);
    }
    return NULL;
}

static void ptx_walk_merge(struct worst *all, const struct worst *one) {
    all->count += one->count;
    all->broken += one->broken;
    if (one->broken > 0) all->broken_at = one->broken_at;
    if (one->ulp > all->ulp) all->ulp = one->ulp, all->ulp_at = one->ulp_at;
    if (one->absolute > all->absolute) {
        all->absolute = one->absolute, all->absolute_at = one->absolute_at;
    }
    if (one->relative > all->relative) {
        all->relative = one->relative, all->relative_at = one->relative_at;
    }
}

static void compare_chunk(const struct function *function, const uint32_t *results, uint32_t first,
                          uint32_t count, uint32_t step, struct worst *worst) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = processors < 1             ? 1
                       : processors > THREADS_MAX ? THREADS_MAX
                                                  : (uint32_t)processors;
    static struct job jobs[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    for (uint32_t t = 0; t < threads; t++) {
        jobs[t] = (struct job){.function = function,
                               .results = results,
                               .first = first,
                               .begin = (uint32_t)((uint64_t)count * t / threads),
                               .end = (uint32_t)((uint64_t)count * (t + 1) / threads),
                               .step = step};
        if (pthread_create(&thread[t], NULL, ptx_walk_compare, &jobs[t]) != 0) abort();
    }
    for (uint32_t t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
        for (int i = 0; i < 3; i++) ptx_walk_merge(&worst[i], &jobs[t].worst[i]);
    }
}

static CUresult ptx_walk_load(struct table_device *device, const struct function *function,
                              CUmodule *module, CUfunction *kernel) {
    char text[2048];
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_75\n.address_size 64\n"
             ".visible .entry walk(.param .u64 results, .param .u32 first, .param .u32 step)\n{\n"
             "    .reg .b32 %%i, %%n, %%x, %%y;\n    .reg .b64 %%to;\n"
             "    mov.u32 %%i, %%ctaid.x;\n    mov.u32 %%n, %%ntid.x;\n    mov.u32 %%x, %%tid.x;\n"
             "    mad.lo.u32 %%i, %%i, %%n, %%x;\n"
             "    ld.param.u32 %%x, [first];\n    ld.param.u32 %%n, [step];\n"
             "    mad.lo.u32 %%x, %%i, %%n, %%x;\n    %s %%y, %%x;\n"
             "    ld.param.u64 %%to, [results];\n    cvta.to.global.u64 %%to, %%to;\n"
             "    mad.wide.u32 %%to, %%i, 4, %%to;\n    st.global.b32 [%%to], %%y;\n    ret;\n}\n",
             function->spelling);
    CUresult result = device->cuModuleLoadData(module, text);
    return result != CUDA_SUCCESS ? result : device->cuModuleGetFunction(kernel, *module, "walk");
}

/* Runs a function over the line. false: the driver failed. */
static bool ptx_walk_walk(struct table_device *device, const struct function *function,
                          uint32_t step, uint32_t *host, struct worst *worst) {
    CUmodule module = NULL;
    CUfunction kernel = NULL;
    CUdeviceptr results = 0;
    if (ptx_walk_load(device, function, &module, &kernel) != CUDA_SUCCESS ||
        device->cuMemAlloc_v2(&results, CHUNK * sizeof host[0]) != CUDA_SUCCESS) {
        return false;
    }
    bool ok = true;
    uint64_t numbers = (1ull << 32) / step;
    for (uint64_t done = 0; done < numbers && ok; done += CHUNK) {
        uint32_t first = (uint32_t)(done * step);
        void *parameters[] = {&results, &first, &step};
        ok = device->cuLaunchKernel(kernel, CHUNK / 256, 1, 1, 256, 1, 1, 0, NULL, parameters,
                                    NULL) == CUDA_SUCCESS &&
             device->cuMemcpyDtoH_v2(host, results, CHUNK * sizeof host[0]) == CUDA_SUCCESS;
        uint64_t left = numbers - done;
        uint32_t count = left < CHUNK ? (uint32_t)left : CHUNK;
        if (ok) compare_chunk(function, host, first, count, step, worst);
    }
    device->cuMemFree_v2(results);
    device->cuModuleUnload(module);
    return ok;
}

static bool ptx_walk_print(const struct function *function, const struct worst *worst) {
    bool kept = true;
    for (int i = 0; i < 3 && function->parts[i].name != NULL; i++) {
        const struct part *part = &function->parts[i];
        static const char *const units[] = {"", "ulp", "absolute", "relative"};
        printf("%-10s %-14s %11llu numbers   worst: %.4f ulp at 0x%08x, 2^%.2f absolute at "
               "0x%08x, 2^%.2f relative at 0x%08x   bound: ",
               function->name, part->name, (unsigned long long)worst[i].count, worst[i].ulp,
               worst[i].ulp_at, log2(worst[i].absolute), worst[i].absolute_at,
               log2(worst[i].relative), worst[i].relative_at);
        if (part->bound == TABLE_ULP) {
            printf("%g ulp", part->size);
        } else {
            printf("2^%.1f %s", log2(part->size), units[part->bound]);
        }
        if (worst[i].broken == 0) {
            printf(", kept\n");
        } else {
            printf(", BROKEN %llu times, last at 0x%08x\n", (unsigned long long)worst[i].broken,
                   worst[i].broken_at);
        }
        kept &= worst[i].broken == 0;
    }
    fflush(stdout);
    return kept;
}

int main(int count, char **arguments) {
    const char *driver = "libcuda.so.1", *only = NULL;
    uint32_t step = 1;
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(arguments[i], "--driver") == 0) driver = arguments[i + 1];
        if (strcmp(arguments[i], "--function") == 0) only = arguments[i + 1];
        if (strcmp(arguments[i], "--step") == 0)
            step = (uint32_t)strtoul(arguments[i + 1], NULL, 0);
    }
    if (count % 2 == 0 || step == 0) {
        fprintf(stderr, "usage: ptx-walk [--driver PATH] [--function NAME] [--step N]\n");
        return 2;
    }
    struct table_device device;
    uint32_t *host = malloc(CHUNK * sizeof host[0]);
    if (host == NULL || !table_device_open(&device, driver)) {
        fprintf(stderr, "ptx-walk: %s\n", host == NULL ? "no memory" : device.message);
        free(host);
        return 2;
    }
    printf("%s, driver %d, compute capability %d\n", device.name, device.version,
           device.capability);
    bool kept = true;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        struct worst worst[3] = {{0}};
        if (only != NULL && strcmp(functions[i].name, only) != 0) continue;
        if (!ptx_walk_walk(&device, &functions[i], step, host, worst)) {
            fprintf(stderr, "ptx-walk: %s: the driver failed\n", functions[i].spelling);
            free(host);
            return 2;
        }
        kept &= ptx_walk_print(&functions[i], worst);
    }
    table_device_close(&device);
    free(host);
    return kept ? 0 : 1;
}
