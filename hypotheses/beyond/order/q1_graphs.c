/*
 * Attacks on Q1, graphs that are built node by node: each edge is the only way from its first node
 * to its second, so that a graph without it has less order.
 */
#include "order_stage.h"

#include <string.h>

enum { NODES = 10, NODE_BLOCKS = 4, NODE_LAUNCHES = 2 };

struct node_block {
    struct tol_buffer *buffer;
    uint32_t stamp, first_stamp; /* of the node that writes it last, and before each launch */
    unsigned writers, readers;   /* the node that writes it last, and those that read it since */
};

struct node_graph {
    struct order_stage stage;
    struct tol_stream *stream;
    struct node_block blocks[NODE_BLOCKS];
    unsigned before[NODES]; /* the nodes before each, as bits */
};

/* The nodes that must be before one, without those that are before another of them. */
static unsigned nodes_needed(const struct node_graph *g, unsigned wanted, unsigned after[NODES]) {
    unsigned covered = 0, count = 0;
    for (unsigned n = NODES; n-- > 0;) {
        if ((wanted >> n & 1) == 0 || (covered >> n & 1) != 0) continue;
        after[count++] = n;
        covered |= g->before[n];
    }
    return count;
}

static bool node_add(struct hyp_attack *attack, struct node_graph *g, struct tol_graph *graph,
                     unsigned number) {
    unsigned after[NODES], node = 0;
    struct order_call call;
    const unsigned i = (unsigned)hyp_random_below(attack, NODE_BLOCKS);
    const unsigned more = 1 + (unsigned)hyp_random_below(attack, NODE_BLOCKS - 1);
    struct node_block *from = &g->blocks[i], *to = &g->blocks[(i + more) % NODE_BLOCKS];
    const unsigned wanted = from->writers | to->writers | to->readers;
    const unsigned count = nodes_needed(g, wanted, after);
    g->before[number] = wanted;
    for (unsigned k = 0; k < count; k++) g->before[number] |= g->before[after[k]];
    const struct order_pass pass = {.from = tol_buffer_address(from->buffer),
                                    .expected = from->stamp,
                                    .to = tol_buffer_address(to->buffer),
                                    .written = order_stamp(&g->stage),
                                    .is_slow = hyp_random_below(attack, 4) > 0};
    to->stamp = pass.written;
    to->writers = 1u << number;
    to->readers = 0;
    from->readers |= 1u << number;
    return HYP_OK(attack, tol_graph_add_kernel(graph, g->stage.pass, order_shape(),
                                               order_arguments(&g->stage, pass, &call),
                                               count > 0 ? after : NULL, count, &node)) &&
           HYP_CHECK(attack, node == number, "node %u has the number %u", number, node);
}

/* The stream writes the blocks before the graph, and compares them after it. */
static bool nodes_launch(struct hyp_attack *attack, struct node_graph *g,
                         struct tol_graph_exec *exec) {
    bool ok = true;
    for (unsigned b = 0; ok && b < NODE_BLOCKS; b++) {
        const struct order_pass pass = {.to = tol_buffer_address(g->blocks[b].buffer),
                                        .written = g->blocks[b].first_stamp,
                                        .is_slow = b == 0};
        ok = HYP_OK(attack, order_launch(&g->stage, g->stream, pass));
    }
    ok = ok && HYP_OK(attack, tol_graph_launch(exec, g->stream));
    for (unsigned b = 0; ok && b < NODE_BLOCKS; b++) {
        const struct order_pass pass = {.from = tol_buffer_address(g->blocks[b].buffer),
                                        .expected = g->blocks[b].stamp};
        ok = HYP_OK(attack, order_launch(&g->stage, g->stream, pass));
    }
    return ok;
}

/* A graph, and a copy of it: each launched several times. */
static bool nodes_round(struct hyp_attack *attack, struct node_graph *g) {
    struct tol_graph *graph = NULL, *copy = NULL;
    struct tol_graph_exec *execs[2] = {NULL, NULL};
    for (unsigned b = 0; b < NODE_BLOCKS; b++) {
        struct node_block *block = &g->blocks[b];
        block->stamp = block->first_stamp = order_stamp(&g->stage);
        block->writers = block->readers = 0;
    }
    memset(g->before, 0, sizeof g->before);
    bool ok = HYP_OK(attack, tol_graph_create(attack->context, &graph));
    for (unsigned n = 0; ok && n < NODES; n++) ok = node_add(attack, g, graph, n);
    ok = ok && HYP_OK(attack, tol_graph_clone(graph, &copy)) &&
         HYP_OK(attack, tol_graph_instantiate(graph, &execs[0])) &&
         HYP_OK(attack, tol_graph_instantiate(copy, &execs[1]));
    for (unsigned i = 0; ok && i < 2 * NODE_LAUNCHES; i++) {
        ok = nodes_launch(attack, g, execs[i % 2]);
    }
    ok = ok && order_stage_settle(&g->stage) && order_stage_judge(&g->stage, "graphs of nodes");
    for (unsigned i = 0; i < 2; i++) tol_graph_exec_destroy(execs[i]);
    tol_graph_destroy(copy);
    tol_graph_destroy(graph);
    return ok;
}

static void nodes_attack(struct hyp_attack *attack) {
    struct node_graph g = {.stream = NULL};
    const unsigned rounds = attack->session.full ? 80 : 20;
    bool ok = order_stage_begin(attack, &g.stage) &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &g.stream));
    for (unsigned b = 0; ok && b < NODE_BLOCKS; b++) {
        ok =
            HYP_OK(attack, tol_buffer_create(attack->context, ORDER_WORDS, 4, &g.blocks[b].buffer));
    }
    for (unsigned i = 0; ok && i < rounds; i++) {
        ok = nodes_round(attack, &g);
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
    order_stage_end(&g.stage);
    tol_stream_destroy(g.stream);
    for (unsigned b = 0; b < NODE_BLOCKS; b++) tol_buffer_destroy(g.blocks[b].buffer);
}

HYP_ATTACK_WITH(q1, graphs_keep_their_edges, .many_queues = true, .soft_order = "newest") {
    nodes_attack(attack);
}

HYP_ATTACK_WITH(q1, graphs_in_a_drawn_order_keep_their_edges, .many_queues = true,
                .soft_order = "drawn") {
    nodes_attack(attack);
}
