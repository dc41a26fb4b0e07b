// draw, step 2: step 1 by PDL.
// Target: compute_90
//
// Idea, owner, bound and requirements: as step 1. It may be launched by PDL.
#define EARLY
#include "draw.cuh"

extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_largest_early(draw_arguments a) {
    draw_largest_of_part(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_weigh_early(draw_arguments a) {
    draw_weigh_part(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_CUT_THREADS) draw_cut_early(draw_arguments a) {
    draw_cut_row(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_sum_early(draw_arguments a) {
    draw_sum_part(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_pick_early(draw_arguments a) {
    draw_pick_of_row(a);
}
