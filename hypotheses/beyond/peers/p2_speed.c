/*
 * The attacks on P2: copies between devices by the runtime beside the driver's own, pair by pair.
 * The numbers of each pair are recorded, and reports draw them as heat maps.
 */
#include "peer_stage.h"

#include "bench/peer_speed.h"
#include "links.h"

#include <stdio.h>

static void record_side(struct peer_stage *stage, const char *name,
                        const double (*side)[PEER_SPEED_DEVICES]) {
    for (size_t i = 0; i < stage->count * stage->count; i++) {
        const size_t from = i / stage->count, to = i % stage->count;
        if (from == to) continue;
        hyp_attack_record(stage->attack, side[from][to], "%s, device %zu to %zu", name, from, to);
    }
}

/* An attack can record 64 numbers: both sides for up to five devices, for more the runtime's
 * only. */
static void speed_conclude(struct peer_stage *stage, const char *name, const char *unit,
                           bool is_less_better, const struct peer_matrix *matrix) {
    enum { BOTH_SIDES_MAX = 5 };
    char text[64];
    const double least = peer_speed_least(matrix, stage->count, is_less_better);
    if (stage->attack->kind == HYP_DEVICE_SOFT) {
        HYP_CHECK(stage->attack, least > 0, "%s was not measured", name);
        hyp_attack_not_tested(stage->attack, "needs_gpu",
                              "needs GPUs: the soft device has no links (mechanics exercised)");
        return;
    }
    hyp_attack_measure(stage->attack, least, "%s, %s", name,
                       matrix->raw_all > 0 ? "until the last pair is done"
                                           : "the least of all pairs");
    snprintf(text, sizeof text, "%s (%s), runtime", name, unit);
    record_side(stage, text, matrix->runtime);
    snprintf(text, sizeof text, "%s (%s), driver", name, unit);
    if (stage->count <= BOTH_SIDES_MAX) record_side(stage, text, matrix->raw);
}

static void note_links(struct peer_stage *stage, size_t device, const struct tol_links *before) {
    struct tol_links links;
    HYP_NEED(stage->attack, tol_links_read(stage->devices[device].context, &links));
    if (!links.is_told) {
        hyp_attack_note(stage->attack, "not tested: links of device %zu: %s", device, links.reason);
        return;
    }
    hyp_attack_note(
        stage->attack,
        "device %zu: PCI Express generation %d of %d, %d lanes of %d; %d NVLinks of version "
        "%.1f, %.3f GB/s in each direction (below 0: unknown), sent %.2f GB and received %.2f GB "
        "in this attack",
        device, links.pcie_generation, links.pcie_generation_max, links.pcie_width,
        links.pcie_width_max, links.nvlinks, links.nvlink_version * 0.1,
        (double)links.nvlink_mb_per_s * 1e-3,
        (double)(links.nvlink_sent_kib - before->nvlink_sent_kib) * 1024e-9,
        (double)(links.nvlink_received_kib - before->nvlink_received_kib) * 1024e-9);
}

static bool speed_begin(struct hyp_attack *attack, struct peer_stage *stage,
                        struct tol_context **contexts, struct tol_links *links) {
    bool ok = peer_stage_begin_timed(attack, stage);
    for (size_t i = 0; ok && i < stage->count; i++) {
        contexts[i] = stage->devices[i].context;
        ok = HYP_OK(attack, tol_links_read(contexts[i], &links[i]));
    }
    return ok;
}

static void try_load(struct hyp_attack *attack, enum peer_load load) {
    struct peer_stage stage;
    struct peer_matrix matrix;
    struct tol_context *contexts[PEER_SPEED_DEVICES];
    struct tol_links links[PEER_SPEED_DEVICES];
    const bool is_soft = attack->kind == HYP_DEVICE_SOFT;
    const size_t bytes = (size_t)(is_soft ? 1 : 512) << 20;
    const bool ready = speed_begin(attack, &stage, contexts, links);
    const unsigned each = attack->session.full ? 15 : 7;
    const unsigned turns = is_soft ? 1 : peer_speed_turns(load, stage.count, each);
    if (ready && HYP_OK(attack, peer_speed_bandwidth(contexts, stage.count, attack->raw, load,
                                                     bytes, turns, 2, &matrix))) {
        char name[40];
        snprintf(name, sizeof name, "%s", peer_load_name(load));
        speed_conclude(&stage, name, "GB/s", false, &matrix);
        for (size_t i = 0; i < stage.count && !is_soft; i++) note_links(&stage, i, &links[i]);
    }
    peer_stage_end(&stage);
}

HYP_ATTACK_WITH(p2, one_way_is_as_fast_as_the_driver, .soft_devices = "2") {
    try_load(attack, PEER_ONE_WAY);
}

HYP_ATTACK_WITH(p2, both_ways_are_as_fast_as_the_driver, .soft_devices = "2") {
    try_load(attack, PEER_BOTH_WAYS);
}

HYP_ATTACK_WITH(p2, all_pairs_are_as_fast_as_the_driver, .soft_devices = "3", .many_queues = true) {
    try_load(attack, PEER_ALL_PAIRS);
}

/* A copy of 4 KiB and its wait. */
HYP_ATTACK_WITH(p2, a_small_copy_takes_no_longer_than_the_drivers, .soft_devices = "2") {
    struct peer_stage stage;
    struct peer_matrix matrix;
    struct tol_context *contexts[PEER_SPEED_DEVICES];
    struct tol_links links[PEER_SPEED_DEVICES];
    const unsigned calls = attack->kind == HYP_DEVICE_SOFT ? 20 : 1001;
    if (speed_begin(attack, &stage, contexts, links) &&
        HYP_OK(attack,
               peer_speed_latency(contexts, stage.count, attack->raw, 4096, calls, &matrix))) {
        speed_conclude(&stage, "latency", "us", true, &matrix);
    }
    peer_stage_end(&stage);
}
