/*
 * The claims on the worker, W1 to W3: what is claimed, and the faults that their attacks must
 * notice. `tollens run W1 W2 W3` tries to falsify them.
 */
#include "worker_faults.h"

static const struct hyp_saboteur decode_saboteurs[] = {
    {.name = "rope_off_by_one", .forced = HYP_MUST_FALSIFY},
    {.name = "scale_nibble_wrong", .forced = HYP_MUST_FALSIFY},
    {.name = "kv_page_stale", .forced = HYP_MUST_FALSIFY},
    {.name = "bias_dropped", .forced = HYP_MUST_FALSIFY},
    {.name = "power_of_two_wrong", .forced = HYP_MUST_FALSIFY},
    {.name = "token_lost", .forced = HYP_MUST_FALSIFY},
    {.name = "token_misspelt", .forced = HYP_MUST_FALSIFY},
    {.name = "launch_drop", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_saboteur seed_saboteurs[] = {
    {.name = "sums_unordered", .forced = HYP_MUST_FALSIFY},
    {.name = "generator_shared", .forced = HYP_MUST_FALSIFY},
    {.name = "batch_leaks", .forced = HYP_MUST_FALSIFY},
    {.name = "draws_by_first", .forced = HYP_MUST_FALSIFY},
    {.name = "penalty_shifted", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_saboteur health_saboteurs[] = {
    {.name = "residency_always_true", .forced = HYP_MUST_FALSIFY},
    {.name = "ledger_off_by_a_block", .forced = HYP_MUST_FALSIFY},
    {.name = "alloc_leak", .forced = HYP_MUST_FALSIFY},
    {.name = "poison_hidden", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_plugin_claim claims[] = {
    {.id = "W1",
     .title = "Decoding is llama.cpp's",
     .unit = "of the bound",
     .source = "spec 001, inference; spec 004 6.3",
     .threshold = 1,
     .tolerance = 0.25,
     .direction = HYP_AT_MOST,
     .shares_device = true,
     .words = {.is_measured = true,
               .claim = "The logits of every position are llama.cpp's on the same file, within a "
                        "bound for each kind of weights; greedy tokens are the same until a "
                        "near-tie, and the tokens of texts are the same.",
               .prediction = "At most 0.8 of the bound; no token differs before a near-tie, and "
                             "none of 40,000 texts has other tokens.",
               .falsified_if = "a logit is farther from llama.cpp's than the bound, a share of the "
                               "position's largest logit: 0.002 for F32, 0.005 F16, 0.05 BF16, "
                               "0.12 Q8_0 and Q4_K_M, 0.15 Q5_K_M; a greedy token is another where "
                               "llama.cpp's lead exceeds two bounds; or a text has other tokens.",
               .method = "Six small models of four architectures and six kinds of weights read "
                         "prompts in pieces of drawn lengths, those of 8 tokens and more as long "
                         "prompts, but for F32; the 16 largest logits and four sums "
                         "of all logits are compared with llama.cpp's record. All prompts then go "
                         "on greedily in one batch.",
               .control = "Records in double precision by a program that shares no code with "
                          "either (fixtures/models) confirm llama.cpp's and say how far it is off "
                          "itself.",
               .confounders =
                   "llama.cpp's kernels for the CPU round activations to 8 bits or bf16, "
                   "and random weights magnify it, so the bounds for such weights are "
                   "wide; a mistake below them shows in F32 and F16, whose kernels "
                   "share all but the weights' decoding. The models are small."},
     .saboteurs = decode_saboteurs},
    {.id = "W2",
     .title = "The same seed gives the same tokens",
     .unit = "violations",
     .source = "spec 001, inference: deterministic",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .shares_device = true,
     .words = {.claim = "A session's tokens and the bits of its logits depend on its file, prompt, "
                        "parameters and seed, and not on what runs beside it, on how often it "
                        "runs, or on whether the device draws its tokens or the host.",
               .prediction = "0 violations.",
               .falsified_if = "a token, or a bit of a logit, differs between two runs of one "
                               "session, or between a device that draws and the host.",
               .method =
                   "24 sessions with drawn lengths, seeds and ways to draw run alone, then in "
                   "a batch that they join and leave, with prompts in pieces; one session "
                   "runs 20 times (100 with --full); four run beside each other in threads; "
                   "six with long prompts, in passes of other sizes, share beginnings; and 24 "
                   "of every limit at once draw on the device in a batch what each draws on the "
                   "host alone.",
               .control =
                   "Sessions of other seeds and prompts have other tokens: the saboteur that "
                   "shares the generator is noticed.",
               .confounders = "One device and one build: nothing is claimed of two devices."},
     .saboteurs = seed_saboteurs},
    {.id = "W3",
     .title = "Health tells the truth",
     .unit = "violations",
     .source = "spec 001, health",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .shares_device = true,
     .words = {.claim = "Weights, keys or values that are not in the device's own memory are said "
                        "not to be; what a model says it holds is what the driver gave, to the "
                        "byte, and all of it goes back; a lost context is said to be lost.",
               .prediction = "0 violations.",
               .falsified_if =
                   "memory of the host passes for the device's, a byte is not accounted "
                   "for or not given back, or a lost context passes for well.",
               .method =
                   "The driver is made to give host memory for the weights, and to say of one "
                   "address after the other that it is the host's. The harness counts the "
                   "driver's allocations and frees. A kernel writes where nothing is.",
               .control = "A model that is where it should be is said to be, before and after.",
               .confounders = "The addresses that the worker asks about are its own choice; "
                              "more of them than tensors are required."},
     .saboteurs = health_saboteurs},
    {.id = NULL}};

HYP_PLUGIN(.name = "worker", .version = "1", .claims = claims, .faults = worker_faults);
