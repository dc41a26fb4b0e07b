/*
 * Reading the books, and judging rounds of lives.
 */
#include "left_books.h"

#include "order_faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* What may be left. A GPU's driver takes device memory in steps of 2 MiB, and keeps some of it; the
 * soft device is exact. A driver's caches may grow by some bytes of host memory with each life; a
 * lost object takes a hundred or more. */
enum {
    ROUNDS = 3,
    ROUNDS_MOST = 10,
    ROUND_NOISE_BYTES = 4096,
    SOFT_NOISE_BYTES = 8,
    GPU_NOISE_BYTES = 24
};
static const uint64_t gpu_left_bytes = 16 * MIB, mapped_left_bytes = MIB / 4;

static const char image[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill(.param .u64 at, .param .u32 count, .param .u32 value) {\n"
    "  .reg .u64 %a<2>; .reg .u32 %r<6>; .reg .pred %p;\n"
    "  ld.param.u64 %a0, [at];\n  ld.param.u32 %r0, [count];\n  ld.param.u32 %r1, [value];\n"
    "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n  mov.u32 %r4, %tid.x;\n"
    "  mad.lo.u32 %r2, %r2, %r3, %r4;\n  setp.ge.u32 %p, %r2, %r0;\n  @%p ret;\n"
    "  mul.wide.u32 %a1, %r2, 4;\n  add.u64 %a1, %a0, %a1;\n  st.global.u32 [%a1], %r1;\n"
    "  ret;\n}\n";

/* ---- the books ------------------------------------------------------------------------------- */

/* The entries of a folder of /proc/self, without this reading's own. 0: it cannot be read. */
static unsigned left_count_entries(const char *path) {
    unsigned count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL) return 0;
    for (const struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        count += e->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

static uint64_t left_read_mapped(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool left_books_read(struct hyp_attack *attack, struct left_books *books) {
    size_t free_bytes = 0, total = 0;
    struct tol_health health;
    const struct tol_driver_table *raw = attack->raw;
    if (!HYP_OK(attack, tol_context_bind(attack->context)) ||
        !HYP_OK(attack, tol_health_check(attack->context, NULL, &health)) ||
        !HYP_CHECK(attack, raw->cuCtxSynchronize() == CUDA_SUCCESS,
                   "the work of the context has failed") ||
        !HYP_CHECK(attack, raw->cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS,
                   "the driver does not say how much memory is free")) {
        return false;
    }
    /* Of glibc 2.33 and newer. */
    struct mallinfo2 (*own)(void) = NULL, info = {.uordblks = 0};
    void *found = dlsym(RTLD_DEFAULT, "mallinfo2");
    memcpy(&own, &found, sizeof own);
    if (own != NULL) info = own();
    *books = (struct left_books){.device = total - free_bytes,
                                 .process = health.device.process_bytes,
                                 .heap = info.uordblks + info.hblkhd,
                                 .mapped = left_read_mapped(),
                                 .files = left_count_entries("/proc/self/fd"),
                                 .threads = left_count_entries("/proc/self/task")};
    return HYP_CHECK(attack, books->files > 0 && books->threads > 0 && books->mapped > 0,
                     "the books of the process in /proc/self cannot be read");
}

/* ---- lives ----------------------------------------------------------------------------------- */

bool left_lives_begin(struct hyp_attack *attack, struct left_lives *lives) {
    *lives = (struct left_lives){.attack = attack};
    order_fault_plant(attack, attack->raw);
    return HYP_OK(attack, tol_stream_create(attack->context, NULL, &lives->stream)) &&
           HYP_OK(attack, tol_module_load(attack->context, image, sizeof image - 1, NULL,
                                          &lives->module)) &&
           HYP_OK(attack, tol_module_kernel(lives->module, "fill", &lives->fill)) &&
           HYP_OK(attack, tol_buffer_create(attack->context, 1024, 4, &lives->buffer));
}

void left_lives_end(struct left_lives *lives) {
    tol_buffer_destroy(lives->buffer);
    tol_module_destroy(lives->module);
    tol_stream_destroy(lives->stream);
}

/* What the rounds left: the least growth of a round, and that of all of them. */
struct left_growth {
    long long device_least, heap_least, mapped_least, device, process, files, threads;
};

static void left_note(struct left_growth *growth, const struct left_books *first,
                      const struct left_books *before, const struct left_books *now) {
#define LEAST(least, field)                                                                        \
    if ((long long)(now->field - before->field) < growth->least) {                                 \
        growth->least = (long long)(now->field - before->field);                                   \
    }
    LEAST(device_least, device)
    LEAST(heap_least, heap)
    LEAST(mapped_least, mapped)
    growth->device = (long long)(now->device - first->device);
    growth->process = first->process >= 0 ? now->process - first->process : 0;
    growth->files = (long long)now->files - (long long)first->files;
    growth->threads = (long long)now->threads - (long long)first->threads;
}

/* Threads that were joined may still be in the kernel's list for a moment. */
static bool left_settle(struct hyp_attack *attack, const struct left_books *first,
                        struct left_books *now) {
    const struct timespec pause = {.tv_nsec = 5000000};
    bool ok = left_books_read(attack, now);
    for (int i = 0; ok && i < 200 && now->threads > first->threads; i++) {
        nanosleep(&pause, NULL);
        ok = left_books_read(attack, now);
    }
    return ok;
}

static bool left_round(struct left_lives *lives, unsigned count, left_life *life) {
    for (unsigned i = 0; i < count; i++) {
        if (!life(lives)) return false;
    }
    return true;
}

void left_lives_run(struct left_lives *lives, const char *what, unsigned count, left_life *life) {
    struct hyp_attack *attack = lives->attack;
    struct left_growth growth = {
        .device_least = INT64_MAX, .heap_least = INT64_MAX, .mapped_least = INT64_MAX};
    struct left_books first, before, now;
    const bool is_soft = attack->kind == HYP_DEVICE_SOFT;
    if (attack->session.full) count *= 4;
    const long long noise =
        ROUND_NOISE_BYTES + (long long)count * (is_soft ? SOFT_NOISE_BYTES : GPU_NOISE_BYTES);
    unsigned rounds = 0;
    /* The first lives fill caches. */
    if (!left_round(lives, count, life) || !left_books_read(attack, &first)) return;
    now = first;
    /* More rounds than a few only while something has grown in each. */
    while (rounds < ROUNDS ||
           (rounds < ROUNDS_MOST && (growth.heap_least >= noise || growth.device_least > 0 ||
                                     growth.mapped_least >= (long long)mapped_left_bytes))) {
        before = now;
        if (!left_round(lives, count, life) || !left_settle(attack, &first, &now)) return;
        left_note(&growth, &first, &before, &now);
        rounds++;
        hyp_attack_progress(attack, (double)rounds / ROUNDS_MOST);
    }
    HYP_CHECK(attack, growth.device <= (is_soft ? 0 : (long long)gpu_left_bytes),
              "%s: %lld bytes are left on the device after %u lives", what, growth.device,
              rounds * count);
    HYP_CHECK(attack, growth.process <= (long long)gpu_left_bytes,
              "%s: by NVML, the process has %lld more bytes of the device after %u lives", what,
              growth.process, rounds * count);
    HYP_CHECK(attack, growth.device_least <= 0,
              "%s: at least %lld bytes are left on the device after each %u lives", what,
              growth.device_least, count);
    HYP_CHECK(attack, growth.files <= 0, "%s: %lld file descriptors are left after %u lives", what,
              growth.files, rounds * count);
    HYP_CHECK(attack, growth.threads <= 0, "%s: %lld threads are left after %u lives", what,
              growth.threads, rounds * count);
    HYP_CHECK(attack, growth.heap_least < noise,
              "%s: at least %lld bytes of host memory are left after each %u lives", what,
              growth.heap_least, count);
    HYP_CHECK(attack, growth.mapped_least < (long long)mapped_left_bytes,
              "%s: at least %lld bytes of addresses are left mapped after each %u lives", what,
              growth.mapped_least, count);
}
