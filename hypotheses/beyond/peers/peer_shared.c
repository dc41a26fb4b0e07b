/*
 * Codes and answers.
 */
#include "peer_shared.h"

bool peer_is_unsupported(struct peer_stage *stage, int result, const char *what) {
    /* The last: the system does not let one process see the other's memory. */
    if (result != CUDA_ERROR_NOT_SUPPORTED && result != CUDA_ERROR_NOT_PERMITTED &&
        result != CUDA_ERROR_OPERATING_SYSTEM) {
        return false;
    }
    hyp_attack_note(stage->attack, "not tested: %s: the driver answers with CUDA error %d", what,
                    result);
    return true;
}

bool peer_answer_check(struct peer_stage *stage, const struct peer_answer *answer,
                       const char *way) {
    if (answer->is_unsupported) {
        hyp_attack_note(stage->attack, "not tested: %s", answer->text);
        return false;
    }
    if (peer_is_unsupported(stage, answer->result, way)) return false;
    return HYP_CHECK(stage->attack, answer->result == CUDA_SUCCESS, "%s: CUDA error %d from %s",
                     way, answer->result, answer->text) &&
           HYP_CHECK(stage->attack, answer->is_same, "%s: %s", way, answer->text);
}
