/*
 * Accuracy: what an attack on the accuracy of kernels works with.
 *
 *     struct hyp_accuracy accuracy;
 *     if (hyp_accuracy_begin(&accuracy, attack, "gemm", "m,n,k,seed")) {
 *         ... run kernels on accuracy.stream and add each trial to accuracy.errors ...
 *     }
 *     hyp_accuracy_end(&accuracy);
 */
#ifndef HYP_ACCURACY_H
#define HYP_ACCURACY_H

#include "error_table.h"
#include "choose/kernel_set.h"

struct hyp_accuracy {
    struct hyp_attack *attack;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct hyp_error_table errors;
};

/* Begins an error table with these columns and creates kernels and a stream in the context.
 * operation is the first word of the saboteurs that concern the attack. false: a violation was
 * recorded, or the run is under a saboteur of another operation, which the attack cannot notice;
 * only hyp_accuracy_end may follow. */
bool hyp_accuracy_begin(struct hyp_accuracy *accuracy, struct hyp_attack *attack,
                        const char *operation, const char *columns);

/* Writes the error table and destroys what was created, even if hyp_accuracy_begin failed. */
void hyp_accuracy_end(struct hyp_accuracy *accuracy);

#endif
