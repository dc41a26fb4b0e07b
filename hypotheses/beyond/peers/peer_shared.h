/*
 * What the attacks across processes share: which codes say that a machine does not do something,
 * and what an answer must say.
 */
#ifndef HYP_PEER_SHARED_H
#define HYP_PEER_SHARED_H

#include "peer_message.h"
#include "peer_stage.h"

/* Whether a code says that the driver or the system does not do `what`. Notes it as not tested. */
bool peer_is_unsupported(struct peer_stage *stage, int result, const char *what);

/* Checks that the other process succeeded and found the pattern. false: it did not, or the driver
 * does not do it, which is noted and no violation. */
bool peer_answer_check(struct peer_stage *stage, const struct peer_answer *answer, const char *way);

#endif
