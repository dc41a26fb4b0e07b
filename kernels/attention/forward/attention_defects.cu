// attention with one defect in each kernel, for sabotage: claims about attention must find each.
// Target: compute_80
//
// The idea: attention_3_tensor for fp16 and heads of 64 elements, with one mistake. They are in no
// table from which calls choose; saboteurs force them by name.
// Owner and requirements: as attention_tensor.cuh says.
#include "attention_tensor.cuh"

#define ATTENTION_DEFECT(name, defect)                                                             \
    extern "C" __global__ void __launch_bounds__(128, 2) attention_##name(attention_arguments x) { \
        attention_tensor<__half, 64, 2, 128, 4, defect>(x);                                        \
    }
ATTENTION_DEFECT(no_rescale, NO_RESCALE)
ATTENTION_DEFECT(no_maximum, NO_MAXIMUM)
ATTENTION_DEFECT(causal_plus_one, CAUSAL_PLUS_ONE)
ATTENTION_DEFECT(keys_unmasked, KEYS_UNMASKED)
ATTENTION_DEFECT(tail_unwritten, TAIL_UNWRITTEN)
ATTENTION_DEFECT(window_plus_one, WINDOW_PLUS_ONE)
ATTENTION_DEFECT(window_tile_lost, WINDOW_TILE_LOST)
