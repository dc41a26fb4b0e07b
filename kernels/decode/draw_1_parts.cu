// draw, step 1: a token of each row of logits by chance, in whole numbers.
//
// The idea: weights are whole numbers, so that parts of a row add them in any order. A token is
// kept if its key is not below a threshold, so that nothing is sorted. A histogram finds the 32nd
// of an octave that contains the threshold; the tokens of this bin are then searched digit by
// digit.
// Owner: block (i, r) owns part i of row r; block (0, r) of draw_cut and draw_pick owns row r.
// Bound by: latency. Requires: blockDim = (256, 1, 1), and 1024 for draw_cut; gridDim.y = rows;
// gridDim.x = the parts of a row, and 1 for draw_cut and draw_pick; at most DRAW_PARTS parts.
#include "draw.cuh"

extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_largest(draw_arguments a) {
    draw_largest_of_part(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_weigh(draw_arguments a) {
    draw_weigh_part(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_CUT_THREADS) draw_cut(draw_arguments a) {
    draw_cut_row(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_sum(draw_arguments a) {
    draw_sum_part(a);
}
extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_pick(draw_arguments a) {
    draw_pick_of_row(a);
}
