/*
 * The claims on devices that use each other's memory, P1 and P2: what is claimed, and the faults
 * that their attacks must notice. `tollens run P1 P2` tries to falsify them.
 */
#include "peer_faults.h"

static const struct hyp_saboteur saboteurs[] = {
    {.name = "peer_wait_missing", .forced = HYP_MUST_FALSIFY},
    {.name = "peer_offset_wrong", .forced = HYP_MUST_FALSIFY},
    {.name = "peer_tail_skipped", .forced = HYP_MUST_FALSIFY},
    {.name = "peer_pair_swapped", .forced = HYP_MUST_FALSIFY},
    {.name = "peer_bit_flipped", .forced = HYP_MUST_FALSIFY},
    {.name = "peer_kernel_short", .forced = HYP_MUST_FALSIFY},
    {.name = "peer_read_only_ignored", .forced = HYP_MUST_FALSIFY},
    {.name = "launch_drop", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_saboteur speed_saboteurs[] = {
    {.name = "peer_copied_twice", .forced = HYP_MUST_FALSIFY},
    {.name = "peer_tenth_more", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_plugin_claim claims[] = {
    {.id = "P1",
     .title = "Peer copies return the bytes",
     .unit = "violations",
     .source = "CUDA Driver API 13.0, Peer Context Memory Access; RF-15",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .words =
         {.claim = "Bytes that get from one device to another are those that were sent, for every "
                   "ordered pair, way, size and offset, beside all other pairs, while access comes "
                   "and goes, and across processes; no byte beside them changes.",
          .prediction = "0 violations from 1 byte to 8 GiB (2 MiB without --full on GPUs).",
          .falsified_if = "a byte of the target differs, or one in the guards before or behind it; "
                          "a copy does not wait for what writes its source; memory that another "
                          "process may only read is written; or a load without access succeeds.",
          .method = "The ways are the copy engine from either side, loads, stores and atomic "
                    "operations of kernels, mappings with access rights, and blocks of the host. "
                    "Other processes open memory by handles, file descriptors and pools, twice, "
                    "behind events, and after their exporter was killed.",
          .control = "Every byte depends on the pair, the trial and its position. The target is "
                     "poisoned with a byte that its first is not, and is read by its own device "
                     "and compared on the host.",
          .confounders = "A read of the target that goes wrong like the copy did would hide it: "
                         "pinned copies to the host are H3's claim. What a driver does not do is "
                         "noted as not tested, and is no part of the verdict."},
     .saboteurs = saboteurs},
    {.id = "P2",
     .title = "Peer copies are as fast as the driver's",
     .unit = "of the driver's",
     .source = "D-04",
     .threshold = 0.97,
     .tolerance = 0.01,
     .direction = HYP_ABOVE,
     .words =
         {.is_measured = true,
          .claim = "Copies from one device to another by the runtime reach the bandwidth of the "
                   "driver's own copies, for every ordered pair, one way, both ways and with all "
                   "pairs at once, and a small copy takes no longer.",
          .prediction =
              "At least 0.97 of the driver's bandwidth with copies of 512 MiB, and of its "
              "speed with copies of 4 KiB.",
          .falsified_if = "a pair's share is 0.97 or less, or that of all pairs at once.",
          .method = "Turns of the runtime (tol_transfer_peer) and of the driver "
                    "(cuMemcpyPeerAsync, cuStreamSynchronize) alternate; each side's number is the "
                    "median of its turns. Pairs that copy at once have a thread, a stream and "
                    "buffers each. Where more than two devices copy at once, pairs share "
                    "links, and each run divides them among pairs in another way; so all "
                    "together are judged, by the time until the last pair is done.",
          .control = "The driver's side does not go through the interposer: the saboteurs slow the "
                     "runtime's side alone.",
          .confounders = "Both sides wait for each copy, so neither shows what queued copies "
                         "would reach. Other load on the links changes both alike."},
     .saboteurs = speed_saboteurs},
    {.id = NULL}};

HYP_PLUGIN(.name = "peers", .version = "1", .claims = claims, .faults = peer_faults);
