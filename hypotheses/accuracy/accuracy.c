/*
 * An error table, the library's kernels and a stream.
 */
#include "accuracy.h"

#include "harness/sabotage.h"

bool hyp_accuracy_begin(struct hyp_accuracy *accuracy, struct hyp_attack *attack,
                        const char *operation, const char *columns) {
    *accuracy = (struct hyp_accuracy){.attack = attack};
    hyp_error_table_begin(&accuracy->errors, attack, columns);
    if (hyp_sabotage_spares(attack->session.sabotage, operation)) {
        hyp_attack_note(attack, "the saboteur concerns another operation");
        return false;
    }
    return HYP_OK(attack, kn_kernels_create(attack->context, &accuracy->kernels)) &&
           HYP_OK(attack, tol_stream_create(attack->context, NULL, &accuracy->stream));
}

void hyp_accuracy_end(struct hyp_accuracy *accuracy) {
    hyp_error_table_end(&accuracy->errors);
    tol_stream_destroy(accuracy->stream);
    kn_kernels_destroy(accuracy->kernels);
}
