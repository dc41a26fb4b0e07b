/*
 * The claims on memory: what is claimed, and the faults that their attacks must notice. `tollens
 * run S1 S2` tries to falsify them.
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

static const struct hyp_saboteur watch_saboteurs[] = {
    {.name = "watch_rule_lost", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_copy_lost", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_graph_lost", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_kernel_lost", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_share_lost", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_limit_tenfold", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_alarm_lost", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_block_mistaken", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_refusal_ignored", .forced = HYP_MUST_FALSIFY},
    {.name = "watch_false_alarm", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_plugin_claim claims[] = {
    {.id = "S1",
     .title = "Sealed weights never stand in the clear and never change unseen",
     .unit = "violations",
     .source = "spec 002, refinements: encryption of weights in memory",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .shares_device = true,
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
    {.id = "S2",
     .title = "What reads weights out is noticed",
     .unit = "violations",
     .source = "spec 002, refinements: access patterns are monitored",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .shares_device = true,
     .words = {.claim =
                   "Each call through the runtime's table that copies watched weights, changes "
                   "them, or gives their memory to another process or address, each launch of a "
                   "graph that does, and each kernel that is new to them raises the alarm of its "
                   "rule, with the block and the bytes; a rule that refuses keeps it from "
                   "happening; ordinary work raises none.",
               .prediction = "0 violations.",
               .falsified_if =
                   "an alarm is missing or names another rule, block, call or number of "
                   "bytes, what a rule refuses happens, or ordinary work raises an "
                   "alarm.",
               .method = "Drawn pieces of weights are copied to the host in every way that the "
                         "table has: at once, by rows and layers, to memory of the host by its "
                         "device address, on other streams, by threads at once, a few bytes at a "
                         "time; to other memory of the device; by graphs and graphs in graphs, "
                         "launched again and again; by kernels of unknown modules, and by kernels "
                         "of a known module that get the address or load it from memory. They are "
                         "written and filled, and handles and second mappings of their memory are "
                         "made. A limit of copies out is kept and passed by a tenth. Each with "
                         "rules that report and rules that refuse.",
               .control = "Without refusal the bytes come, so each way is one. Loading in pieces, "
                          "products by launches and by graphs, and reading results below the "
                          "limit raise no alarm, and every launch and byte is counted.",
               .confounders = "What a kernel does with weights that it is known to use is not seen "
                              "on a GPU, nor an address that it loads from memory: on the soft "
                              "device the bytes that kernels access are told, there those attacks "
                              "run as well. Calls that do not go through the table are not seen."},
     .saboteurs = watch_saboteurs},
    {.id = NULL}};

HYP_PLUGIN(.name = "memory", .version = "1", .claims = claims, .faults = memory_faults);
