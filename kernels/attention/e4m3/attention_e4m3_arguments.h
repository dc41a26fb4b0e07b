/*
 * The parameter of every kernel of attention over numbers of 8 bits: the same struct on host and
 * device. Internal to the operation.
 */
#ifndef KN_ATTENTION_E4M3_ARGUMENTS_H
#define KN_ATTENTION_E4M3_ARGUMENTS_H

#include "../forward/attention_arguments.h"

struct attention_e4m3_arguments {
    struct attention_arguments x; /* q, k and v have elements of a byte */
    ATTENTION_ADDRESS q_scales;   /* floats, [batch][heads], or null */
    ATTENTION_ADDRESS k_scales;   /* floats, [batch][heads / group], or null */
    ATTENTION_ADDRESS v_scales;
};

#endif
