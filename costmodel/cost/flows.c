#include "costmodel/cost/flows.h"

#include "costmodel/cost/collective_priv.h"
#include "topo/allocation.h"
#include "topo/torus.h"

#include <assert.h>
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

void ms_load_route(ms_link_load *load, long from, long to, double bytes)
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

/* A group of ranks that fills a box of a torus; arrays are indexed by torus dim first. */
typedef struct torus_box {
    const ms_torus *torus;
    long num[MS_MAX_TORUS_DIMS];
    long at[MS_MAX_TORUS_DIMS][MS_MAX_TORUS_SIDES];
    bool ring[MS_MAX_TORUS_DIMS];
    /* links per rank for the box alone, as in ms_torus_span */
    double wires[MS_MAX_TORUS_DIMS];
    double all_wires;
    long base; /* first GPU of the torus */
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
    box->wires[dim] = num > 1 ? (box->ring[dim] ? 2.0 : 1.0) * (double)num / extent : 0.0;
    box->all_wires += box->wires[dim];
}

/* Finds the box of torus positions that a group fills; false if it fills none. */
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

/* Adds a gather's bytes on the links between rank j and the next rank along a torus dim:
 * half each way on a ring. On an open line of `num` ranks the upward link carries what j
 * + 1 ranks contribute, the downward link what the other ranks contribute. */
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
            ms_load_route(load, ranks[i], ranks[(i + 1) % num_ranks], 0.5 * bytes);
            ms_load_route(load, ranks[(i + 1) % num_ranks], ranks[i], 0.5 * bytes);
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
                         bytes * box.wires[dim] / box.all_wires);
        }
    }
}

void ms_load_both_ways(ms_link_load *load, long from, long to, double bytes)
{
    add_way(load, from, to, true, 0.5 * bytes);
    add_way(load, from, to, false, 0.5 * bytes);
}

/* ---- domains ---- */

long ms_load_domain_size(const ms_link_load *load)
{
    return ms_allocation_of(load->fabric->cluster, load->fabric->num_gpus)
        .domain_ranks[0];
}

ms_domain_ranks ms_flow_domain(const ms_link_load *load, const ms_flow *flow, long first)
{
    const long *ranks = flow->ranks;
    long size = ms_load_domain_size(load), end = first + 1;
    while (end < flow->num_ranks && ranks[end] / size == ranks[first] / size)
        end++;
    return (ms_domain_ranks){ranks + first, end - first};
}

void ms_load_inside(ms_link_load *load, ms_domain_ranks domain, double bytes)
{
    const long *ranks = domain.ranks;
    int topology = load->fabric->cluster->levels[0].topology;
    if (domain.num < 2)
        return;
    if (topology == MS_TORUS) {
        add_torus_ring(load, ranks, domain.num, bytes);
        return;
    }
    if (topology == MS_SWITCH) {
        for (long i = 0; i < domain.num; i++)
            ms_load_route(load, ranks[i], ranks[(i + 1) % domain.num], bytes);
        return;
    }
    for (long i = 0; i < domain.num; i++)
        for (long j = 0; j < domain.num; j++)
            if (i != j)
                ms_load_route(load, ranks[i], ranks[j], bytes / (double)(domain.num - 1));
}

/* Matches senders and receivers in order, each with an equal part of the bytes, over
 * their own NICs: in units of 1 / (from.num * to.num) a sender has to.num parts and a receiver from.num. */
void ms_load_crossing(ms_link_load *load, ms_domain_ranks from, ms_domain_ranks to,
                      double bytes)
{
    double unit_bytes = bytes / ((double)from.num * (double)to.num);
    long sender = 0, receiver = 0, left = to.num, room = from.num;
    while (sender < from.num && receiver < to.num) {
        long moved = left < room ? left : room;
        int route[MS_MAX_ROUTE];
        int num = ms_fabric_route_own_nics(load->fabric, from.ranks[sender],
                                           to.ranks[receiver], route);
        add_links(load, route, num, unit_bytes * (double)moved);
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

void ms_flows_add(ms_link_load *load, ms_algorithm algorithm, const ms_flow *flow)
{
    if (flow->num_ranks >= 2 && flow->size_bytes > 0.0)
        ms_algorithm_row_of(algorithm)->add_loads(load, flow);
}
