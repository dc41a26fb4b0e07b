/*
 * The control flow graph: where lanes that diverge at a branch reconverge.
 *
 * That is the branch's immediate post-dominator, the first block on every path from the branch to
 * the end. Post-dominators are found on the reversed graph by the iteration of Cooper, Harvey and
 * Kennedy ("A simple, fast dominance algorithm", 2001). A join is inserted before each such block;
 * a branch whose paths meet only at the end has none.
 */
#include "lower.h"

#include <string.h>

struct block {
    uint32_t begin, end; /* drafts */
    uint32_t *successor, successors;
    uint32_t post;  /* the immediate post-dominator; the exit is block number count */
    uint32_t order; /* in the reversed graph's reverse post-order */
    bool meets;
};

struct graph {
    struct block *blocks;
    uint32_t count;
    uint32_t *block_of;               /* each draft's */
    uint32_t *sequence;               /* blocks, exit first, in the order to iterate */
    uint32_t *sources, *source_begin; /* predecessors, to walk the graph backward */
};

bool soft_ends_block(const struct soft_draft *draft) {
    switch (draft->op) {
    case SOFT_OP_bra:
    case SOFT_OP_bra_if:
    case SOFT_OP_brx:
    case SOFT_OP_exit:
    case SOFT_OP_trap:
    case SOFT_OP_ret:
    case SOFT_OP_call_indirect: /* lanes with different functions reconverge after it */
        return true;
    default:
        return false;
    }
}

/* A guarded exit or trap lets the other lanes through. */
static bool falls_through(const struct soft_draft *draft) {
    if (draft->op == SOFT_OP_bra || draft->op == SOFT_OP_brx || draft->op == SOFT_OP_ret)
        return false;
    if (draft->op == SOFT_OP_exit || draft->op == SOFT_OP_trap) {
        return (draft->mode & SOFT_BRANCH_GUARDED) != 0;
    }
    return true;
}

static bool control_flow_cut(struct soft_lowering *lowering, struct graph *graph) {
    uint32_t drafts = lowering->draft_count;
    bool *leads = SOFT_ARENA_ARRAY(lowering->scratch, bool, drafts + 1);
    graph->block_of = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, drafts + 1);
    if (leads == NULL || graph->block_of == NULL) return LOWER_NO_MEMORY(lowering);
    leads[0] = true;
    for (uint32_t i = 0; i < drafts; i++) {
        const struct soft_draft *draft = &lowering->drafts[i];
        if (draft->target != SOFT_NO_LABEL) leads[draft->target] = true;
        for (uint32_t t = 0; t < draft->target_count; t++) leads[draft->targets[t]] = true;
        if (soft_ends_block(draft)) leads[i + 1] = true;
    }
    for (uint32_t i = 0; i < drafts; i++) graph->count += leads[i];
    graph->blocks = SOFT_ARENA_ARRAY(lowering->scratch, struct block, graph->count + 1);
    if (graph->blocks == NULL) return LOWER_NO_MEMORY(lowering);
    uint32_t block = UINT32_MAX;
    for (uint32_t i = 0; i < drafts; i++) {
        if (leads[i]) graph->blocks[++block].begin = i;
        graph->blocks[block].end = i + 1;
        graph->block_of[i] = block;
    }
    return true;
}

static void add_successor(struct block *block, uint32_t to) {
    for (uint32_t s = 0; s < block->successors; s++) {
        if (block->successor[s] == to) return;
    }
    block->successor[block->successors++] = to;
}

static bool control_flow_connect(struct soft_lowering *lowering, struct graph *graph) {
    for (uint32_t b = 0; b < graph->count; b++) {
        struct block *block = &graph->blocks[b];
        const struct soft_draft *last = &lowering->drafts[block->end - 1];
        block->successor = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, last->target_count + 2);
        if (block->successor == NULL) return LOWER_NO_MEMORY(lowering);
        for (uint32_t t = 0; t < last->target_count; t++) {
            add_successor(block, graph->block_of[last->targets[t]]);
        }
        if (last->target != SOFT_NO_LABEL) {
            uint32_t target =
                last->target < lowering->draft_count ? graph->block_of[last->target] : graph->count;
            add_successor(block, target);
        }
        if (falls_through(last) && b + 1 < graph->count) add_successor(block, b + 1);
        if (block->successors == 0) add_successor(block, graph->count);
    }
    return true;
}

static bool find_sources(struct soft_lowering *lowering, struct graph *graph) {
    uint32_t edges = 0;
    graph->source_begin = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, graph->count + 2);
    if (graph->source_begin == NULL) return LOWER_NO_MEMORY(lowering);
    for (uint32_t b = 0; b < graph->count; b++) {
        for (uint32_t s = 0; s < graph->blocks[b].successors; s++) {
            graph->source_begin[graph->blocks[b].successor[s] + 1]++;
            edges++;
        }
    }
    for (uint32_t b = 0; b <= graph->count; b++) {
        graph->source_begin[b + 1] += graph->source_begin[b];
    }
    graph->sources = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, edges);
    uint32_t *next = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, graph->count + 1);
    if (graph->sources == NULL || next == NULL) return LOWER_NO_MEMORY(lowering);
    memcpy(next, graph->source_begin, (graph->count + 1) * sizeof next[0]);
    for (uint32_t b = 0; b < graph->count; b++) {
        for (uint32_t s = 0; s < graph->blocks[b].successors; s++) {
            graph->sources[next[graph->blocks[b].successor[s]]++] = b;
        }
    }
    return true;
}

/* Numbers the blocks that reach the exit, in the reverse post-order of the reversed graph. Blocks
 * of an endless loop do not; their branches have no join. */
static bool number_blocks(struct soft_lowering *lowering, struct graph *graph, uint32_t *numbered) {
    uint32_t nodes = graph->count + 1;
    uint32_t *stack = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, nodes);
    uint32_t *at = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, nodes);
    graph->sequence = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, nodes);
    if (stack == NULL || at == NULL || graph->sequence == NULL) return LOWER_NO_MEMORY(lowering);
    for (uint32_t b = 0; b < nodes; b++) graph->blocks[b].order = UINT32_MAX;
    uint32_t depth = 0, done = nodes;
    stack[depth++] = graph->count;
    graph->blocks[graph->count].order = 0;
    at[graph->count] = graph->source_begin[graph->count];
    while (depth > 0) {
        uint32_t b = stack[depth - 1];
        if (at[b] < graph->source_begin[b + 1]) {
            uint32_t source = graph->sources[at[b]++];
            if (graph->blocks[source].order != UINT32_MAX) continue;
            graph->blocks[source].order = 0;
            at[source] = graph->source_begin[source];
            stack[depth++] = source;
        } else {
            graph->sequence[--done] = b;
            depth--;
        }
    }
    *numbered = nodes - done;
    memmove(graph->sequence, graph->sequence + done, *numbered * sizeof graph->sequence[0]);
    for (uint32_t i = 0; i < *numbered; i++) graph->blocks[graph->sequence[i]].order = i;
    return true;
}

static uint32_t control_flow_intersect(const struct graph *graph, uint32_t one, uint32_t other) {
    while (one != other) {
        while (graph->blocks[one].order > graph->blocks[other].order) one = graph->blocks[one].post;
        while (graph->blocks[other].order > graph->blocks[one].order) {
            other = graph->blocks[other].post;
        }
    }
    return one;
}

static void find_post_dominators(struct graph *graph, uint32_t numbered) {
    for (uint32_t b = 0; b <= graph->count; b++) graph->blocks[b].post = UINT32_MAX;
    graph->blocks[graph->count].post = graph->count;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < numbered; i++) {
            struct block *block = &graph->blocks[graph->sequence[i]];
            uint32_t post = UINT32_MAX;
            for (uint32_t s = 0; s < block->successors; s++) {
                uint32_t next = block->successor[s];
                if (graph->blocks[next].post == UINT32_MAX) continue;
                post = post == UINT32_MAX ? next : control_flow_intersect(graph, post, next);
            }
            if (post != block->post) {
                block->post = post;
                changed = true;
            }
        }
    }
}

/* Whether lanes go different ways from here. */
static bool control_flow_parts(const struct soft_draft *draft) {
    return draft->op == SOFT_OP_bra_if || draft->op == SOFT_OP_brx ||
           draft->op == SOFT_OP_call_indirect;
}

/* Inserts the joins, which moves all later drafts. */
static bool insert_joins(struct soft_lowering *lowering, struct graph *graph) {
    uint32_t joins = 0;
    for (uint32_t b = 0; b < graph->count; b++) {
        struct block *block = &graph->blocks[b];
        if (!control_flow_parts(&lowering->drafts[block->end - 1])) continue;
        if (block->post >= graph->count || graph->blocks[block->post].meets) continue;
        graph->blocks[block->post].meets = true;
        joins++;
    }
    uint32_t count = lowering->draft_count + joins, at = 0;
    struct soft_draft *drafts = SOFT_ARENA_ARRAY(lowering->scratch, struct soft_draft, count);
    uint32_t *moved = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, lowering->draft_count + 1);
    if (drafts == NULL || moved == NULL) return LOWER_NO_MEMORY(lowering);
    for (uint32_t b = 0; b < graph->count; b++) {
        const struct block *block = &graph->blocks[b];
        for (uint32_t i = block->begin; i < block->end; i++) {
            if (i == block->begin) moved[i] = at; /* a branch to the block goes to its join */
            if (i == block->begin && block->meets) {
                drafts[at] = lowering->drafts[i];
                drafts[at].op = SOFT_OP_join;
                drafts[at].d = drafts[at].a = drafts[at].b = drafts[at].c = drafts[at].e =
                    SOFT_NO_VALUE;
                drafts[at].target = drafts[at].join = SOFT_NO_LABEL;
                drafts[at].extra_count = drafts[at].target_count = 0;
                drafts[at].has_site = drafts[at].guarded = drafts[at].polls = false;
                drafts[at].mode = 0;
                at++;
            }
            drafts[at++] = lowering->drafts[i];
        }
    }
    for (uint32_t i = 0; i < at; i++) {
        if (drafts[i].target != SOFT_NO_LABEL) drafts[i].target = moved[drafts[i].target];
        for (uint32_t t = 0; t < drafts[i].target_count; t++) {
            drafts[i].targets[t] = moved[drafts[i].targets[t]];
        }
    }
    at = 0;
    for (uint32_t b = 0; b < graph->count; b++) {
        const struct block *block = &graph->blocks[b];
        at += block->end - block->begin + block->meets;
        struct soft_draft *last = &drafts[at - 1];
        if (control_flow_parts(last) && block->post < graph->count) {
            last->join = moved[graph->blocks[block->post].begin];
        }
    }
    lowering->drafts = drafts;
    lowering->draft_count = lowering->draft_room = count;
    return true;
}

bool soft_graph_joins(struct soft_lowering *lowering) {
    struct graph graph = {0};
    uint32_t numbered = 0;
    if (!control_flow_cut(lowering, &graph)) return false;
    if (!control_flow_connect(lowering, &graph)) return false;
    if (!find_sources(lowering, &graph) || !number_blocks(lowering, &graph, &numbered))
        return false;
    find_post_dominators(&graph, numbered);
    return insert_joins(lowering, &graph);
}
