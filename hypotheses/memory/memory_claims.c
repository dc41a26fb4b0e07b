/*
 * The claims on memory: what is claimed, and the faults that their attacks must notice. `tollens
 * run S1` tries to falsify it.
 */
#include "memory_faults.h"

static const struct hyp_saboteur seal_saboteurs[] = {
    {.name = "block_left_plain", .forced = HYP_MUST_FALSIFY},
    {.name = "sealed_bit_changed", .forced = HYP_MUST_FALSIFY},
    {.name = "sealed_chunks_swapped", .forced = HYP_MUST_FALSIFY},
    {.name = "verification_blind", .forced = HYP_MUST_FALSIFY},
    {.name = "key_stream_reused", .forced = HYP_MUST_FALSIFY},
    {.name = "manifest_changed", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_plugin_claim claims[] = {
    {.id = "S1",
     .title = "Sealed weights never stand in the clear and never change unseen",
     .unit = "violations",
     .source = "spec 002, refinements: encryption of weights in memory",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .words = {.claim =
                   "No piece of 16 bytes of sealed weights is in device memory or is copied to "
                   "it, but on request; any change of sealed bytes, on the device, in a packed "
                   "object or in its manifest, is refused with its chunk before they are used; "
                   "no two sealings share a key stream.",
               .prediction = "0 violations.",
               .falsified_if = "a plain piece is found, a change is accepted or laid to another "
                               "chunk, unchanged memory is refused, a product has other bits after "
                               "a rotation, or two key streams have 8 bytes in common.",
               .method =
                   "Weights of drawn shapes are sealed from the host and from packed objects, "
                   "with 20, 12 and 8 rounds, multiplied, verified, rotated and read. All "
                   "memory that the driver gave is read back and searched, and so is what is "
                   "copied to the device. Bits, runs and chunks are changed, swapped and "
                   "replayed behind the library's back.",
               .control = "Plain bytes that are put on the device on request are found, and sealed "
                          "memory whose bytes were put back is accepted again.",
               .confounders = "Registers, shared memory and the arguments of queued kernels, which "
                              "have the key, cannot be read back and are not searched; the "
                              "cryptography is tested by vectors of its standards, not attacked."},
     .saboteurs = seal_saboteurs},
    {.id = NULL}};

HYP_PLUGIN(.name = "memory", .version = "1", .claims = claims, .faults = memory_faults);
