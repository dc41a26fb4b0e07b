/*
 * What the launch of a kernel of gemm_hopper.cuh tells it beside gemm's arguments. Read by C and by
 * CUDA C.
 */
#ifndef GEMM_BOXES_H
#define GEMM_BOXES_H

struct gemm_boxes {
    int a_rows, b_rows; /* of a box of A and of B; see gemm_boxes_of */
    int c_is_whole;     /* the rows of C begin at multiples of 16 bytes, beta is 0, and C has 16-bit
                           numbers and rows as long, or, of step 13, floats and an even number */
};

#endif
