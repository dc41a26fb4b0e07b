// attention_3_tensor for fp16 and heads of 64 elements with one mistake each, planted to show that
// claims about attention notice it. Nothing else may use these.
// Target: compute_80
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
