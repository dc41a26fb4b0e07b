/*
 * Addresses without the wide gaps between the ranges that were used.
 */
#include "replay_map.h"

#include "files/atomic_file.h"

#include <stdlib.h>

typedef unsigned long long number;

/* The picture, in its own units. */
enum {
    WIDTH = 1000,
    LEFT = 20,
    RIGHT = 980,
    MAP_TOP = 60,
    MAP_BOTTOM = 460,
    CURVE_TOP = 490,
    CURVE_BOTTOM = 590,
    HEIGHT = 630,
    CURVE_POINTS = 960,
    WIDE_GAPS = 16 /* a gap wider than this part of the used addresses is cut out */
};

/* A range of addresses without a wide gap, and how many drawn bytes lie below it. */
struct map_range {
    uint64_t begin, end, below;
};

struct map {
    const struct hyp_replay_setting *setting;
    const struct hyp_replay_row *row;
    struct hyp_replay_place *places; /* that were served */
    size_t count;
    struct map_range *ranges;
    size_t range_count;
    uint64_t drawn; /* bytes of addresses */
};

bool hyp_replay_map_begin(struct hyp_replay *replay) {
    replay->places = calloc((size_t)replay->trace->blocks + 1, sizeof *replay->places);
    replay->held_after = calloc(replay->trace->count, sizeof *replay->held_after);
    return (replay->places != NULL && replay->held_after != NULL) ||
           hyp_fail("out of host memory for a map");
}

void hyp_replay_map_free(struct hyp_replay *replay) {
    free(replay->places);
    free(replay->held_after);
    replay->places = NULL;
    replay->held_after = NULL;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static int map_by_address(const void *a, const void *b) {
    const struct hyp_replay_place *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static double map_room_of(const struct hyp_replay_place *place) {
    return (double)place->bytes * (double)(place->end - place->begin);
}

static int map_by_room(const void *a, const void *b) {
    const double x = map_room_of(a), y = map_room_of(b);
    return (x < y) - (x > y);
}

/* Bytes that any block ever used. The places are in the order of their addresses. */
static uint64_t map_used(const struct map *map) {
    uint64_t used = 0, end = 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct hyp_replay_place *place = &map->places[i];
        const uint64_t from = place->address > end ? place->address : end;
        if (place->address + place->bytes <= from) continue;
        end = place->address + place->bytes;
        used += end - from;
    }
    return used;
}

static void map_make_ranges(struct map *map) {
    const uint64_t gap = map_used(map) / WIDE_GAPS;
    for (size_t i = 0; i < map->count; i++) {
        const struct hyp_replay_place *place = &map->places[i];
        const uint64_t end = place->address + place->bytes;
        struct map_range *last = map->range_count > 0 ? &map->ranges[map->range_count - 1] : NULL;
        if (last != NULL && place->address <= last->end + gap) {
            if (end > last->end) last->end = end;
            continue;
        }
        const uint64_t below = last != NULL ? last->below + (last->end - last->begin) + gap / 2 : 0;
        map->ranges[map->range_count++] = (struct map_range){place->address, end, below};
    }
    const struct map_range *top = &map->ranges[map->range_count - 1];
    map->drawn = top->below + (top->end - top->begin);
}

static bool map_begin(struct map *map) {
    const struct hyp_replay *replay = &map->row->replay;
    const size_t blocks = replay->trace->blocks;
    map->places = calloc(blocks + 1, sizeof *map->places);
    map->ranges = calloc(blocks + 1, sizeof *map->ranges);
    if (map->places == NULL || map->ranges == NULL) {
        return hyp_fail("out of host memory for a map of %zu blocks", blocks);
    }
    for (size_t i = 0; i < blocks; i++) {
        if (replay->places[i].bytes > 0) map->places[map->count++] = replay->places[i];
    }
    if (map->count == 0) return true;
    qsort(map->places, map->count, sizeof *map->places, map_by_address);
    map_make_ranges(map);
    qsort(map->places, map->count, sizeof *map->places, map_by_room);
    return true;
}

static double map_y(const struct map *map, uint64_t address) {
    size_t low = 0, high = map->range_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(map->ranges[middle].begin <= address ? &low : &high) = middle;
    }
    const uint64_t drawn = map->ranges[low].below + (address - map->ranges[low].begin);
    return MAP_BOTTOM - (double)drawn / (double)map->drawn * (MAP_BOTTOM - MAP_TOP);
}

static double map_x(const struct map *map, size_t index) {
    return LEFT + (double)index / (double)map->setting->trace->count * (RIGHT - LEFT);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static const char map_style[] =
    "<style>svg{background:#fff;color:#222;font:14px sans-serif}text{fill:currentColor}"
    ".block{fill:#8bb8e8;stroke:#fff;stroke-width:.3}.stays{fill:#2f6fb0}"
    ".held{stroke:#c0392b}.requested{stroke:#2f6fb0}.held,.requested{fill:none;stroke-width:1.5}"
    ".worst{stroke:#c0392b}.failed{stroke:#b8860b;stroke-dasharray:6 4}.worst,.failed{"
    "stroke-width:1.5}.edge{fill:none;stroke:currentColor;stroke-width:.5}"
    "@media(prefers-color-scheme:dark){svg{background:#181818;color:#ddd}.block{stroke:#181818}}"
    "</style>\n";

static void map_draw_head(const struct map *map, FILE *out) {
    const struct hyp_replay *replay = &map->row->replay;
    const size_t shown = map->count < HYP_REPLAY_MAP_BLOCKS ? map->count : HYP_REPLAY_MAP_BLOCKS;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n"
            "<title>Addresses of the blocks over time</title>\n%s",
            WIDTH, HEIGHT, map_style);
    fprintf(out,
            "<text x=\"%d\" y=\"22\">profile %s: held at most %llu bytes, requested at most %llu; "
            "worst ratio %.4f at %s %llu, at the end %.4f</text>\n",
            LEFT, map->row->profile->name, (number)replay->held_peak,
            (number)replay->requested_peak, replay->worst, map->setting->trace->unit,
            (number)replay->worst_event, replay->final);
    fprintf(out,
            "<text x=\"%d\" y=\"44\">addresses (%llu bytes in %zu ranges); %zu of %zu blocks, dark "
            "if live at the end</text>\n",
            LEFT, (number)map->drawn, map->range_count, shown, map->count);
}

static void map_draw_blocks(const struct map *map, FILE *out) {
    const struct hyp_trace *trace = map->setting->trace;
    for (size_t i = 0; i < map->count && i < HYP_REPLAY_MAP_BLOCKS; i++) {
        const struct hyp_replay_place *place = &map->places[i];
        const double top = map_y(map, place->address + place->bytes - 1);
        const double x = map_x(map, place->begin);
        fprintf(out,
                "<rect class=\"block%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">"
                "<title>%llu bytes from %s %llu</title></rect>\n",
                place->end == trace->count ? " stays" : "", x, top, map_x(map, place->end) - x,
                map_y(map, place->address) - top, (number)place->bytes, trace->unit,
                (number)trace->events[place->begin].number);
    }
    fprintf(out, "<rect class=\"edge\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT,
            MAP_TOP, RIGHT - LEFT, MAP_BOTTOM - MAP_TOP);
}

static void map_draw_curve(const struct map *map, FILE *out, const char *name,
                           const uint64_t *bytes) {
    const size_t count = map->setting->trace->count;
    const uint64_t most = map->row->replay.held_peak;
    fprintf(out, "<polyline class=\"%s\" points=\"", name);
    for (size_t i = 0; i < count; i++) {
        /* The same column of the picture needs no two points. */
        if (i > 0 && i + 1 < count && i * CURVE_POINTS / count == (i - 1) * CURVE_POINTS / count) {
            continue;
        }
        fprintf(out, "%.2f,%.2f ", map_x(map, i),
                CURVE_BOTTOM - (double)bytes[i] / (double)most * (CURVE_BOTTOM - CURVE_TOP));
    }
    fprintf(out, "\"/>\n");
}

/* What was requested after each event, from the blocks that were served. */
static bool map_draw_curves(const struct map *map, FILE *out) {
    const struct hyp_trace *trace = map->setting->trace;
    uint64_t *requested = calloc(trace->count + 1, sizeof *requested);
    if (requested == NULL) return hyp_fail("out of host memory for %zu events", trace->count);
    for (size_t i = 0; i < map->count; i++) {
        requested[map->places[i].begin] += map->places[i].bytes;
        requested[map->places[i].end] -= map->places[i].bytes;
    }
    for (size_t i = 1; i < trace->count; i++) requested[i] += requested[i - 1];
    if (map->row->replay.held_peak > 0) {
        map_draw_curve(map, out, "held", map->row->replay.held_after);
        map_draw_curve(map, out, "requested", requested);
    }
    free(requested);
    fprintf(out,
            "<text x=\"%d\" y=\"%d\">bytes held (red) and requested (blue), up to %llu; from %s "
            "%llu to %llu</text>\n",
            LEFT, HEIGHT - 14, (number)map->row->replay.held_peak, trace->unit,
            (number)trace->events[0].number, (number)trace->events[trace->count - 1].number);
    return true;
}

/* The words are on the side that has more room. */
static void map_draw_mark(const struct map *map, FILE *out, const char *name, size_t index) {
    const double x = map_x(map, index);
    const bool is_left = x > WIDTH / 2.0;
    fprintf(out,
            "<line class=\"%s\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/><text x=\"%.2f\" "
            "y=\"%d\" text-anchor=\"%s\">%s</text>\n",
            name, x, x, MAP_TOP, CURVE_BOTTOM, is_left ? x - 4 : x + 4, MAP_BOTTOM + 20,
            is_left ? "end" : "start", name);
}

static bool map_draw(const struct map *map, FILE *out) {
    const struct hyp_replay *replay = &map->row->replay;
    map_draw_head(map, out);
    map_draw_blocks(map, out);
    if (!map_draw_curves(map, out)) return false;
    if (replay->worst > 0) map_draw_mark(map, out, "worst", replay->worst_index);
    if (replay->unserved > 0) map_draw_mark(map, out, "failed", replay->first_unserved.index);
    fprintf(out, "</svg>\n");
    return true;
}

bool hyp_replay_map_write(const struct hyp_replay_setting *setting,
                          const struct hyp_replay_row *row, const char *folder) {
    struct map map = {.setting = setting, .row = row};
    struct hyp_file file;
    char path[1100];
    snprintf(path, sizeof path, "%s/map.svg", folder);
    bool ok = map_begin(&map) && hyp_file_begin(&file, path);
    if (ok) {
        ok = map_draw(&map, file.stream);
        if (ok)
            ok = hyp_file_keep(&file);
        else
            hyp_file_drop(&file);
    }
    free(map.places);
    free(map.ranges);
    return ok;
}
