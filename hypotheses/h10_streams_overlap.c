/*
 * H10: independent kernels of 1 ms on several streams run concurrently.
 *
 * `tollens explain H10` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "attack/concurrent_kernels.h"

#include <stdio.h>

HYP_WORDS(
    10, .is_timed = true,
    .claim = "Independent kernels that fit on the device together take more than 1.5 times as "
             "long on one stream as on one stream each.",
    .prediction = "A ratio above 0.9 N, for N = 4 and N = 8 kernels of one millisecond, each on "
                  "at most its share of half the multiprocessors.",
    .falsified_if = "the interval of the ratio lies at or below 1.5 for N = 4 or N = 8, or a "
                    "kernel's output shows that it was lost, run twice or wrong.",
    .method = "Blocks compare one stream with N streams, as in H11. A batch is all N kernels and "
              "the wait for them. The kernels compute a result, so that the work of each thread "
              "is checked. A second comparison adds a copy to the device before each kernel and a "
              "copy to the host after it; it is recorded and not judged.",
    .control = "The device's timer records when each kernel began and ended. On one stream no "
               "kernel may begin before the previous one has ended. After each block another "
               "block, with N streams on both sides, must find no difference.",
    .confounders = "Launches are made one after the other, so the last kernel begins about N "
                   "times 3 us after the first. Other processes may occupy the GPU. On the soft "
                   "device the number of processors limits concurrency, so the attacks run there "
                   "and the claim is not tested.")

enum { FAMILY = 2, SOFT_CHUNK_BYTES = 1 << 16, GPU_CHUNK_BYTES = 16 << 20 };

static void streams_compare(struct hyp_attack *attack, unsigned kernels, double kernel_us,
                            size_t chunk_bytes) {
    struct hyp_concurrent_kernels concurrent;
    char name[64];
    const bool is_gpu = attack->kind == HYP_DEVICE_CUDA, has_copies = chunk_bytes > 0;
    snprintf(name, sizeof name, "%s_on_%u_streams", has_copies ? "copies_and_kernels" : "kernels",
             kernels);
    if (hyp_concurrent_kernels_begin(attack, kernels, kernel_us, chunk_bytes, &concurrent)) {
        const struct hyp_pair pair = {.name = name,
                                      .is_ratio = true,
                                      .rule = hyp_attack_rule(attack, FAMILY),
                                      .recorded_only = !is_gpu || has_copies,
                                      .is_device_work = is_gpu,
                                      .calls = 1,
                                      .warm_calls = 3,
                                      .batch = hyp_concurrent_kernels_batch,
                                      .user = &concurrent};
        unsigned serial = hyp_concurrent_kernels_at_once(&concurrent, HYP_SUBJECT);
        unsigned at_once = hyp_concurrent_kernels_at_once(&concurrent, HYP_BASELINE);
        HYP_CHECK(attack, serial == 1, "%u kernels ran concurrently on one stream", serial);
        hyp_attack_record(attack, at_once, "%s_at_once", name);
        const struct hyp_effect *effect = hyp_attack_compare(attack, &pair);
        if (is_gpu) {
            hyp_attack_note(attack,
                            "%s: ratio %.3g of at most %u; %u ran concurrently; one stream took "
                            "%.0f us, %u took %.0f us",
                            name, effect->effect.median, kernels, at_once,
                            effect->subject_ns * 1e-3, kernels, effect->baseline_ns * 1e-3);
        }
    }
    hyp_concurrent_kernels_end(&concurrent);
}

static void say_not_tested(struct hyp_attack *attack) {
    if (attack->kind == HYP_DEVICE_CUDA) return;
    hyp_attack_not_tested(attack, "needs_gpu", "needs a GPU (mechanics exercised)");
}

HYP_ATTACK_WITH(h10, kernels_on_streams_of_their_own_run_at_once, .many_queues = true) {
    streams_compare(attack, 4, 1000, 0);
    hyp_attack_progress(attack, 0.5);
    streams_compare(attack, 8, 1000, 0);
    say_not_tested(attack);
}

/* Copy, kernel and copy take about the same time: 16 MiB is 300 us on PCIe 5. */
HYP_ATTACK_WITH(h10, copies_run_beside_kernels, .many_queues = true) {
    streams_compare(attack, 4, 300,
                    attack->kind == HYP_DEVICE_CUDA ? GPU_CHUNK_BYTES : SOFT_CHUNK_BYTES);
    say_not_tested(attack);
}
