/*
 * Counts tiles and waves of tiles, and compares estimated times. Constants are measured on an H100
 * or an H200; reports/notes/2026-11-23-hopper-on-an-h200.md and 2026-11-28-designs-on-an-h100.md
 * have the measurements.
 */
#include "choose/cost.h"

#include <math.h>

enum { CLUSTER_STEPS = 256, TILE_ROWS = 128, FEW = 64, PACKED_STEPS = 64 };

/* Operations per second with tensor maps; bytes per second of packing, read and written. */
static const double packed_rates[KN_COST_ARITHMETICS] = {600e12, 350e12, 110e12};
static const double packing_rate = 3e12, launch_seconds = 5e-6;
/* Without tensor maps: cp.async for aligned rows, elements through registers for others, and a
 * chain of fused multiply-adds in place of parts. */
static const double aligned_rate = 180e12, gathered_rate = 65e12, chained_rate = 40e12;

static double cost_waves(double tiles) {
    return ceil(tiles / KN_COST_MULTIPROCESSORS);
}

bool kn_cost_wide_wins(double wide_tiles, double wide_time, double narrow_tiles) {
    return wide_time * cost_waves(wide_tiles) <= cost_waves(narrow_tiles);
}

static double cost_tiles(const struct kn_cost_product *p, double rows, double columns) {
    return ceil(p->m / rows) * ceil(p->n / columns) * p->batch;
}

/* A tile of half the columns takes 0.52 of the time, or 0.65 if a factor comes from registers. */
static bool cost_wide_wins(const struct kn_cost_product *p, double columns) {
    return kn_cost_wide_wins(cost_tiles(p, TILE_ROWS, columns),
                             1 / (p->from_registers ? 0.65 : 0.52),
                             cost_tiles(p, TILE_ROWS, columns / 2));
}

/* With more tiles those of 64 columns win: an H200 runs fewer than 32 clusters of four at once. */
static bool cost_cluster_wins(const struct kn_cost_product *p, const struct kn_variant *row) {
    return cost_tiles(p, row->tile[0], row->tile[1]) * row->cluster <=
               KN_COST_MULTIPROCESSORS / 2 &&
           p->k >= CLUSTER_STEPS * row->cluster;
}

static bool cost_narrow_wins(const struct kn_cost_product *p, const struct kn_variant *row) {
    return cost_tiles(p, row->tile[0], row->tile[1]) * row->cluster <= KN_COST_MULTIPROCESSORS &&
           p->k >= CLUSTER_STEPS * row->cluster;
}

static bool cost_packing_pays(const struct kn_cost_product *p) {
    const double operations = 2 * p->m * p->n * p->k * p->batch;
    const double packed = operations / packed_rates[p->arithmetic] +
                          2 * p->packed_bytes / packing_rate + launch_seconds;
    if (p->arithmetic == KN_COST_PARTS) {
        return p->k >= PACKED_STEPS && packed < operations / chained_rate;
    }
    return packed < operations / (p->is_aligned ? aligned_rate : gathered_rate);
}

const char *kn_cost_declines(const struct kn_variant *row, const struct kn_cost_product *p) {
    const unsigned cost = row->cost;
    const double tiles = cost_tiles(p, row->tile[0], row->tile[1]);
    const bool is_few = p->m <= FEW || p->n <= FEW;
    if ((cost & KN_COST_NO_SPLIT) != 0 && p->has_split && is_few) return "it is for more rows";
    if ((cost & KN_COST_PACKED) != 0 && !cost_packing_pays(p)) {
        return "copies cost more than they save";
    }
    if ((cost & KN_COST_WIDE) != 0 && !cost_wide_wins(p, row->tile[1])) {
        return "smaller tiles fill a device better";
    }
    if ((cost & KN_COST_CLUSTER) != 0 && !cost_cluster_wins(p, row)) {
        return "fewer blocks can share a tile";
    }
    if ((cost & KN_COST_NARROW) != 0 && !cost_narrow_wins(p, row)) return "wider tiles are enough";
    if (((cost & KN_COST_TWO_WAVES) != 0 && tiles < 2 * KN_COST_MULTIPROCESSORS) ||
        ((cost & KN_COST_FULL) != 0 && tiles < 128) ||
        ((cost & KN_COST_MOST) != 0 && tiles < 512)) {
        return "there are too few of its tiles";
    }
    return (cost & KN_COST_LARGE) != 0 && p->m <= FEW && p->n <= FEW ? "a tile of 64 is enough"
                                                                     : NULL;
}
