// attention's backward pass with one defect in each kernel, for sabotage: tests must find each.
// Target: compute_80
//
// The idea: attention_backward_2_tensor for fp16 and heads of 64 elements, with one mistake. They
// are in no table from which calls choose; tests force them by name.
// Owner and requirements: as attention_backward_tensor.cuh says.
#include "attention_backward_tensor.cuh"

#define BACKWARD_DEFECT(name, defect)                                                              \
    extern "C" __global__ void __launch_bounds__(128, 2)                                           \
        attention_backward_##name(attention_backward_arguments g) {                                \
        attention_backward_tensor<__half, 64, 2, 32, 4, defect>(g);                                \
    }
BACKWARD_DEFECT(no_delta, NO_DELTA)
BACKWARD_DEFECT(lost_head, LOST_HEAD)
BACKWARD_DEFECT(unmasked, UNMASKED_GRADIENT)
BACKWARD_DEFECT(last_tile_lost, LAST_TILE_LOST)
BACKWARD_DEFECT(swapped_figures, SWAPPED_FIGURES)
BACKWARD_DEFECT(unscaled, UNSCALED)
