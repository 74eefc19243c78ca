/* Reads Slurm's topology.conf, or what `scontrol show topology` prints (man 5
 * topology.conf), or its topology.yaml: a tree of switches, or blocks of nodes. Rates are
 * not in the text: Slurm's LinkSpeed is arbitrary and unused. */
#include "topo/site_hostlist.h"
#include "topo/site_slurm_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_KEYS 8

/* A key of a line with its value; neither is zero-terminated. */
typedef struct setting {
    const char *key, *value;
    size_t key_length, value_length;
} setting;

static ms_loc place(const ms_slurm_reader *r, const ms_slurm_part *p, const char *at)
{
    return ms_site_loc(r->out, p->line, p->column + (int)(at - p->start));
}

ms_status ms_slurm_add_part(ms_slurm_reader *r, ms_slurm_part part, const char *name,
                            size_t name_length, ms_loc at)
{
    ms_ctx *cx = r->out->cx;
    MS_MAKE_ROOM(cx->arena, r->parts, r->names.num, r->capacity, 64);
    int index = ms_map_add(&r->names, name, name_length);
    if (index < r->names.num - 1 || r->parts[index].start != NULL)
        return ms_fail(cx, MS_EINPUT, at, "\"%.*s\" stands twice", (int)name_length,
                       name);
    r->parts[index] = part;
    return MS_OK;
}

/* ---- lines ---- */

static bool is_key(const setting *s, const char *name)
{
    return s->key_length == strlen(name) && strncasecmp(s->key, name, s->key_length) == 0;
}

/* Splits a line into keys and values. MS_EINPUT: a word without '='. */
static ms_status split(ms_slurm_reader *r, const ms_slurm_part *p, size_t length,
                       setting *out, int *num)
{
    const char *at = p->start, *end = p->start + length;
    *num = 0;
    for (;;) {
        while (at < end && isspace((unsigned char)*at) != 0)
            at++;
        if (at == end || *at == '#')
            return MS_OK;
        const char *from = at;
        while (at < end && isspace((unsigned char)*at) == 0)
            at++;
        const char *equals = memchr(from, '=', (size_t)(at - from));
        if (equals == NULL || *num == MAX_KEYS)
            return ms_fail(r->out->cx, MS_EINPUT, place(r, p, from),
                           "\"%.*s\" is no KEY=VALUE of a topology", (int)(at - from),
                           from);
        out[(*num)++] = (setting){from, equals + 1, (size_t)(equals - from),
                                  (size_t)(at - equals - 1)};
    }
}

/* Adds a switch or block with the settings of its line. */
static ms_status add_part(ms_slurm_reader *r, const ms_slurm_part *line,
                          const setting *settings, int num)
{
    static const char *const unused[] = {"LinkSpeed", "Level", "BlockIndex", "BlockSize",
                                         "BlockSizes"};
    ms_ctx *cx = r->out->cx;
    ms_slurm_part p = *line;
    for (int i = 1; i < num; i++) {
        const setting *s = &settings[i];
        const char *end = s->value + s->value_length;
        bool is_known = false;
        if (is_key(s, "Nodes") && s->value_length > 0) {
            p.nodes = s->value;
            p.nodes_end = end;
        } else if (is_key(s, "Switches") && s->value_length > 0) {
            p.children = s->value;
            p.children_end = end;
        }
        is_known = is_key(s, "Nodes") || is_key(s, "Switches");
        for (size_t k = 0; k < sizeof unused / sizeof *unused; k++)
            is_known = is_known || is_key(s, unused[k]);
        if (!is_known)
            return ms_fail(cx, MS_EINPUT, place(r, line, s->key), "unknown key \"%.*s\"",
                           (int)s->key_length, s->key);
    }
    if (p.nodes == NULL && p.children == NULL)
        return ms_fail(cx, MS_EINPUT, place(r, line, settings[0].key),
                       "neither Nodes nor Switches are listed");
    return ms_slurm_add_part(r, p, settings[0].value, settings[0].value_length,
                             place(r, line, settings[0].value));
}

static ms_status read_line(ms_slurm_reader *r, const ms_slurm_part *line, size_t length)
{
    setting settings[MAX_KEYS];
    int num;
    MS_TRY(split(r, line, length, settings, &num));
    if (num == 0 || is_key(&settings[0], "BlockSizes"))
        return MS_OK;
    bool is_switch = is_key(&settings[0], "SwitchName");
    if (!is_switch && !is_key(&settings[0], "BlockName"))
        return ms_fail(r->out->cx, MS_EINPUT, place(r, line, settings[0].key),
                       "\"%.*s\" is neither SwitchName nor BlockName",
                       (int)settings[0].key_length, settings[0].key);
    if (settings[0].value_length == 0)
        return ms_fail(r->out->cx, MS_EINPUT, place(r, line, settings[0].key),
                       "the name behind \"%.*s=\" is empty", (int)settings[0].key_length,
                       settings[0].key);
    r->has_switches |= is_switch;
    r->has_blocks |= !is_switch;
    if (r->has_switches && r->has_blocks)
        return ms_fail(r->out->cx, MS_EINPUT, place(r, line, settings[0].key),
                       "a topology of switches has no blocks, and one of blocks no "
                       "switches");
    return add_part(r, line, settings, num);
}

/* ---- tiers ---- */

/* Adds the nodes of an item. MS_EINPUT: one stands twice, or there are too many. */
static ms_status add_nodes(ms_slurm_reader *r, const ms_slurm_part *p, ms_host_item *item)
{
    for (long i = 0; i < item->num; i++) {
        const char *name = ms_host_item_name(r->out->cx->arena, item, i);
        int before = r->nodes.num;
        if (ms_map_add(&r->nodes, name, strlen(name)) < before)
            return ms_fail(r->out->cx, MS_EINPUT, place(r, p, item->text),
                           "node %s stands twice", name);
        if (before >= MS_MAX_HOST_NAMES)
            return ms_fail(r->out->cx, MS_EINPUT, place(r, p, item->text),
                           "more than a million nodes");
    }
    return MS_OK;
}

static ms_status count_nodes(ms_slurm_reader *r, ms_slurm_part *p)
{
    const char *at = p->nodes, *fault;
    ms_host_item item;
    while (ms_host_item_next(&at, p->nodes_end, &item, &fault)) {
        MS_TRY(add_nodes(r, p, &item));
        p->num_nodes += item.num;
    }
    p->tier = 1;
    return fault == NULL ? MS_OK
                         : ms_fail(r->out->cx, MS_EINPUT, place(r, p, at), "%s", fault);
}

static ms_status find_tier(ms_slurm_reader *r, int index, int depth);

/* Adds a switch below `parent`, which stands `depth` tiers below the first one asked for. */
static ms_status add_child(ms_slurm_reader *r, int parent, const char *name,
                           const char *at, int depth)
{
    ms_ctx *cx = r->out->cx;
    ms_loc loc = place(r, &r->parts[parent], at);
    int index = ms_map_find(&r->names, name, strlen(name));
    if (index < 0)
        return ms_fail(cx, MS_EINPUT, loc, "no switch is named %s", name);
    ms_slurm_part *child = &r->parts[index];
    if (child->tier < 0)
        return ms_fail(cx, MS_EINPUT, loc, "switch %s stands below itself", name);
    if (child->has_parent)
        return ms_fail(cx, MS_EINPUT, loc, "switch %s stands below two others", name);
    child->has_parent = true;
    if (depth < MS_MAX_LEVELS)
        MS_TRY(find_tier(r, index, depth + 1));
    ms_slurm_part *p = &r->parts[parent];
    p->num_nodes += child->num_nodes;
    if (depth >= MS_MAX_LEVELS || child->tier >= MS_MAX_LEVELS - 1)
        return ms_fail(cx, MS_EINPUT, loc, "more than %d tiers of switches",
                       MS_MAX_LEVELS - 1);
    return MS_OK;
}

/* Finds tier and nodes of a switch, after those below it. */
static ms_status find_tier(ms_slurm_reader *r, int index, int depth)
{
    ms_slurm_part *p = &r->parts[index];
    if (p->tier > 0)
        return MS_OK;
    if (p->children == NULL)
        return count_nodes(r, p);
    p->tier = -1;
    int tier = 0;
    ms_host_item item;
    const char *at = p->children, *fault;
    while (ms_host_item_next(&at, p->children_end, &item, &fault)) {
        for (long i = 0; i < item.num; i++) {
            const char *name = ms_host_item_name(r->out->cx->arena, &item, i);
            MS_TRY(add_child(r, index, name, item.text, depth));
            const ms_slurm_part *child =
                &r->parts[ms_map_find(&r->names, name, strlen(name))];
            tier = child->tier > tier ? child->tier : tier;
        }
    }
    p->tier = tier + 1;
    return fault == NULL ? MS_OK
                         : ms_fail(r->out->cx, MS_EINPUT, place(r, p, at), "%s", fault);
}

/* ---- levels ---- */

/* Sizes of the switches or blocks of a tier, nodes; zeroed if it has none. */
typedef struct tier_sizes {
    int num;
    long least, most, usual; /* usual: the most common size, the larger one of equals */
    const ms_slurm_part *largest;
} tier_sizes;

static int by_size(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static tier_sizes measure_tier(const ms_slurm_reader *r, int tier)
{
    tier_sizes out = {0};
    long *sizes = MS_NEW_ARRAY(r->out->cx->arena, r->names.num, long);
    int run = 0, longest = 0;
    for (int i = 0; i < r->names.num; i++) {
        const ms_slurm_part *p = &r->parts[i];
        if (p->tier != tier)
            continue;
        sizes[out.num++] = p->num_nodes;
        if (out.largest == NULL || p->num_nodes > out.largest->num_nodes)
            out.largest = p;
    }
    if (out.num == 0)
        return out;
    qsort(sizes, (size_t)out.num, sizeof *sizes, by_size);
    for (int i = 0; i < out.num; i++) {
        run = i > 0 && sizes[i] == sizes[i - 1] ? run + 1 : 1;
        if (run >= longest) {
            longest = run;
            out.usual = sizes[i];
        }
    }
    out.least = sizes[0];
    out.most = sizes[out.num - 1];
    return out;
}

static void note_tier(ms_slurm_reader *r, const char *what, const tier_sizes *sizes)
{
    ms_site_reader *out = r->out;
    bool equal = sizes->least == sizes->most;
    ms_texts_print(out->cx->arena, &out->out->found,
                   equal ? "%d %s of %ld nodes" : "%d %s of %ld to %ld nodes", sizes->num,
                   what, sizes->least, sizes->most);
    if (!equal)
        ms_texts_print(out->cx->arena, &out->out->assumed,
                       "all %s have %ld nodes, the most common size", what, sizes->usual);
}

/* Whole domains of `inner` GPUs in a switch of `nodes`, nearest to its size, in GPUs. */
static long nested_gpus(const ms_cluster *c, long nodes, long inner)
{
    return (nodes * c->gpus_per_node + inner / 2) / inner * inner;
}

static ms_level level_like(const ms_slurm_reader *r, int index)
{
    const ms_cluster *base = r->out->options->base;
    bool has_own = index < base->num_levels;
    ms_level level = base->levels[has_own ? index : base->num_levels - 1];
    if (!has_own)
        level.name = ms_arena_printf(r->out->cx->arena, "tier %d", index);
    level.gpus_per_domain = 0;
    return level;
}

/* A level of the network for each tier whose switches join several domains of the level
 * inside it, but not all GPUs; the outermost joins all. */
static void set_levels(ms_slurm_reader *r, int tiers)
{
    ms_site_reader *out = r->out;
    ms_cluster *c = &out->out->cluster;
    long inner = c->levels[0].gpus_per_domain;
    c->num_levels = 1;
    for (int tier = 1; tier <= tiers; tier++) {
        const char *what =
            r->has_blocks ? "blocks"
                          : ms_arena_printf(out->cx->arena, "switches of tier %d", tier);
        tier_sizes sizes = measure_tier(r, tier);
        if (sizes.num > 0 && r->has_switches)
            note_tier(r, what, &sizes);
        if (tier == tiers)
            break;
        long gpus = nested_gpus(c, sizes.usual, inner);
        if (gpus > inner && gpus < c->max_gpus) {
            ms_level *level = &c->levels[c->num_levels];
            *level = level_like(r, c->num_levels++);
            level->gpus_per_domain = inner = gpus;
        } else {
            ms_texts_print(out->cx->arena, &out->out->ignored,
                           "%s, which join no more GPUs than %s", what,
                           gpus > inner ? "those above them"
                                        : c->levels[c->num_levels - 1].name);
        }
    }
    c->levels[c->num_levels] = level_like(r, c->num_levels);
    c->num_levels++;
    ms_texts_print(out->cx->arena, &out->out->assumed,
                   "rates, latencies and oversubscription of switches, as %s",
                   out->options->base->name);
}

/* Blocks are the innermost domains where these join several nodes, as racks of NVLink do;
 * else they are switches below one that joins them all. */
static ms_status set_blocks(ms_slurm_reader *r)
{
    ms_cluster *c = &r->out->out->cluster;
    const ms_cluster *base = r->out->options->base;
    long old = base->levels[0].gpus_per_domain;
    tier_sizes blocks = measure_tier(r, 1);
    note_tier(r, "blocks", &blocks);
    long gpus = blocks.usual * c->gpus_per_node, most = blocks.most * c->gpus_per_node;
    if (old <= c->gpus_per_node) {
        set_levels(r, blocks.num > 1 ? 2 : 1);
        return MS_OK;
    }
    if (blocks.largest != NULL && most > old) {
        ms_fail(r->out->cx, MS_EINPUT, place(r, blocks.largest, blocks.largest->start),
                "the block has %ld GPUs, more than the %ld of a domain of cluster \"%s\"",
                most, old, base->name);
        return ms_hint(r->out->cx, "name a base with such racks: --cluster NAME|FILE");
    }
    for (int i = 0; i < c->num_levels; i++)
        c->levels[i].gpus_per_domain = c->levels[i].gpus_per_domain / old * gpus;
    ms_texts_print(r->out->cx->arena, &r->out->out->assumed, "a block is a domain of %s",
                   c->levels[0].name);
    return MS_OK;
}

/* MS_EINPUT: switches that none joins. Sets the outermost tier and all nodes. */
static ms_status find_root(ms_slurm_reader *r, int *tiers, long *nodes)
{
    const ms_slurm_part *root = NULL;
    *nodes = 0;
    for (int i = 0; i < r->names.num; i++)
        MS_TRY(find_tier(r, i, 0));
    for (int i = 0; i < r->names.num; i++) {
        const ms_slurm_part *p = &r->parts[i];
        if (p->has_parent)
            continue;
        if (root != NULL && r->has_switches) {
            ms_fail(r->out->cx, MS_EINPUT, place(r, p, p->start),
                    "no switch joins this one and that of line %d", root->line);
            return ms_hint(r->out->cx, "keep the lines of one of them");
        }
        root = p;
        *tiers = p->tier;
        *nodes += p->num_nodes;
    }
    return MS_OK;
}

static ms_status read_lines(ms_slurm_reader *r, const char *text, size_t length)
{
    ms_lines lines = {text, length, 0, 0};
    ms_slurm_part line = {.column = 1};
    size_t line_length;
    while (ms_lines_next(&lines, &line.start, &line_length)) {
        line.line = lines.number;
        MS_TRY(read_line(r, &line, line_length));
    }
    if (r->names.num == 0)
        return ms_fail(r->out->cx, MS_EINPUT, ms_site_loc(r->out, 0, 0),
                       "no line has SwitchName= or BlockName=");
    return MS_OK;
}

ms_status ms_site_read_slurm(ms_site_reader *out, const char *text, size_t length)
{
    ms_slurm_reader r = {.out = out,
                         .names = {.arena = out->cx->arena},
                         .nodes = {.arena = out->cx->arena}};
    int tiers = 0;
    long nodes = 0;
    if (out->options->nic_bytes_per_s > 0.0 || out->options->nvlink_bytes_per_s > 0.0)
        return ms_fail(out->cx, MS_EINPUT, MS_NOWHERE,
                       "--nic and --nvlink are of nodes, but Slurm's topology is of "
                       "switches");
    MS_TRY(ms_slurm_is_yaml(text, length) ? ms_slurm_read_yaml(&r, text, length)
                                          : read_lines(&r, text, length));
    MS_TRY(find_root(&r, &tiers, &nodes));
    ms_cluster *c = &out->out->cluster;
    c->max_gpus = nodes * c->gpus_per_node;
    ms_texts_print(out->cx->arena, &out->out->found, "%ld nodes", nodes);
    if (r.has_blocks)
        return set_blocks(&r);
    set_levels(&r, tiers);
    return MS_OK;
}
