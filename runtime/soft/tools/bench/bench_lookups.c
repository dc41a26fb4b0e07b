/*
 * The speed of instructions that reach memory in a way of their own: reads of textures, and atomics
 * on shared memory. Each kernel repeats one; its result is looked at before it is measured.
 */
#include "bench.h"

#include "api/export.h"
#include "grid/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT_SECONDS 0.15
enum { BLOCKS = 64, THREADS = 256, ROUNDS = 64, AT_ONCE = 4, SIDE = 256, REPEAT_LEAST = 3 };

/* %t is the thread's number in the block, %g in the grid, and %s where its word of shared memory
 * is. Each of 64 rounds executes a body of four instructions. */
static const char head[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 object, .param .u64 out)\n{\n"
    ".reg .b64 %h, %o; .reg .b32 %t, %i, %s, %g, %v, %x; .reg .f32 %f<4>, %n, %u, %y;\n"
    ".reg .pred %p; .shared .align 4 .b8 bins[1024];\n"
    "ld.param.u64 %h, [object]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;\n"
    "mov.u32 %g, %ctaid.x; mad.lo.u32 %g, %g, 256, %t; mov.u32 %s, bins;\n"
    "shl.b32 %x, %t, 2; add.u32 %s, %s, %x; mov.u32 %x, 0; st.shared.u32 [%s], %x;\n"
    "mov.u32 %i, 0; mov.f32 %n, 0f00000000; cvt.rn.f32.u32 %u, %t; mov.u32 %v, %g;\n"
    "bar.sync 0;\nAGAIN:\n";
static const char tail[] = "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 64; @%p bra AGAIN;\n"
                           "mad.wide.u32 %o, %g, 4, %o; bar.sync 0;\n";
static const char put_word[] = "ld.shared.u32 %x, [%s]; st.global.u32 [%o], %x;\nret;\n}\n",
                  put_sum[] = "st.global.f32 [%o], %n;\nret;\n}\n";

/* The middle of a texel, and the same and a quarter; %u and %y are the column and the row. */
#define MIDDLE "0f3f000000"
#define BESIDE "0f3f400000"
#define ROW(number) "mad.lo.u32 %x, %i, 4, " number ";\n"
#define LOOK(number, part)                                                                         \
    ROW(number)                                                                                    \
    "cvt.rn.f32.u32 %y, %x; add.f32 %y, %y, " part ";\n"                                           \
    "add.f32 %f1, %u, " part "; tex.2d.v4.f32.f32 {%f0, _, _, _}, [%h, {%f1, %y}];\n"              \
    "add.f32 %n, %n, %f0;\n"
#define FETCH(number)                                                                              \
    ROW(number)                                                                                    \
    "mad.lo.u32 %x, %x, 256, %t; tex.1d.v4.f32.s32 {%f0, _, _, _}, [%h, {%x}];\n"                  \
    "add.f32 %n, %n, %f0;\n"
#define COUNT_IN_BIN(bits)                                                                         \
    "shr.u32 %x, %v, " bits "; and.b32 %x, %x, 1020; mov.u32 %t, bins; add.u32 %x, %x, %t;\n"      \
    "atom.shared.add.u32 %x, [%x], 1;\n"
#define ADD(number) "atom.shared.add.u32 %x, [%s], " number ";\n"

enum texture { NONE, ROW_OF_MEMORY, POINTS, FILTER };

static const struct lookup {
    const char *name, *body, *end;
    enum texture texture;
} lookups[] = {
    {"atom_distinct", ADD("%i") ADD("1") ADD("%i") ADD("1"), put_word, NONE},
    {"atom_bins",
     "mad.lo.u32 %v, %v, 1664525, 1013904223;\n" COUNT_IN_BIN("22") COUNT_IN_BIN("18")
         COUNT_IN_BIN("14") COUNT_IN_BIN("10"),
     put_word, NONE},
    {"tex_fetch", FETCH("0") FETCH("1") FETCH("2") FETCH("3"), put_sum, ROW_OF_MEMORY},
    {"tex_point", LOOK("0", MIDDLE) LOOK("1", MIDDLE) LOOK("2", MIDDLE) LOOK("3", MIDDLE), put_sum,
     POINTS},
    {"tex_linear", LOOK("0", BESIDE) LOOK("1", BESIDE) LOOK("2", BESIDE) LOOK("3", BESIDE), put_sum,
     FILTER},
};

unsigned bench_lookup_count(void) {
    return sizeof lookups / sizeof lookups[0];
}

const char *bench_lookup_name(unsigned lookup) {
    return lookups[lookup].name;
}

/* ---- textures ---- */

/* A texel of column x and row y is x + 2 y. */
static CUresult bench_lookups_fill(CUdeviceptr memory) {
    static float texels[SIDE * SIDE];
    for (unsigned i = 0; i < SIDE * SIDE; i++) texels[i] = (float)(i % SIDE + 2 * (i / SIDE));
    return cuMemcpyHtoD_v2(memory, texels, sizeof texels);
}

/* Memory of SIDE rows of SIDE texels, as a texture; none is 0. */
static CUresult object_of(enum texture texture, CUdeviceptr memory, CUtexObject *object) {
    CUDA_RESOURCE_DESC row = {.resType = CU_RESOURCE_TYPE_LINEAR};
    CUDA_RESOURCE_DESC rows = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    CUDA_TEXTURE_DESC description = {.addressMode = {1, 1, 1}};
    if (texture == NONE) return CUDA_SUCCESS;
    row.res.linear.devPtr = rows.res.pitch2D.devPtr = memory;
    row.res.linear.format = rows.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    row.res.linear.numChannels = rows.res.pitch2D.numChannels = 1;
    row.res.linear.sizeInBytes = SIDE * SIDE * sizeof(float);
    rows.res.pitch2D.width = rows.res.pitch2D.height = SIDE;
    rows.res.pitch2D.pitchInBytes = SIDE * sizeof(float);
    if (texture == FILTER) description.filterMode = CU_TR_FILTER_MODE_LINEAR;
    return cuTexObjectCreate(object, texture == ROW_OF_MEMORY ? &row : &rows, &description, NULL);
}

/* A quarter farther a filter gives a quarter more, but not beyond the last texel. */
static float right_sum(const struct lookup *lookup, unsigned column) {
    float x = (float)column, sum = 0;
    if (lookup->texture == FILTER && column < SIDE - 1) x += 0.25f;
    for (unsigned row = 0; row < SIDE; row++) {
        float y = (float)row;
        if (lookup->texture == FILTER && row < SIDE - 1) y += 0.25f;
        sum += x + 2 * y;
    }
    return sum;
}

static bool bench_lookups_are_right(const struct lookup *lookup, const uint32_t *words) {
    uint64_t counted = 0;
    bool ok = true;
    for (unsigned i = 0; i < BLOCKS * THREADS; i++) {
        float sum;
        memcpy(&sum, &words[i], sizeof sum);
        counted += words[i];
        if (lookup->texture != NONE) ok &= sum == right_sum(lookup, i % THREADS);
        if (lookup == lookups) ok &= words[i] == ROUNDS * (ROUNDS - 1) + 2 * ROUNDS;
    }
    return ok && (lookup->texture != NONE || lookup == lookups ||
                  counted == (uint64_t)BLOCKS * THREADS * ROUNDS * AT_ONCE);
}

/* ---- measuring ---- */

static CUresult bench_lookups_repeat(CUfunction kernel, void **arguments,
                                     struct bench_figure *figure) {
    CUresult result = CUDA_SUCCESS;
    double all = 0;
    figure->products = (double)BLOCKS * THREADS * ROUNDS * AT_ONCE;
    for (int i = 0; (i < REPEAT_LEAST || all < REPEAT_SECONDS) && result == CUDA_SUCCESS; i++) {
        uint64_t before = soft_launch_executed();
        double begin = bench_now(), cpu_begin = bench_cpu();
        result = cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
        if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
        double ms = (bench_now() - begin) * 1e3, cpu_ms = (bench_cpu() - cpu_begin) * 1e3;
        all += ms / 1e3;
        figure->instructions = soft_launch_executed() - before;
        if (i == 0 || ms < figure->ms) figure->ms = ms;
        if (i == 0 || cpu_ms < figure->cpu_ms) figure->cpu_ms = cpu_ms;
    }
    return result;
}

static CUresult bench_lookups_measure(const struct lookup *lookup, CUmodule module,
                                      CUdeviceptr memory, uint32_t *words,
                                      struct bench_figure *figure) {
    CUdeviceptr out = memory + SIDE * SIDE * sizeof(float);
    CUtexObject object = 0;
    CUfunction kernel = NULL;
    void *arguments[] = {&object, &out};
    CUresult result = bench_lookups_fill(memory);
    if (result == CUDA_SUCCESS) result = object_of(lookup->texture, memory, &object);
    if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&kernel, module, "k");
    if (result == CUDA_SUCCESS) result = bench_lookups_repeat(kernel, arguments, figure);
    if (result == CUDA_SUCCESS) {
        result = cuMemcpyDtoH_v2(words, out, BLOCKS * THREADS * sizeof *words);
    }
    if (object != 0) cuTexObjectDestroy(object);
    return result;
}

bool bench_lookup(unsigned number, struct bench_figure *figure) {
    const struct lookup *lookup = &lookups[number];
    static uint32_t words[BLOCKS * THREADS];
    char text[6000];
    CUmodule module = NULL;
    CUdeviceptr memory = 0;
    snprintf(text, sizeof text, "%s%s%s%s", head, lookup->body, tail, lookup->end);
    CUresult result = cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    if (result == CUDA_SUCCESS) {
        result = cuMemAlloc_v2(&memory, SIDE * SIDE * sizeof(float) + sizeof words);
    }
    if (result == CUDA_SUCCESS) {
        result = bench_lookups_measure(lookup, module, memory, words, figure);
    }
    if (memory != 0) cuMemFree_v2(memory);
    if (module != NULL) cuModuleUnload(module);
    if (result != CUDA_SUCCESS) return bench_failed(lookup->name, (int)result);
    if (bench_lookups_are_right(lookup, words)) return true;
    fprintf(stderr, "bench-soft: %s gives wrong results\n", lookup->name);
    return false;
}
