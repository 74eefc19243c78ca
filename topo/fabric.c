/* Links of a fabric have this order: inside innermost domains; NICs; uplinks, by level.
 * Of two directions of a link the one away from the GPU comes first. */
#include "topo/fabric.h"

#include "base/number.h"
#include "topo/fabric_priv.h"

#include <math.h>

static long divide_up(long a, long b)
{
    return (a + b - 1) / b;
}

/* ---- making ---- */

typedef struct builder {
    const ms_cluster *cluster;
    long num_gpus;
    ms_fabric_details *details;
    ms_link *links; /* links to fill; NULL in the first pass, which only counts them */
    int *torus_link;
    long num;
} builder;

static void add_link(builder *b, ms_link link)
{
    if (b->links != NULL)
        b->links[b->num] = link;
    b->num++;
}

static void add_pair(builder *b, ms_link link)
{
    link.out = true;
    add_link(b, link);
    link.out = false;
    add_link(b, link);
}

/* Number of GPUs in a domain that belong to the job. */
static long gpus_present(const builder *b, long domain, int level)
{
    long size = b->details->place.domain_ranks[level], left = b->num_gpus - domain * size;
    return left < size ? left : size;
}

/* Adds the directed links from one GPU of a full-mesh domain to the others. */
static void add_peer_links_of_gpu(builder *b, long domain, long from, double rate)
{
    long size = b->details->place.domain_ranks[0], here = gpus_present(b, domain, 0);
    for (long to = 0; to < here; to++) {
        if (from == to)
            continue;
        add_link(b, (ms_link){.kind = MS_LINK_PEER,
                              .out = from < to,
                              .index = (domain * size + from) * size + to,
                              .bytes_per_s = rate});
    }
}

static void add_peer_links(builder *b)
{
    long size = b->details->place.domain_ranks[0];
    const ms_level *level = &b->cluster->levels[0];
    double rate = level->bandwidth_bytes_per_s / ((double)ms_level_gpus(level) - 1.0);
    for (long gpu = 0; gpu < b->num_gpus; gpu++)
        add_peer_links_of_gpu(b, gpu / size, gpu % size, rate);
}

/* Adds the two directed links per dimension that start at one position of a torus. */
static void add_torus_links_of_position(builder *b, long place, const long *coordinate)
{
    const ms_torus *torus = &b->details->torus;
    const ms_level *level = &b->cluster->levels[0];
    double rate = level->bandwidth_bytes_per_s / (2.0 * (double)level->num_dims);
    for (int dim = 0; dim < torus->num_dims; dim++) {
        for (int up = 0; up < 2; up++) {
            long end = up ? torus->side[dim] - 1 : 0;
            if (torus->side[dim] == 1 || (!torus->closed[dim] && coordinate[dim] == end))
                continue;
            if (b->torus_link != NULL)
                b->torus_link[place * 2 * MS_MAX_TORUS_DIMS + 2 * dim + up] = (int)b->num;
            add_link(b, (ms_link){.kind = MS_LINK_TORUS,
                                  .out = up,
                                  .index = place * MS_MAX_TORUS_DIMS + dim,
                                  .bytes_per_s = rate});
        }
    }
}

static void add_torus_links(builder *b)
{
    const ms_fabric_details *d = b->details;
    long num_places = divide_up(b->num_gpus, d->place.domain_ranks[0]) * d->positions;
    for (long place = 0; place < num_places; place++) {
        long coordinate[MS_MAX_TORUS_DIMS];
        ms_torus_coordinates(&d->torus, place % d->positions, coordinate);
        add_torus_links_of_position(b, place, coordinate);
    }
}

static void add_inner(builder *b)
{
    const ms_level *level = &b->cluster->levels[0];
    b->details->first_inner = (int)b->num;
    if (level->topology == MS_FULL_MESH)
        add_peer_links(b);
    else if (level->topology == MS_TORUS)
        add_torus_links(b);
    else {
        for (long gpu = 0; gpu < b->num_gpus; gpu++)
            add_pair(b, (ms_link){.kind = MS_LINK_PORT,
                                  .index = gpu,
                                  .bytes_per_s = level->bandwidth_bytes_per_s});
    }
}

/* Adds NICs, each with the bandwidth of all the GPUs that share it. */
static void add_nics(builder *b)
{
    const ms_level *level = &b->cluster->levels[1];
    b->details->first_nic = (int)b->num;
    const ms_allocation *place = &b->details->place;
    long num_nics = ms_nic_of(place, b->num_gpus - 1) + 1;
    for (long nic = 0; nic < num_nics; nic++) {
        add_pair(b, (ms_link){.kind = MS_LINK_NIC,
                              .level = 1,
                              .index = nic,
                              .bytes_per_s = level->bandwidth_bytes_per_s *
                                             (double)place->ranks_per_nic});
    }
}

/* Number of slots of `num` GPUs in an innermost domain that are on one rail. */
static long slots_on_rail(long num, long rails, long rail)
{
    return num / rails + (rail < num % rails);
}

static double gpus_on_rail(const builder *b, long domain, int level, long rail)
{
    long here = gpus_present(b, domain, level), rails = b->details->place.rails[level];
    long inner = b->details->place.domain_ranks[0];
    long gpus = here / inner * slots_on_rail(inner, rails, rail) +
                slots_on_rail(here % inner, rails, rail);
    return (double)gpus;
}

static void add_uplinks(builder *b, int level)
{
    const ms_level *above = &b->cluster->levels[level + 1];
    /* no uplinks if innermost domains are not oversubscribed */
    b->details->first_uplink[level] = -1;
    if (level == 0 && above->oversubscription <= 1.0)
        return;
    b->details->first_uplink[level] = (int)b->num;
    double rate = above->bandwidth_bytes_per_s / above->oversubscription;
    long rails = b->details->place.rails[level];
    long num_domains = divide_up(b->num_gpus, b->details->place.domain_ranks[level]);
    for (long domain = 0; domain < num_domains; domain++) {
        for (long rail = 0; rail < rails; rail++) {
            add_pair(
                b, (ms_link){.kind = MS_LINK_UPLINK,
                             .level = level,
                             .index = domain * rails + rail,
                             .bytes_per_s = rate * gpus_on_rail(b, domain, level, rail)});
        }
    }
}

static void add_all(builder *b)
{
    b->num = 0;
    add_inner(b);
    if (b->cluster->num_levels > 1)
        add_nics(b);
    for (int level = 0; level + 1 < b->cluster->num_levels; level++)
        add_uplinks(b, level);
}

static void set_shape(ms_arena *arena, builder *b, const ms_torus *torus)
{
    ms_fabric_details *d = b->details;
    const ms_cluster *cluster = b->cluster;
    d->place = ms_allocation_of(cluster, b->num_gpus);
    if (cluster->levels[0].topology != MS_TORUS)
        return;
    long size =
        b->num_gpus < d->place.domain_ranks[0] ? b->num_gpus : d->place.domain_ranks[0];
    d->torus = torus != NULL ? *torus : ms_torus_slice(&cluster->levels[0], size);
    d->positions = ms_torus_positions(&d->torus);
    long num = divide_up(b->num_gpus, d->place.domain_ranks[0]) * d->positions * 2 *
               MS_MAX_TORUS_DIMS;
    b->torus_link = MS_NEW_ARRAY(arena, num, int);
    for (long i = 0; i < num; i++)
        b->torus_link[i] = -1;
    d->torus_link = b->torus_link;
}

const ms_torus *ms_fabric_torus(const ms_fabric *fabric)
{
    return &fabric->details->torus;
}

const ms_fabric *ms_fabric_make(ms_arena *arena, const ms_cluster *cluster, long num_gpus,
                                const ms_torus *torus)
{
    builder b = {.cluster = cluster,
                 .num_gpus = num_gpus,
                 .details = MS_NEW(arena, ms_fabric_details)};
    set_shape(arena, &b, torus);
    add_all(&b);
    b.links = MS_NEW_ARRAY(arena, b.num, ms_link);
    add_all(&b);
    ms_fabric *fabric = MS_NEW(arena, ms_fabric);
    *fabric = (ms_fabric){.cluster = cluster,
                          .num_gpus = num_gpus,
                          .num_links = b.num,
                          .links = b.links,
                          .details = b.details};
    return fabric;
}

/* ---- routes ---- */

static int peer_link(const ms_fabric *fabric, long from, long to)
{
    const ms_fabric_details *d = fabric->details;
    long size = d->place.domain_ranks[0], domain = from / size;
    long left = fabric->num_gpus - domain * size, here = left < size ? left : size;
    long a = from % size, c = to % size;
    return d->first_inner +
           (int)(domain * size * (size - 1) + a * (here - 1) + (c < a ? c : c - 1));
}

static int route_inside_domain(const ms_fabric *fabric, long from, long to, bool upwards,
                               int *route)
{
    const ms_fabric_details *d = fabric->details;
    if (from == to)
        return 0;
    switch (fabric->cluster->levels[0].topology) {
    case MS_FULL_MESH:
        route[0] = peer_link(fabric, from, to);
        return 1;
    case MS_TORUS:
        return ms_torus_route(d, from, to, upwards, route);
    default:
        route[0] = d->first_inner + (int)(2 * from);
        route[1] = d->first_inner + (int)(2 * to + 1);
        return 2;
    }
}

static int uplink_index(const ms_fabric_details *d, int level, long gpu, bool out)
{
    long index = ms_domain_of(&d->place, level, gpu) * d->place.rails[level] +
                 ms_rail_of(&d->place, level, gpu);
    return d->first_uplink[level] + (int)(2 * index + !out);
}

/* The GPU near `from`, in its innermost domain, on the receiver's rail; if none, `from`. */
static long rail_gpu(const ms_fabric *fabric, long from, long to)
{
    const ms_allocation *p = &fabric->details->place;
    long rails = 1;
    for (int i = 1; i < fabric->cluster->num_levels; i++)
        rails = p->rails[i] > rails ? p->rails[i] : rails;
    long slot = ms_slot_of(p, from);
    long moved = slot - slot % rails + ms_slot_of(p, to) % rails;
    long gpu = from - slot + moved;
    return moved < p->domain_ranks[0] && gpu < fabric->num_gpus ? gpu : from;
}

static bool are_joined(const ms_allocation *p, int level, long a, long b)
{
    return ms_domain_of(p, level, a) == ms_domain_of(p, level, b) &&
           ms_rail_of(p, level, a) == ms_rail_of(p, level, b);
}

/* Writes links from the sender's NIC up to the lowest level whose domain and rail both
 * GPUs share, or the last level, and down to the receiver's NIC. Returns their number. */
static int route_between_domains(const ms_fabric *fabric, long from, long to, int *route)
{
    const ms_fabric_details *d = fabric->details;
    int num = 0, last = fabric->cluster->num_levels - 1, top = 1;
    while (top < last && !are_joined(&d->place, top, from, to))
        top++;
    route[num++] = d->first_nic + (int)(2 * ms_nic_of(&d->place, from));
    for (int i = 0; i < top; i++)
        if (d->first_uplink[i] >= 0)
            route[num++] = uplink_index(d, i, from, true);
    for (int i = top - 1; i >= 0; i--)
        if (d->first_uplink[i] >= 0)
            route[num++] = uplink_index(d, i, to, false);
    route[num++] = d->first_nic + (int)(2 * ms_nic_of(&d->place, to) + 1);
    return num;
}

int ms_fabric_route_either(const ms_fabric *fabric, long from, long to, bool upwards,
                           int route[MS_MAX_ROUTE])
{
    const ms_fabric_details *d = fabric->details;
    if (ms_domain_of(&d->place, 0, from) == ms_domain_of(&d->place, 0, to))
        return route_inside_domain(fabric, from, to, upwards, route);
    long exit_gpu = rail_gpu(fabric, from, to);
    int num = route_inside_domain(fabric, from, exit_gpu, upwards, route);
    return num + route_between_domains(fabric, exit_gpu, to, route + num);
}

int ms_fabric_route_own_nics(const ms_fabric *fabric, long from, long to,
                             int route[MS_MAX_ROUTE])
{
    const ms_allocation *p = &fabric->details->place;
    return ms_domain_of(p, 0, from) == ms_domain_of(p, 0, to)
               ? route_inside_domain(fabric, from, to, true, route)
               : route_between_domains(fabric, from, to, route);
}

int ms_fabric_route(const ms_fabric *fabric, long from, long to, int route[MS_MAX_ROUTE])
{
    return ms_fabric_route_either(fabric, from, to, true, route);
}
