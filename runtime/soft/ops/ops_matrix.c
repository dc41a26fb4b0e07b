/*
 * Matrices between memory and the registers of a warp: ldmatrix, stmatrix, wmma.load, wmma.store.
 * Source: PTX ISA 9.0, sections 9.7.14.5.15 (ldmatrix), 9.7.14.5.16 (stmatrix), 9.7.14.4.3
 * (wmma.load), 9.7.14.4.4 (wmma.store).
 *
 * Every thread's part goes through access.c, like any load or store: a row of ldmatrix is a 16-byte
 * access by the lane that gives its address; of wmma's matrices, a thread accesses its own
 * elements. Nothing is written, in registers or memory, before all of it is found.
 */
#include "ops_tensor.h"

#include "tollens/cuda_abi.h"
#include "machine/access.h"
#include "machine/finding.h"
#include "matrix_pieces.h"

enum { ROWS = 8, ROW_BYTES = 16, MATRICES_MAX = 4, PIECES_MAX = 16 };

static unsigned matrices_of(const struct soft_instruction *in) {
    return in->mode & SOFT_MATRIX_X4 ? 4 : in->mode & SOFT_MATRIX_X2 ? 2 : 1;
}

/* A generic address must be one of shared memory. */
static bool ops_matrix_find_row(struct soft_warp *warp, const struct soft_instruction *in,
                                uint32_t lane, struct soft_place *place) {
    enum soft_access_space space = soft_access_space(in->mode);
    uint64_t address = soft_access_address(warp, in, lane);
    if (space == SOFT_SPACE_GENERIC &&
        (address - soft_space_windows()->shared) >> SOFT_WINDOW_SHIFT != 0) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                         "a row at 0x%llx, which is not in shared memory",
                         (unsigned long long)address);
        return false;
    }
    return soft_access_find(warp, in, lane, address, ROW_BYTES, space, place);
}

/* The lane and the register half of a matrix element. A thread has two neighbours of a row, or of a
 * column if the matrix is transposed. */
static inline unsigned ops_matrix_half_of(unsigned row, unsigned column, bool turned) {
    return turned ? column * ROWS + row : row * ROWS + column;
}

OP_WHOLE(ldmatrix) {
    const uint32_t *slots = SOFT_OPERANDS(warp, in) + SOFT_TENSOR_WORDS;
    unsigned count = matrices_of(in);
    bool turned = (in->mode & SOFT_MATRIX_TRANS) != 0;
    uint16_t halves[MATRICES_MAX][2 * SOFT_LANES];
    for (uint32_t lane = 0; lane < ROWS * count; lane++) {
        struct soft_place place;
        uint16_t row[ROWS];
        if (!ops_matrix_find_row(warp, in, lane, &place)) return NULL;
        soft_access_check_read(warp, in, lane, soft_access_address(warp, in, lane), ROW_BYTES,
                               &place);
        memcpy(row, place.host, ROW_BYTES);
        for (unsigned column = 0; column < ROWS; column++) {
            halves[lane / ROWS][ops_matrix_half_of(lane % ROWS, column, turned)] = row[column];
        }
    }
    for (unsigned i = 0; i < count; i++) {
        memcpy(SLOT(uint32_t, slots[i]), halves[i], sizeof halves[i]);
    }
    return in + 1;
}

OP_WHOLE(stmatrix) {
    const uint32_t *slots = SOFT_OPERANDS(warp, in) + SOFT_TENSOR_WORDS;
    unsigned count = matrices_of(in);
    bool turned = (in->mode & SOFT_MATRIX_TRANS) != 0;
    struct soft_place places[MATRICES_MAX * ROWS];
    for (uint32_t lane = 0; lane < ROWS * count; lane++) {
        if (!ops_matrix_find_row(warp, in, lane, &places[lane])) return NULL;
    }
    for (uint32_t lane = 0; lane < ROWS * count; lane++) {
        uint16_t halves[2 * SOFT_LANES], row[ROWS];
        memcpy(halves, SLOT(uint32_t, slots[lane / ROWS]), sizeof halves);
        for (unsigned column = 0; column < ROWS; column++) {
            row[column] = halves[ops_matrix_half_of(lane % ROWS, column, turned)];
        }
        soft_shadow_mark(places[lane].shadow, places[lane].offset, ROW_BYTES);
        memcpy(places[lane].host, row, ROW_BYTES);
    }
    return in + 1;
}

/* ---- wmma ---- */

/* All lanes must agree on the address and the stride. */
static bool is_agreed(struct soft_warp *warp, const struct soft_instruction *in) {
    const uint32_t *stride = SLOT(uint32_t, in->b);
    for (uint32_t lane = 1; lane < SOFT_LANES; lane++) {
        uint64_t address = soft_access_address(warp, in, lane);
        if (address == soft_access_address(warp, in, 0) && stride[lane] == stride[0]) continue;
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                         "the address and stride of lane %u differ from those of lane 0; they must "
                         "be the same in all lanes",
                         lane);
        return false;
    }
    return true;
}

/* The matrix in one range that is known, all of it aligned and, where that is tracked and it is
 * read, written: the usual case. host NULL: it is not, and each piece must be looked up. */
static struct soft_place whole_place(const struct soft_warp *warp,
                                     const struct soft_instruction *in,
                                     const struct soft_pieces *p) {
    const struct soft_place nowhere = {.host = NULL};
    const struct soft_cta *cta = warp->cta;
    const struct soft_view *view = &warp->views[in->site];
    enum soft_access_space space = soft_access_space(in->mode);
    bool shared = space == SOFT_SPACE_SHARED;
    uint64_t low = shared ? 0 : view->low, size = shared ? cta->shared_bytes : view->high - low;
    uint64_t bytes = (p->lines - 1) * p->line_step + p->line_bytes, offset = p->base - low;
    if (bytes > size || offset > size - bytes || p->line_step > size) return nowhere;
    if (((p->base | p->line_step) & (p->bytes - 1)) != 0) return nowhere;
    struct soft_place place = {.host = (shared ? cta->shared : view->host) + offset,
                               .shadow = shared ? cta->shared_shadow : view->shadow,
                               .offset = offset};
    if (place.shadow == NULL || (in->mode & SOFT_ACCESS_STORE) != 0) return place;
    if (((offset | p->line_step | p->line_bytes) & 3) != 0) return nowhere;
    for (unsigned line = 0; line < p->lines; line++) {
        const uint8_t *shadow = place.shadow + (offset + line * p->line_step) / 4;
        for (unsigned i = 0; i < p->line_bytes / 4; i++) {
            if (shadow[i] != 0xf) return nowhere;
        }
    }
    return place;
}

/* Every piece by itself, so that a fault is reported for its own lane. */
static bool find_pieces(struct soft_warp *warp, const struct soft_instruction *in,
                        const struct soft_pieces *p, struct soft_place (*places)[SOFT_LANES]) {
    for (unsigned i = 0; i < p->needed * p->of_register; i++) {
        for (uint32_t lane = 0; lane < SOFT_LANES; lane++) {
            uint64_t address = p->base + soft_piece_offset(p, i, lane);
            struct soft_place *place = &places[i][lane];
            if (!soft_access_find(warp, in, lane, address, p->bytes, soft_access_space(in->mode),
                                  place)) {
                return false;
            }
            if ((in->mode & SOFT_ACCESS_STORE) == 0) {
                soft_access_check_read(warp, in, lane, address, p->bytes, place);
            }
            if (place->view.high != 0) warp->views[in->site] = place->view;
        }
    }
    return true;
}

static inline uint8_t *piece_at(const struct soft_pieces *p, const struct soft_place *whole,
                                struct soft_place (*places)[SOFT_LANES], unsigned i,
                                unsigned lane) {
    if (whole->host == NULL) return places[i][lane].host;
    return whole->host + soft_piece_offset(p, i, lane);
}

OP_WHOLE(wmma_load) {
    if (!is_agreed(warp, in)) return NULL;
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    struct soft_pieces p = soft_pieces_of(warp, in);
    struct soft_place places[PIECES_MAX][SOFT_LANES], whole = whole_place(warp, in, &p);
    if (whole.host == NULL && !find_pieces(warp, in, &p, places)) return NULL;
    uint64_t words[SOFT_PIECE_REGISTERS][SOFT_LANES] = {{0}};
    for (unsigned i = 0; i < p.needed * p.of_register; i++) {
        unsigned piece = i % p.of_register;
        for (unsigned lane = 0; lane < SOFT_LANES; lane++) {
            uint64_t *word = &words[i / p.of_register][lane], value = 0;
            memcpy(&value, piece_at(&p, &whole, places, i, lane), p.bytes);
            *word = piece == 0 ? value : *word | value << (8 * p.bytes * piece);
        }
    }
    for (unsigned i = 0; i < (operands[2] & 255); i++) {
        /* Where a fragment has more registers than elements, they are there again. */
        const uint64_t *from = words[i % p.needed];
        uint32_t slot = operands[SOFT_TENSOR_WORDS + i];
        for (int lane = 0; lane < SOFT_LANES && p.bits == 64; lane++) {
            SLOT(uint64_t, slot)[lane] = from[lane];
        }
        for (int lane = 0; lane < SOFT_LANES && p.bits != 64; lane++) {
            SLOT(uint32_t, slot)[lane] = (uint32_t)from[lane];
        }
    }
    return in + 1;
}

OP_WHOLE(wmma_store) {
    if (!is_agreed(warp, in)) return NULL;
    const uint32_t *slots = SOFT_OPERANDS(warp, in) + SOFT_TENSOR_WORDS;
    struct soft_pieces p = soft_pieces_of(warp, in);
    struct soft_place places[PIECES_MAX][SOFT_LANES], whole = whole_place(warp, in, &p);
    if (whole.host == NULL && !find_pieces(warp, in, &p, places)) return NULL;
    for (unsigned line = 0; line < p.lines && whole.host != NULL; line++) {
        soft_shadow_mark(whole.shadow, whole.offset + line * p.line_step, p.line_bytes);
    }
    for (unsigned i = 0; i < p.needed * p.of_register; i++) {
        uint32_t slot = slots[i / p.of_register];
        for (unsigned lane = 0; lane < SOFT_LANES; lane++) {
            uint64_t word = p.bits == 64 ? SLOT(uint64_t, slot)[lane] : SLOT(uint32_t, slot)[lane];
            word >>= 8 * p.bytes * (i % p.of_register) % 64;
            if (whole.host == NULL) {
                soft_shadow_mark(places[i][lane].shadow, places[i][lane].offset, p.bytes);
            }
            memcpy(piece_at(&p, &whole, places, i, lane), &word, p.bytes);
        }
    }
    return in + 1;
}
