/*
 * Replay map: a picture of a replay, as SVG. Addresses from bottom to top, events from left to
 * right, a rectangle per block, and below it what was held and requested. The moment with the worst
 * ratio and the first allocation that failed are marked.
 */
#ifndef HYP_REPLAY_MAP_H
#define HYP_REPLAY_MAP_H

#include "replay_report.h"

/* Blocks that are drawn: those that take the most room. The picture says how many are left out. */
enum { HYP_REPLAY_MAP_BLOCKS = 4000 };

/* Gives a replay what the picture needs, before it runs. false: no memory. */
bool hyp_replay_map_begin(struct hyp_replay *replay);
void hyp_replay_map_free(struct hyp_replay *replay);

/* Writes FOLDER/map.svg. false: hyp_error(). */
bool hyp_replay_map_write(const struct hyp_replay_setting *setting,
                          const struct hyp_replay_row *row, const char *folder);

#endif
