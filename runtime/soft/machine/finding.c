/*
 * Failures, which end a launch with a report, and findings, which checks report. The launch
 * continues after a finding unless it is fatal.
 */
#include "finding.h"

#include "tollens/cuda_abi.h"
#include "frame.h"
#include "lower/loaded_module.h"
#include "base/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void soft_launch_describe(struct soft_warp *warp, const struct soft_instruction *instruction,
                          uint32_t lanes, struct soft_report *report) {
    const struct soft_launch *launch = warp->cta->launch;
    uint32_t lane = lanes != 0 ? (uint32_t)__builtin_ctz(lanes) : 0;
    for (int i = 0; i < 3; i++) report->block[i] = warp->cta->index[i];
    report->thread[0] = soft_special_at(warp, PTX_SPECIAL_tid_x, lane);
    report->thread[1] = soft_special_at(warp, PTX_SPECIAL_tid_y, lane);
    report->thread[2] = soft_special_at(warp, PTX_SPECIAL_tid_z, lane);
    report->lanes = (uint32_t)__builtin_popcount(lanes);
    snprintf(report->kernel, sizeof report->kernel, "%s", launch->code->name);
    const struct soft_code *code = warp->split->frame->code;
    snprintf(report->function, sizeof report->function, "%s",
             code == launch->code ? "" : code->name);
    soft_module_describe(launch->module, code, instruction, report);
}

const struct soft_instruction *soft_launch_fail(struct soft_warp *warp,
                                                const struct soft_instruction *instruction,
                                                int result, uint32_t lanes, uint64_t address,
                                                const char *format, ...) {
    struct soft_launch *launch = warp->cta->launch;
    struct soft_report report = {
        .result = result, .kind = soft_report_kind(result), .address = address};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report.detail, sizeof report.detail, format, arguments);
    va_end(arguments);
    soft_launch_describe(warp, instruction, lanes, &report);
    pthread_mutex_lock(&launch->lock);
    if (!atomic_load(&launch->failed)) {
        launch->report = report;
        atomic_store(&launch->failed, true);
    }
    pthread_mutex_unlock(&launch->lock);
    warp->stop = SOFT_STOP_FAULT;
    return NULL;
}

/* An instruction that reads unwritten memory does so in every thread and every block; the first
 * report is enough. */
static bool finding_is_first(struct soft_launch *launch, const struct soft_instruction *instruction,
                             const struct soft_finding *finding) {
    const struct soft_instruction *beside = finding->beside;
    bool first = true;
    pthread_mutex_lock(&launch->lock);
    for (unsigned i = 0; i < launch->noted_count; i++) {
        const struct soft_noted *noted = &launch->noted[i];
        bool same = (noted->instruction == instruction && noted->beside == beside) ||
                    (noted->instruction == beside && noted->beside == instruction);
        first &= !same || noted->kind != finding->kind;
    }
    first &= launch->noted_count < SOFT_NOTES_MAX;
    if (first) {
        launch->noted[launch->noted_count++] =
            (struct soft_noted){instruction, beside, finding->kind};
    }
    pthread_mutex_unlock(&launch->lock);
    return first;
}

/* The warp continues to the end of its turn; its effects no longer matter. */
static void end_launch(struct soft_launch *launch, struct soft_report *report) {
    report->result = CUDA_ERROR_LAUNCH_FAILED;
    pthread_mutex_lock(&launch->lock);
    if (!atomic_load(&launch->failed)) {
        launch->report = *report;
        atomic_store(&launch->failed, true);
    }
    pthread_mutex_unlock(&launch->lock);
}

static void finding_find(struct soft_warp *warp, const struct soft_instruction *instruction,
                         const struct soft_finding *finding, const char *format,
                         va_list arguments) {
    struct soft_launch *launch = warp->cta->launch;
    if (!finding_is_first(launch, instruction, finding)) return;
    struct soft_report report = {
        .kind = finding->kind, .address = finding->address, .minor = finding->minor};
    vsnprintf(report.detail, sizeof report.detail, format, arguments);
    soft_launch_describe(warp, instruction, finding->lanes, &report);
    report.has_other = finding->other != NULL;
    if (report.has_other) report.other = *finding->other;
    if (soft_options()->check_fatal && !finding->minor) {
        end_launch(launch, &report);
    } else {
        soft_report_print(&report);
    }
}

void soft_launch_find(struct soft_warp *warp, const struct soft_instruction *instruction,
                      const struct soft_finding *finding, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    finding_find(warp, instruction, finding, format, arguments);
    va_end(arguments);
}

bool soft_launch_is_noted(struct soft_launch *launch, const struct soft_instruction *instruction,
                          const char *kind) {
    bool is_noted = false;
    pthread_mutex_lock(&launch->lock);
    for (unsigned i = 0; i < launch->noted_count; i++) {
        const struct soft_noted *noted = &launch->noted[i];
        is_noted |= noted->instruction == instruction && strcmp(noted->kind, kind) == 0;
    }
    pthread_mutex_unlock(&launch->lock);
    return is_noted;
}

void soft_launch_note(struct soft_warp *warp, const struct soft_instruction *instruction,
                      const char *kind, uint32_t lanes, uint64_t address, const char *format, ...) {
    struct soft_finding finding = {.kind = kind, .lanes = lanes, .address = address};
    va_list arguments;
    va_start(arguments, format);
    finding_find(warp, instruction, &finding, format, arguments);
    va_end(arguments);
}
