#include "sim/flows.h"

#include "topo/torus.h"

#include <string.h>

ms_link_load ms_link_load_open(ms_arena *arena, const ms_fabric *fabric)
{
    return (ms_link_load){.fabric = fabric,
                          .wire_frac = 1.0,
                          .bytes = MS_NEW_ARRAY(arena, fabric->num_links, double),
                          .loaded = MS_NEW_ARRAY(arena, fabric->num_links, int),
                          .scratch = MS_NEW_ARRAY(arena, fabric->num_gpus, long)};
}

void ms_link_load_clear(ms_link_load *load)
{
    for (int i = 0; i < load->num_loaded; i++)
        load->bytes[load->loaded[i]] = 0.0;
    load->num_loaded = 0;
}

static void add_links(ms_link_load *load, const int *route, int num, double bytes)
{
    for (int i = 0; i < num; i++) {
        if (load->bytes[route[i]] == 0.0)
            load->loaded[load->num_loaded++] = route[i];
        load->bytes[route[i]] += bytes;
    }
}

static void add_route(ms_link_load *load, long from, long to, double bytes)
{
    int route[MS_MAX_ROUTE];
    if (bytes > 0.0)
        add_links(load, route, ms_fabric_route(load->fabric, from, to, route), bytes);
}

static void add_way(ms_link_load *load, long from, long to, bool upwards, double bytes)
{
    int route[MS_MAX_ROUTE];
    int num = ms_fabric_route_either(load->fabric, from, to, upwards, route);
    if (bytes > 0.0)
        add_links(load, route, num, bytes);
}

/* ---- a torus ---- */

/* A group that fills a box of torus positions: its coordinates in each dim, ascending,
 * and its links along each dim. */
typedef struct torus_box {
    const ms_torus *torus;
    long num[MS_MAX_TORUS_DIMS];
    long at[MS_MAX_TORUS_DIMS][MS_MAX_TORUS_SIDES];
    bool ring[MS_MAX_TORUS_DIMS];
    /* links per rank along the dim, as ms_torus_span counts them */
    double links_per_rank[MS_MAX_TORUS_DIMS];
    double all_links;
    long base; /* first GPU of the torus domain */
} torus_box;

static long gpu_at(const torus_box *box, const long *coordinate)
{
    return box->base + ms_torus_rank_at(box->torus, coordinate);
}

static void measure_dim(torus_box *box, int dim)
{
    const long *at = box->at[dim];
    long num = box->num[dim], widest = 0;
    for (long i = 1; i < num; i++)
        widest = at[i] - at[i - 1] > widest ? at[i] - at[i - 1] : widest;
    long rest = box->torus->side[dim] - (at[num - 1] - at[0]);
    box->ring[dim] = box->torus->closed[dim] && rest <= widest;
    double extent =
        (double)(box->ring[dim] ? box->torus->side[dim] : at[num - 1] - at[0] + widest);
    box->links_per_rank[dim] =
        num > 1 ? (box->ring[dim] ? 2.0 : 1.0) * (double)num / extent : 0.0;
    box->all_links += box->links_per_rank[dim];
}

/* Fills *box; returns false when the ranks fill no box. */
static bool find_box(const ms_fabric *fabric, const long *ranks, long num_ranks,
                     torus_box *box)
{
    const ms_level *level = &fabric->cluster->levels[0];
    long size = level->gpus_per_domain, filled = 1;
    bool seen[MS_MAX_TORUS_DIMS][MS_MAX_TORUS_SIDES] = {{false}};
    *box = (torus_box){.base = ranks[0] / size * size, .torus = ms_fabric_torus(fabric)};
    for (long i = 0; i < num_ranks; i++) {
        long coordinate[MS_MAX_TORUS_DIMS];
        ms_torus_locate(box->torus, ranks[i] - box->base, coordinate);
        for (int dim = 0; dim < box->torus->num_dims; dim++)
            seen[dim][coordinate[dim]] = true;
    }
    for (int dim = 0; dim < box->torus->num_dims; dim++) {
        for (long c = 0; c < box->torus->side[dim]; c++)
            if (seen[dim][c])
                box->at[dim][box->num[dim]++] = c;
        filled *= box->num[dim];
        measure_dim(box, dim);
    }
    return filled == num_ranks;
}

/* Adds the bytes between one rank and the next position of a dim, in both directions.
 * On a ring each direction carries half. On a line the link from place j upwards
 * carries the data of ranks 0 .. j of an all-gather, and the opposite direction the
 * data of the other ranks; reduce-scatters mirror this. */
static void add_dim_step(ms_link_load *load, const torus_box *box, int dim,
                         const long *coordinate, long j, double bytes)
{
    long num = box->num[dim], next[MS_MAX_TORUS_DIMS];
    bool last = j == num - 1;
    if (num < 2 || (last && !box->ring[dim]))
        return;
    memcpy(next, coordinate, sizeof next);
    next[dim] = box->at[dim][last ? 0 : j + 1];
    double up = 0.5, down = 0.5;
    if (!box->ring[dim]) {
        up = (double)(j + 1) / (double)(num - 1);
        down = (double)(num - 1 - j) / (double)(num - 1);
    }
    long from = gpu_at(box, coordinate), to = gpu_at(box, next);
    add_way(load, from, to, true, bytes * up);
    add_way(load, to, from, false, bytes * down);
}

static void add_torus_ring(ms_link_load *load, const long *ranks, long num_ranks,
                           double bytes)
{
    torus_box box;
    if (!find_box(load->fabric, ranks, num_ranks, &box)) {
        for (long i = 0; i < num_ranks; i++) {
            add_route(load, ranks[i], ranks[(i + 1) % num_ranks], 0.5 * bytes);
            add_route(load, ranks[(i + 1) % num_ranks], ranks[i], 0.5 * bytes);
        }
        return;
    }
    for (long i = 0; i < num_ranks; i++) {
        long coordinate[MS_MAX_TORUS_DIMS] = {0};
        ms_torus_locate(box.torus, ranks[i] - box.base, coordinate);
        for (int dim = 0; dim < box.torus->num_dims; dim++) {
            long j = 0;
            while (box.at[dim][j] != coordinate[dim])
                j++;
            add_dim_step(load, &box, dim, coordinate, j,
                         bytes * box.links_per_rank[dim] / box.all_links);
        }
    }
}

/* ---- one domain ---- */

/* Each rank sends `bytes` to the other ranks of its domain, as a ring all-gather
 * would. */
static void add_inside(ms_link_load *load, const long *ranks, long num_ranks,
                       double bytes)
{
    int topology = load->fabric->cluster->levels[0].topology;
    if (num_ranks < 2)
        return;
    if (topology == MS_TORUS) {
        add_torus_ring(load, ranks, num_ranks, bytes);
        return;
    }
    if (topology == MS_SWITCH) {
        for (long i = 0; i < num_ranks; i++)
            add_route(load, ranks[i], ranks[(i + 1) % num_ranks], bytes);
        return;
    }
    for (long i = 0; i < num_ranks; i++)
        for (long j = 0; j < num_ranks; j++)
            if (i != j)
                add_route(load, ranks[i], ranks[j], bytes / (double)(num_ranks - 1));
}

/* ---- several domains ---- */

/* Consecutive ranks of a group that lie in one domain. */
typedef struct segment {
    const long *ranks;
    long num;
} segment;

static long domain_size(const ms_fabric *fabric)
{
    long size = fabric->cluster->levels[0].gpus_per_domain;
    return size > 0 ? size : fabric->num_gpus;
}

/* The consecutive ranks of one domain that begin at index `first` of the group. */
static segment segment_at(const ms_fabric *fabric, const long *ranks, long num_ranks,
                          long first)
{
    long size = domain_size(fabric), end = first + 1;
    while (end < num_ranks && ranks[end] / size == ranks[first] / size)
        end++;
    return (segment){ranks + first, end - first};
}

/* Adds the bytes from one domain to another: all senders have equal shares, and so do
 * all receivers. Senders and receivers are paired in order. In units of 1 / (from.num
 * to.num) of the bytes, a sender sends to.num and a receiver receives from.num. */
static void add_crossing(ms_link_load *load, segment from, segment to, double bytes)
{
    double unit_bytes = bytes / ((double)from.num * (double)to.num);
    long sender = 0, receiver = 0, left = to.num, room = from.num;
    while (sender < from.num && receiver < to.num) {
        long moved = left < room ? left : room;
        add_route(load, from.ranks[sender], to.ranks[receiver],
                  unit_bytes * (double)moved);
        left -= moved;
        room -= moved;
        if (left == 0) {
            sender++;
            left = to.num;
        }
        if (room == 0) {
            receiver++;
            room = from.num;
        }
    }
}

static void add_ring(ms_link_load *load, const long *ranks, long num_ranks, double bytes)
{
    segment first = segment_at(load->fabric, ranks, num_ranks, 0);
    if (first.num == num_ranks) {
        add_inside(load, ranks, num_ranks, bytes);
        return;
    }
    for (long i = 0; i < num_ranks;) {
        segment here = segment_at(load->fabric, ranks, num_ranks, i);
        long end = i + here.num;
        segment next =
            end < num_ranks ? segment_at(load->fabric, ranks, num_ranks, end) : first;
        add_inside(load, here.ranks, here.num,
                   bytes * (double)(here.num - 1) / (double)here.num);
        add_crossing(load, here, next, bytes);
        i = end;
    }
}

/* Parent of a node in a binary tree whose leaves are the odd nodes; node 0 is the root.
 * Source: NVIDIA/nccl src/graph/trees.cc. */
static long tree_parent(long node, long num_nodes)
{
    long lowest = node & -node;
    long parent = (node ^ lowest) | (lowest << 1);
    return parent < num_nodes ? parent : node ^ lowest;
}

/* Domain of a node in the second tree, in which the leaves of the first tree are inner
 * nodes. */
static long second_tree_domain(long node, long num_nodes)
{
    return num_nodes % 2 == 0 ? num_nodes - 1 - node : (node + 1) % num_nodes;
}

static void add_edge(ms_link_load *load, segment a, segment b, double bytes)
{
    add_crossing(load, a, b, bytes);
    add_crossing(load, b, a, bytes);
}

static void add_tree(ms_link_load *load, const long *ranks, long num_ranks, double bytes)
{
    const ms_fabric *fabric = load->fabric;
    long num = 0, *first = load->scratch;
    for (long i = 0; i < num_ranks;) {
        segment here = segment_at(fabric, ranks, num_ranks, i);
        add_inside(load, here.ranks, here.num,
                   2.0 * bytes * (double)(here.num - 1) / (double)here.num);
        first[num++] = i;
        i += here.num;
    }
    for (long node = 1; node < num; node++) {
        for (int tree = 0; tree < 2; tree++) {
            long up = tree_parent(node, num);
            long a = tree == 0 ? node : second_tree_domain(node, num),
                 b = tree == 0 ? up : second_tree_domain(up, num);
            add_edge(load, segment_at(fabric, ranks, num_ranks, first[a]),
                     segment_at(fabric, ranks, num_ranks, first[b]), 0.5 * bytes);
        }
    }
}

/* ---- each to each ---- */

static void add_pairs(ms_link_load *load, const long *ranks, long num_ranks, double bytes,
                      bool inside_too)
{
    long size = domain_size(load->fabric);
    for (long i = 0; i < num_ranks; i++) {
        for (long j = 0; j < num_ranks; j++) {
            if (i == j || (!inside_too && ranks[i] / size == ranks[j] / size))
                continue;
            add_way(load, ranks[i], ranks[j], true, 0.5 * bytes);
            add_way(load, ranks[i], ranks[j], false, 0.5 * bytes);
        }
    }
}

/* Each rank sends `pair_bytes` to each other rank. Through a switch or over a mesh,
 * the load inside a domain equals that of a ring. */
static void add_direct(ms_link_load *load, const long *ranks, long num_ranks,
                       double pair_bytes)
{
    bool torus = load->fabric->cluster->levels[0].topology == MS_TORUS;
    for (long i = 0; i < num_ranks && !torus;) {
        segment here = segment_at(load->fabric, ranks, num_ranks, i);
        add_inside(load, here.ranks, here.num, pair_bytes * (double)(here.num - 1));
        i += here.num;
    }
    if (torus || segment_at(load->fabric, ranks, num_ranks, 0).num < num_ranks)
        add_pairs(load, ranks, num_ranks, load->wire_frac * pair_bytes, torus);
}

void ms_flows_add(ms_link_load *load, ms_collective collective, const char *algorithm,
                  const long *ranks, long num_ranks, double size_bytes)
{
    double n = (double)num_ranks;
    if (num_ranks < 2 || size_bytes <= 0.0)
        return;
    if (collective == MS_SEND) {
        for (long i = 0; i + 1 < num_ranks; i++)
            add_route(load, ranks[i], ranks[i + 1], size_bytes);
        return;
    }
    if (collective == MS_ALL_TO_ALL)
        add_direct(load, ranks, num_ranks, size_bytes / n);
    else if (strcmp(algorithm, "tree") == 0)
        add_tree(load, ranks, num_ranks, size_bytes);
    else if (strcmp(algorithm, "nvls") == 0)
        add_inside(load, ranks, num_ranks, (n + 1.0) / n * size_bytes);
    else
        add_ring(load, ranks, num_ranks,
                 ms_collective_wire_bytes(collective, num_ranks, size_bytes));
}
