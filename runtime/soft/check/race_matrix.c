/*
 * Accesses of the instructions that move matrices: each row of ldmatrix and stmatrix is an access
 * of the lane that gives its address, and in wmma each lane accesses its own elements. Although the
 * lanes execute the instruction together, it does not order their earlier stores.
 */
#include "ops/matrix_pieces.h"
#include "race.h"
#include "race_state.h"

enum { ROWS = 8, ROW_BYTES = 16 };

static void race_matrix_check_rows(struct soft_checked_access *touch) {
    const struct soft_instruction *in = touch->in;
    uint32_t rows = ROWS * (in->mode & SOFT_MATRIX_X4 ? 4 : in->mode & SOFT_MATRIX_X2 ? 2 : 1);
    touch->bytes = ROW_BYTES;
    for (touch->lane = 0; touch->lane < rows; touch->lane++) {
        touch->mark.lanes = 1u << touch->lane;
        touch->address = soft_access_address(touch->warp, in, touch->lane);
        if (touch->address % ROW_BYTES == 0) soft_race_touch(touch, soft_access_space(in->mode));
        touch->before |= touch->mark.lanes;
    }
}

static void race_matrix_check_pieces(struct soft_checked_access *touch) {
    const struct soft_instruction *in = touch->in;
    struct soft_pieces p = soft_pieces_of(touch->warp, in);
    touch->bytes = p.bytes;
    for (touch->lane = 0; touch->lane < SOFT_LANES; touch->lane++) {
        touch->mark.lanes = 1u << touch->lane;
        for (unsigned i = 0; i < p.needed * p.of_register; i++) {
            touch->address = p.base + soft_piece_offset(&p, i, touch->lane);
            if (touch->address % p.bytes != 0) continue;
            soft_race_touch(touch, soft_access_space(in->mode));
        }
        touch->before |= touch->mark.lanes;
    }
}

void soft_race_matrix(struct soft_warp *warp, const struct soft_instruction *in) {
    struct soft_race_cta *own = warp->cta->race;
    bool writes = (in->mode & SOFT_ACCESS_STORE) != 0;
    struct soft_checked_access touch = {
        .warp = warp,
        .in = in,
        .race = own->race,
        .cta = own,
        .mark = {.cta = own->number,
                 .time = own->time,
                 .site = in->site,
                 .warp = (uint8_t)warp->index},
        .reads = !writes,
        .writes = writes,
    };
    if (in->op == SOFT_OP_ldmatrix || in->op == SOFT_OP_stmatrix) {
        race_matrix_check_rows(&touch);
    } else {
        race_matrix_check_pieces(&touch);
    }
    soft_race_note_end(&touch);
}
