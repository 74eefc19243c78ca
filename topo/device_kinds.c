#include "topo/device_kinds.h"

#include "base/number.h"
#include "base/units.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- which ranks ---- */

/* Iteration over ranges of GPUs in the order in which ranks take them. */
typedef struct range_walk {
    const ms_cluster *cluster;
    bool reversed;
    int group;  /* the group whose ranges are visited */
    int index;  /* range in the cluster */
    long start; /* first GPU of the range, counted in the order of ranks */
} range_walk;

static int group_of(const ms_cluster *cluster, int range)
{
    return cluster->kinds[cluster->ranges[range].kind].group;
}

static bool find_in_group(range_walk *w)
{
    while (w->index < w->cluster->num_ranges &&
           group_of(w->cluster, w->index) != w->group)
        w->index++;
    return w->index < w->cluster->num_ranges;
}

static bool start_walk(range_walk *w)
{
    w->group = w->reversed ? group_of(w->cluster, w->cluster->num_ranges - 1) : 0;
    return find_in_group(w);
}

static bool next_range(range_walk *w)
{
    long num_gpus = w->cluster->ranges[w->index].num_gpus;
    if (num_gpus == LONG_MAX)
        return false;
    w->start += num_gpus;
    w->index++;
    if (find_in_group(w))
        return true;
    w->group += w->reversed ? -1 : 1;
    w->index = 0;
    return find_in_group(w);
}

/* Number of a rank's GPU, in the order of ranks: domains may hold fewer ranks than GPUs. */
static long gpu_of(const ms_cluster *cluster, long rank)
{
    long ranks = cluster->levels[0].gpus_per_domain;
    long whole = ms_level_gpus(&cluster->levels[0]);
    return ranks == whole ? rank : rank / ranks * whole + rank % ranks;
}

static long range_end(const range_walk *w)
{
    long num_gpus = w->cluster->ranges[w->index].num_gpus;
    return num_gpus == LONG_MAX ? LONG_MAX : w->start + num_gpus;
}

ms_kind_set ms_kinds_of_ranks(const ms_cluster *cluster, bool reversed, long first,
                              long num)
{
    ms_kind_set kinds = 0;
    if (cluster->num_kinds == 0)
        return 0;
    long first_gpu = gpu_of(cluster, first), last_gpu = gpu_of(cluster, first + num - 1);
    range_walk w = {.cluster = cluster, .reversed = reversed};
    for (bool more = start_walk(&w); more && w.start <= last_gpu; more = next_range(&w))
        if (range_end(&w) > first_gpu)
            kinds |= 1U << cluster->ranges[w.index].kind;
    return kinds;
}

void ms_count_kinds(const ms_cluster *cluster, bool reversed, long num_ranks,
                    long counts[MS_MAX_DEVICE_KINDS])
{
    memset(counts, 0, MS_MAX_DEVICE_KINDS * sizeof *counts);
    if (cluster->num_kinds == 0) {
        counts[0] = num_ranks;
        return;
    }
    range_walk w = {.cluster = cluster, .reversed = reversed};
    long counted = 0;
    for (bool more = start_walk(&w); more && counted < num_ranks; more = next_range(&w)) {
        long end = counted; /* first rank whose GPU is behind the range */
        while (end < num_ranks && gpu_of(cluster, end) < range_end(&w))
            end++;
        counts[cluster->ranges[w.index].kind] += end - counted;
        counted = end;
    }
}

/* ---- clusters of kinds ---- */

static const ms_cluster *like_of(const ms_cluster *cluster, int kind)
{
    const ms_cluster *like = cluster->kinds[kind].like;
    return like != NULL ? like : cluster;
}

const ms_device *ms_kind_device(const ms_cluster *cluster, int kind)
{
    return cluster->num_kinds == 0 ? &cluster->device : &like_of(cluster, kind)->device;
}

const char *ms_kind_text(ms_arena *arena, const ms_cluster *cluster, int kind)
{
    const char *name = ms_kind_device(cluster, kind)->name;
    if (cluster->num_kinds == 0)
        return name;
    const ms_device_kind *k = &cluster->kinds[kind];
    if (k->compute_frac < 1.0)
        name = ms_arena_printf(arena, "%s at %g %% of its speed", name,
                               100.0 * k->compute_frac);
    if (k->link_frac < 1.0)
        name =
            ms_arena_printf(arena, "%s with links at %g %%", name, 100.0 * k->link_frac);
    return name;
}

const char *ms_kinds_text(ms_arena *arena, const ms_cluster *cluster, ms_kind_set kinds)
{
    const char *text = NULL;
    for (int k = 0; k < cluster->num_kinds; k++) {
        if ((kinds >> k & 1U) == 0)
            continue;
        const char *name = ms_kind_text(arena, cluster, k);
        text = text == NULL ? name : ms_arena_printf(arena, "%s + %s", text, name);
    }
    return text;
}

/* Lowers a level to what `other` has, too. */
static void meet_level(ms_level *level, const ms_level *other, double link_frac)
{
    level->bandwidth_bytes_per_s =
        ms_min(level->bandwidth_bytes_per_s, other->bandwidth_bytes_per_s * link_frac);
    level->latency_s = ms_max(level->latency_s, other->latency_s);
    level->oversubscription = ms_max(level->oversubscription, other->oversubscription);
    level->nics_per_gpu = ms_min(level->nics_per_gpu, other->nics_per_gpu);
}

/* Levels of a group of ranks from several groups of nodes: the innermost level, and the
 * network between the groups, which each rank reaches by its own NICs. */
static void meet_groups(const ms_cluster *cluster, ms_kind_set kinds, ms_cluster *out)
{
    out->num_levels = 2;
    out->levels[1] = *cluster->between;
    for (int k = 0; k < cluster->num_kinds; k++) {
        if ((kinds >> k & 1U) == 0)
            continue;
        const ms_cluster *like = like_of(cluster, k);
        double link_frac = cluster->kinds[k].link_frac;
        meet_level(&out->levels[0], &like->levels[0], link_frac);
        ms_level nic = like->levels[1];
        nic.oversubscription = 1.0;
        meet_level(&out->levels[1], &nic, link_frac);
    }
}

static void slow_links(ms_cluster *out, double link_frac)
{
    for (int i = 0; i < out->num_levels; i++)
        out->levels[i].bandwidth_bytes_per_s *= link_frac;
}

ms_cluster *ms_cluster_of_kinds(ms_arena *arena, const ms_cluster *cluster,
                                ms_kind_set kinds, int slowest)
{
    ms_cluster *out = MS_NEW(arena, ms_cluster);
    bool several = false;
    double least_frac = 1.0, least_bytes = INFINITY;
    for (int k = 0; k < cluster->num_kinds; k++) {
        if ((kinds >> k & 1U) == 0)
            continue;
        several |= like_of(cluster, k) != like_of(cluster, slowest);
        least_frac = ms_min(least_frac, cluster->kinds[k].link_frac);
        least_bytes = ms_min(least_bytes, like_of(cluster, k)->device.memory_bytes);
    }
    *out = *like_of(cluster, slowest);
    out->name = cluster->name;
    out->device.memory_bytes = least_bytes;
    out->device.compute_frac = cluster->kinds[slowest].compute_frac;
    if (several) {
        out->network = cluster->network;
        meet_groups(cluster, kinds, out);
    } else {
        slow_links(out, least_frac);
    }
    out->num_kinds = out->num_ranges = 0;
    out->kinds = NULL;
    out->ranges = NULL;
    out->between = NULL;
    out->slowed_by = NULL;
    return out;
}

static const char *device_names(ms_arena *arena, const ms_cluster *cluster)
{
    const char *names = NULL;
    for (int k = 0, group = -1; k < cluster->num_kinds; k++) {
        const char *name = like_of(cluster, k)->device.name;
        if (cluster->kinds[k].group <= group)
            continue; /* slow nodes of a group that is named */
        group = cluster->kinds[k].group;
        names = names == NULL ? name : ms_arena_printf(arena, "%s + %s", names, name);
    }
    return names;
}

void ms_cluster_join_kinds(ms_arena *arena, ms_cluster *cluster)
{
    const ms_cluster own = *cluster;
    *cluster = *ms_cluster_of_kinds(arena, &own, (1U << own.num_kinds) - 1U, 0);
    cluster->name = own.name;
    cluster->description = own.description;
    cluster->source = own.source;
    cluster->usd_per_gpu_hour = own.usd_per_gpu_hour;
    cluster->max_gpus = own.max_gpus;
    cluster->num_kinds = own.num_kinds;
    cluster->num_ranges = own.num_ranges;
    cluster->kinds = own.kinds;
    cluster->ranges = own.ranges;
    cluster->between = own.between;
    cluster->slowed_by = own.slowed_by;
    cluster->device.name = device_names(arena, &own);
}

/* ---- slow nodes ---- */

/* Kinds and ranges of a cluster while nodes of it become slow. */
typedef struct cutter {
    ms_cluster *cluster;
    const ms_slow_nodes *slow;
    long first, end; /* the GPUs that become slow */
    ms_device_kind *kinds;
    ms_kind_range *ranges;
    int num_kinds, num_ranges;
} cutter;

static void append_range(cutter *c, long num_gpus, int kind)
{
    if (num_gpus > 0)
        c->ranges[c->num_ranges++] = (ms_kind_range){num_gpus, kind};
}

/* The slow kind of a group's devices; -1: there are too many. */
static int slow_kind(cutter *c, const ms_device_kind *from)
{
    int k = 0;
    for (; k < c->num_kinds; k++) {
        if (c->kinds[k].group == from->group &&
            c->kinds[k].compute_frac == c->slow->compute_frac &&
            c->kinds[k].link_frac == c->slow->link_frac)
            return k;
    }
    if (k == MS_MAX_DEVICE_KINDS)
        return -1;
    c->kinds[c->num_kinds++] = (ms_device_kind){
        from->like, from->group, c->slow->compute_frac, c->slow->link_frac};
    return k;
}

/* Cuts a range that starts at GPU `start` into what stays as it is and what is slow. */
static ms_status cut_range(ms_ctx *cx, ms_loc loc, cutter *c, ms_kind_range range,
                           long start)
{
    long end = range.num_gpus == LONG_MAX ? LONG_MAX : start + range.num_gpus;
    long from = start > c->first ? start : c->first, to = end < c->end ? end : c->end;
    if (from >= to) {
        append_range(c, range.num_gpus, range.kind);
        return MS_OK;
    }
    const ms_device_kind *kind = &c->kinds[range.kind];
    if (kind->compute_frac < 1.0 || kind->link_frac < 1.0)
        return ms_fail(cx, MS_EINPUT, loc, "slow nodes: node %ld is listed twice",
                       from / c->cluster->gpus_per_node);
    int slow = slow_kind(c, kind);
    if (slow < 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "more than %d kinds of devices, equally slow ones counted once",
                       MS_MAX_DEVICE_KINDS);
    append_range(c, from - start, range.kind);
    append_range(c, to - from, slow);
    append_range(c, end == LONG_MAX ? LONG_MAX : end - to, range.kind);
    return MS_OK;
}

/* A cluster of equal devices as one of a single kind. */
static void make_kinds(ms_ctx *cx, ms_cluster *cluster)
{
    ms_device_kind *kind = MS_NEW(cx->arena, ms_device_kind);
    ms_kind_range *range = MS_NEW(cx->arena, ms_kind_range);
    *kind = (ms_device_kind){.compute_frac = 1.0, .link_frac = 1.0};
    *range = (ms_kind_range){.num_gpus = LONG_MAX};
    cluster->kinds = kind;
    cluster->ranges = range;
    cluster->num_kinds = cluster->num_ranges = 1;
}

ms_status ms_cluster_slow_down(ms_ctx *cx, ms_loc loc, const ms_slow_nodes *slow,
                               ms_cluster *cluster)
{
    long most = cluster->max_gpus / cluster->gpus_per_node;
    if (cluster->max_gpus > 0 && slow->last >= most)
        return ms_fail(cx, MS_EINPUT, loc,
                       "node %ld is slow, but cluster \"%s\" has %ld nodes, 0 to %ld",
                       slow->last, cluster->name, most, most - 1);
    if (cluster->num_kinds == 0)
        make_kinds(cx, cluster);
    cutter c = {.cluster = cluster,
                .slow = slow,
                .first = slow->first * cluster->gpus_per_node,
                .end = (slow->last + 1) * cluster->gpus_per_node,
                .kinds = MS_NEW_ARRAY(cx->arena, MS_MAX_DEVICE_KINDS, ms_device_kind),
                .ranges = MS_NEW_ARRAY(cx->arena, 3 * cluster->num_ranges, ms_kind_range),
                .num_kinds = cluster->num_kinds};
    memcpy(c.kinds, cluster->kinds, (size_t)c.num_kinds * sizeof *c.kinds);
    long start = 0;
    for (int i = 0; i < cluster->num_ranges; i++) {
        MS_TRY(cut_range(cx, loc, &c, cluster->ranges[i], start));
        start += i + 1 < cluster->num_ranges ? cluster->ranges[i].num_gpus : 0;
    }
    cluster->kinds = c.kinds;
    cluster->num_kinds = c.num_kinds;
    cluster->ranges = c.ranges;
    cluster->num_ranges = c.num_ranges;
    return MS_OK;
}

/* ---- slow nodes as text ---- */

#define MAX_NODE 10000000

/* Reads a whole number at *text and moves *text behind it. */
static bool read_node(const char **text, long *out)
{
    *out = 0;
    const char *at = *text;
    while (*at >= '0' && *at <= '9' && *out <= MAX_NODE)
        *out = *out * 10 + (*at++ - '0');
    bool found = at > *text && *out <= MAX_NODE;
    *text = at;
    return found;
}

/* Says what is wrong with the speed at *text, which ":" begins; NULL: it was read. */
static const char *read_frac(ms_arena *arena, const char **text, double *out)
{
    if (**text != ':')
        return "a speed is missing behind the nodes";
    size_t length = strcspn(*text + 1, ":,");
    const char *number = ms_arena_strndup(arena, *text + 1, length);
    *text += 1 + length;
    if (ms_parse_quantity(number, MS_UNIT_COUNT, out) && *out >= MS_LEAST_SLOW_FRAC &&
        *out <= 1.0)
        return NULL;
    return ms_arena_printf(arena, "\"%s\" is no fraction from %g to 1", number,
                           MS_LEAST_SLOW_FRAC);
}

/* Says what is wrong with the nodes at *text; NULL: they were read. */
static const char *read_slow(ms_arena *arena, const char **text, ms_slow_nodes *out)
{
    const char *start = *text;
    bool found = read_node(text, &out->first);
    out->last = out->first;
    if (found && **text == '-') {
        (*text)++;
        found = read_node(text, &out->last) && out->last >= out->first;
    }
    if (!found)
        return ms_arena_printf(arena, "\"%.*s\" is no node and no range of nodes",
                               (int)strcspn(start, ":,"), start);
    out->link_frac = 1.0;
    const char *why = read_frac(arena, text, &out->compute_frac);
    if (why == NULL && **text == ':')
        why = read_frac(arena, text, &out->link_frac);
    if (why == NULL && **text != ',' && **text != '\0')
        why = "a node has two speeds, of kernels and of links";
    return why;
}

ms_status ms_cluster_slow_down_by(ms_ctx *cx, const ms_cluster *cluster, const char *text,
                                  const ms_cluster **out)
{
    *out = cluster;
    if (text == NULL ||
        (cluster->slowed_by != NULL && strcmp(cluster->slowed_by, text) == 0))
        return MS_OK;
    ms_cluster *slowed = MS_NEW(cx->arena, ms_cluster);
    *slowed = *cluster;
    slowed->slowed_by = text;
    const char *at = text;
    do {
        ms_slow_nodes slow;
        const char *why = read_slow(cx->arena, &at, &slow);
        if (why != NULL) {
            ms_fail(cx, MS_EINPUT, MS_NOWHERE, "slow nodes \"%s\": %s", text, why);
            return ms_hint(cx, "3:0.8 is node 3 at 0.8 of its speed; 3-5:0.8:0.5 nodes 3 "
                               "to 5, whose links are at half their bandwidth, too");
        }
        MS_TRY(ms_cluster_slow_down(cx, MS_NOWHERE, &slow, slowed));
    } while (*at++ == ',');
    *out = slowed;
    return MS_OK;
}

/* Nodes of a range of the file that are slow and have a rank up to GPU last_gpu, counted in
 * the order of ranks. */
static long nodes_in_job(const ms_cluster *cluster, const ms_slow_nodes *slow,
                         bool reversed, long last_gpu)
{
    long first = slow->first * cluster->gpus_per_node,
         end = (slow->last + 1) * cluster->gpus_per_node, gpus = 0;
    range_walk w = {.cluster = cluster, .reversed = reversed};
    for (bool more = start_walk(&w); more && w.start <= last_gpu; more = next_range(&w)) {
        long start = 0; /* first GPU of the range in the file */
        for (int i = 0; i < w.index; i++)
            start += cluster->ranges[i].num_gpus;
        long num_gpus = cluster->ranges[w.index].num_gpus;
        if (start < first || start >= end)
            continue; /* slow nodes are ranges of their own */
        long in_job = last_gpu + 1 - w.start;
        gpus += num_gpus < in_job ? num_gpus : in_job;
    }
    return (gpus + cluster->gpus_per_node - 1) / cluster->gpus_per_node;
}

ms_slow_count ms_slow_nodes_count(const ms_cluster *cluster, const char *text,
                                  bool reversed, long num_ranks)
{
    ms_slow_count count = {0, 0};
    ms_arena *scratch = ms_arena_open();
    const char *at = text;
    do {
        ms_slow_nodes slow;
        if (read_slow(scratch, &at, &slow) != NULL)
            break;
        count.all += slow.last + 1 - slow.first;
        count.in_job +=
            nodes_in_job(cluster, &slow, reversed, gpu_of(cluster, num_ranks - 1));
    } while (*at++ == ',');
    ms_arena_close(scratch);
    return count;
}
