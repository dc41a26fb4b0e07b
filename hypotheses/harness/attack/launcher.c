/*
 * Single launches. Each side builds its argument list for every launch, as a program does.
 */
#include "launcher.h"

#include "measure/ticks.h"
#include "harness/sabotage.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* What makes tick_4 and tick_16 add one. */
static const unsigned FIRST = 2;
static const unsigned long long SECOND = 3ull << 32;
static const float THIRD = 4;
#define SIXTEEN(count) count, 106u, 14u, 13u, 12u, 11u, 10u, 9u, 8u, 7u, 6u, 5u, 4u, 3u, 2u, 1u

bool hyp_launcher_begin(struct hyp_attack *attack, unsigned arguments, bool synchronizes,
                        struct hyp_launcher *launcher) {
    char name[16];
    unsigned zero = 0;
    memset(launcher, 0, sizeof *launcher);
    launcher->attack = attack;
    launcher->arguments = arguments;
    launcher->synchronizes = synchronizes;
    launcher->ticks = hyp_ticks_ready();
    launcher->extra_share =
        hyp_sabotage_amount(attack->session.sabotage, "launch_extra_percent") / 100;
    snprintf(name, sizeof name, "tick_%u", arguments);
    launcher->kernel = hyp_attack_kernel(attack, name);
    if (launcher->kernel == NULL ||
        !HYP_OK(attack, tol_stream_create(attack->context, NULL, &launcher->stream)) ||
        !HYP_OK(attack, tol_buffer_create(attack->context, 1, sizeof zero, &launcher->count)) ||
        !HYP_OK(attack, tol_buffer_write(launcher->count, &zero, sizeof zero))) {
        return false;
    }
    launcher->function = tol_kernel_handle(launcher->kernel);
    launcher->handle = tol_stream_handle(launcher->stream);
    launcher->address = tol_buffer_address(launcher->count);
    return true;
}

/* One launch as a C program makes it. */
static inline CUresult launcher_launch_raw(const struct hyp_launcher *l, void **values) {
    CUresult result =
        l->attack->raw->cuLaunchKernel(l->function, 1, 1, 1, 1, 1, 1, 0, l->handle, values, NULL);
    if (result == CUDA_SUCCESS && l->synchronizes) {
        result = l->attack->raw->cuStreamSynchronize(l->handle);
    }
    return result;
}

static bool launch_baseline(struct hyp_launcher *l, unsigned calls) {
    CUresult result = CUDA_SUCCESS;
    CUdeviceptr count = l->address;
    if (l->other != NULL) {
        return l->other((int)l->arguments, count, l->handle, calls, l->synchronizes) == 0;
    }
    for (unsigned i = 0; i < calls && result == CUDA_SUCCESS; i++) {
        if (l->arguments == 1) {
            void *values[] = {&count};
            result = launcher_launch_raw(l, values);
        } else if (l->arguments == 4) {
            unsigned first = FIRST;
            unsigned long long second = SECOND;
            float third = THIRD;
            void *values[] = {&count, &first, &second, &third};
            result = launcher_launch_raw(l, values);
        } else {
            unsigned a[] = {106, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
            void *values[] = {&count, &a[0], &a[1], &a[2],  &a[3],  &a[4],  &a[5],  &a[6],
                              &a[7],  &a[8], &a[9], &a[10], &a[11], &a[12], &a[13], &a[14]};
            result = launcher_launch_raw(l, values);
        }
    }
    return result == CUDA_SUCCESS;
}

/* One launch through the runtime. */
static inline tol_status launcher_launch_ours(const struct hyp_launcher *l,
                                              struct tol_arguments arguments) {
    const struct tol_launch_shape shape = {1, 1, 1, 1, 1, 1, 0};
    tol_status status = tol_launch(l->stream, l->kernel, shape, arguments);
    if (status == TOL_OK && l->synchronizes) status = tol_stream_synchronize(l->stream);
    return status;
}

static bool launch_subject(struct hyp_launcher *l, unsigned calls) {
    tol_status status = TOL_OK;
    CUdeviceptr count = l->address;
    for (unsigned i = 0; i < calls && status == TOL_OK; i++) {
        if (l->arguments == 1) {
            status = launcher_launch_ours(l, TOL_ARGUMENTS(count));
        } else if (l->arguments == 4) {
            status = launcher_launch_ours(l, TOL_ARGUMENTS(count, FIRST, SECOND, THIRD));
        } else {
            status = launcher_launch_ours(l, TOL_ARGUMENTS(SIXTEEN(count)));
        }
    }
    return status == TOL_OK;
}

/* The number of launches that a saboteur adds to a batch; fractions carry over to the next one. */
static unsigned launcher_extra(struct hyp_launcher *l, unsigned calls) {
    l->extra_owed += calls * l->extra_share;
    unsigned now = (unsigned)l->extra_owed;
    l->extra_owed -= now;
    return now;
}

static void report_failure(struct hyp_launcher *l, enum hyp_side side) {
    HYP_CHECK(l->attack, false, "a launch %s failed: %.700s",
              side == HYP_SUBJECT ? "through the runtime"
              : l->other != NULL  ? "by kernel<<<...>>>"
                                  : "by the driver",
              side == HYP_SUBJECT ? tol_message() : "");
}

double hyp_launcher_call(void *user, enum hyp_side side) {
    struct hyp_launcher *l = user;
    const bool ours = side == HYP_SUBJECT;
    const unsigned launches = 1 + (ours ? launcher_extra(l, 1) : 0);
    uint64_t begin = hyp_ticks_begin(l->ticks);
    bool ok = ours ? launch_subject(l, launches) : launch_baseline(l, launches);
    uint64_t end = hyp_ticks_end(l->ticks);
    l->made += launches;
    if (!ok) report_failure(l, side);
    return ok ? hyp_ticks_ns(l->ticks, begin, end) : -1;
}

bool hyp_launcher_settle(void *user) {
    struct hyp_launcher *l = user;
    bool ok = l->attack->raw->cuStreamSynchronize(l->handle) == CUDA_SUCCESS;
    if (l->other != NULL) ok = l->cxx_error() == 0 && ok;
    if (!ok) HYP_CHECK(l->attack, false, "waiting for the launches failed");
    return ok;
}

bool hyp_launcher_find_cxx(struct hyp_launcher *l) {
    static const char name[] = "libtollens-launch-cxx.so";
    static const char *const folders[] = {"lib/", ""};
    char path[4300];
    void *library = NULL;
    for (size_t i = 0; i < 2 && library == NULL; i++) {
        snprintf(path, sizeof path, "%s/%s%s", hyp_session_program_folder(), folders[i], name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    hyp_launch_other launch = NULL;
    hyp_launch_other_error last_error = NULL;
    if (library != NULL) {
        *(void **)&launch = dlsym(library, "hyp_launch_cxx");
        *(void **)&last_error = dlsym(library, "hyp_launch_cxx_error");
    }
    if (launch == NULL || last_error == NULL) {
        hyp_attack_note(l->attack,
                        "only launches in C were judged: for those in C++ %s was not found%s", name,
                        library != NULL ? " as this program needs it" : "");
        return false;
    }
    int error = launch((int)l->arguments, l->address, l->handle, 1, 1);
    if (error == 0) error = last_error();
    if (error != 0) {
        hyp_attack_note(l->attack,
                        "only launches in C were judged: in C++ the CUDA runtime returned error %d",
                        error);
        return false;
    }
    l->made++;
    l->cxx = launch;
    l->cxx_error = last_error;
    return true;
}

void hyp_launcher_record(struct hyp_launcher *l, const char *name, unsigned calls) {
    enum { TURN = 10 };
    char series[64];
    struct tol_hdr *hdr[2];
    for (int side = HYP_BASELINE; side <= HYP_SUBJECT; side++) {
        snprintf(series, sizeof series, "%.40s_%s", name,
                 side == HYP_BASELINE ? "driver" : "runtime");
        hdr[side] = hyp_attack_series(l->attack, series);
    }
    for (unsigned done = 0; done < calls; done += TURN) {
        for (int side = HYP_BASELINE; side <= HYP_SUBJECT; side++) {
            for (unsigned i = 0; i < TURN; i++) {
                double ns = hyp_launcher_call(l, (enum hyp_side)side);
                if (!hyp_launcher_settle(l) || ns < 0) return;
                tol_hdr_record(hdr[side], (int64_t)ns);
            }
        }
    }
}

void hyp_launcher_end(struct hyp_launcher *l) {
    unsigned count = 0;
    if (l->count != NULL && l->made > 0 &&
        HYP_OK(l->attack, tol_buffer_read(l->count, &count, sizeof count))) {
        HYP_CHECK(l->attack, count == (unsigned)l->made,
                  "%llu launches with %u arguments were made, and the kernel counted %u",
                  (unsigned long long)l->made, l->arguments, count);
    }
    tol_buffer_destroy(l->count);
    tol_stream_destroy(l->stream);
}
