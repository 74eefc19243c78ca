/* Puts a node that a tool described into a cluster: GPUs, NVLinks, and NICs with the GPUs
 * that share them. */
#include "base/units.h"
#include "topo/site_priv.h"

#include <math.h>
#include <string.h>

const char *const ms_site_path_names[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", NULL};

void ms_site_node_open(ms_arena *arena, int num_gpus, int num_nics, ms_site_node *out)
{
    *out = (ms_site_node){.num_gpus = num_gpus, .num_nics = num_nics, .has_links = true};
    out->links = MS_NEW_ARRAY(arena, num_gpus * num_gpus, int);
    out->paths = MS_NEW_ARRAY(arena, num_gpus * num_nics, int);
    out->nics = MS_NEW_ARRAY(arena, num_nics, const char *);
    out->nic_bytes_per_s = MS_NEW_ARRAY(arena, num_nics, double);
}

static ms_status fail(const ms_site_reader *r, const char *message)
{
    return ms_fail(r->cx, MS_EINPUT, ms_site_loc(r, 0, 0), "%s", message);
}

/* ---- GPUs and NVLinks ---- */

/* Sets the GPUs of a node; domains of outer levels keep their numbers of nodes. */
static ms_status set_gpus(ms_site_reader *r, const ms_site_node *node)
{
    ms_cluster *c = &r->out->cluster;
    const ms_cluster *base = r->options->base;
    long old = base->gpus_per_node;
    if (base->levels[0].gpus_per_domain != old && node->num_gpus != old) {
        fail(r, ms_arena_printf(r->cx->arena,
                                "a node has %d GPUs, but %ld in cluster \"%s\", whose "
                                "innermost level joins several nodes",
                                node->num_gpus, old, base->name));
        return ms_hint(r->cx, "name a base with the same node: --cluster NAME|FILE");
    }
    c->gpus_per_node = node->num_gpus;
    for (int i = 0; i < c->num_levels; i++)
        c->levels[i].gpus_per_domain =
            c->levels[i].gpus_per_domain / old * node->num_gpus;
    c->max_gpus = c->max_gpus / old * node->num_gpus;
    ms_texts_print(r->cx->arena, &r->out->found, "%d GPUs a node", node->num_gpus);
    return MS_OK;
}

/* Counts pairs of GPUs with NVLinks; *least, *most: links of the pairs that have some. */
static int count_linked(const ms_site_node *node, int *least, int *most)
{
    int num = 0;
    *least = *most = 0;
    for (int i = 0; i < node->num_gpus; i++) {
        for (int j = 0; j < i; j++) {
            int links = node->links[i * node->num_gpus + j];
            if (links == 0)
                continue;
            *least = num == 0 || links < *least ? links : *least;
            *most = links > *most ? links : *most;
            num++;
        }
    }
    return num;
}

static ms_status refuse_links(const ms_site_reader *r, const char *what)
{
    fail(r, ms_arena_printf(r->cx->arena,
                            "%s, but the innermost level of cluster \"%s\" is %s", what,
                            r->options->base->name, r->options->base->levels[0].name));
    return ms_hint(r->cx, "name a base with such nodes: --cluster NAME|FILE");
}

/* Rate of the NVLinks of a GPU to all others, from that of one link. */
static void set_link_rate(ms_site_reader *r, const ms_site_node *node, int links)
{
    ms_level *level = &r->out->cluster.levels[0];
    double rate = r->options->nvlink_bytes_per_s;
    char text[48];
    if (rate == 0.0) {
        ms_format_quantity(text, sizeof text, level->bandwidth_bytes_per_s,
                           MS_UNIT_BYTES_PER_S);
        ms_texts_print(r->cx->arena, &r->out->assumed,
                       "%s each way over the NVLinks of a GPU, as %s", text,
                       r->options->base->name);
        return;
    }
    bool mesh = level->topology == MS_FULL_MESH;
    level->bandwidth_bytes_per_s = rate * links * (mesh ? node->num_gpus - 1 : 1);
    if (!mesh)
        ms_texts_print(r->cx->arena, &r->out->assumed, "NVLinks go to switches, as in %s",
                       r->options->base->name);
}

/* Rate between GPUs without NVLink. */
static void set_pcie_rate(ms_site_reader *r, const ms_site_node *node)
{
    ms_level *level = &r->out->cluster.levels[0];
    bool is_known = node->pcie_bytes_per_s > 0.0;
    char text[48];
    if (is_known)
        level->bandwidth_bytes_per_s = node->pcie_bytes_per_s;
    ms_format_quantity(text, sizeof text, level->bandwidth_bytes_per_s,
                       MS_UNIT_BYTES_PER_S);
    if (is_known)
        ms_texts_print(r->cx->arena, &r->out->found,
                       "%s each way between GPUs, as their PCIe links", text);
    else
        ms_texts_print(r->cx->arena, &r->out->assumed, "%s each way between GPUs, as %s",
                       text, r->options->base->name);
}

static void note_unknown_links(ms_site_reader *r)
{
    ms_texts_print(r->cx->arena, &r->out->assumed, "links between GPUs, as %s",
                   r->options->base->name);
}

static ms_status set_links(ms_site_reader *r, const ms_site_node *node)
{
    int pairs = node->num_gpus * (node->num_gpus - 1) / 2, least, most;
    int linked = count_linked(node, &least, &most);
    bool has_nvlink = strcmp(r->out->cluster.levels[0].name, "pcie") != 0;
    if (pairs == 0)
        return MS_OK;
    if (!node->has_links) {
        note_unknown_links(r);
        return MS_OK;
    }
    if (linked == 0 && has_nvlink)
        return refuse_links(r, "no GPUs are joined by NVLink");
    if (linked == pairs && !has_nvlink)
        return refuse_links(r, "all GPUs are joined by NVLink");
    if (!has_nvlink) {
        if (linked > 0) {
            ms_texts_print(
                r->cx->arena, &r->out->ignored,
                "NVLinks between %d of %d pairs of GPUs: a level joins all GPUs", linked,
                pairs);
        }
        set_pcie_rate(r, node);
        return MS_OK;
    }
    if (least == most)
        ms_texts_print(r->cx->arena, &r->out->found, "%d NVLinks between each pair of %s",
                       least, linked == pairs ? "GPUs" : "GPUs that has some");
    else
        ms_texts_print(r->cx->arena, &r->out->found,
                       "%d to %d NVLinks between pairs of GPUs", least, most);
    if (linked < pairs)
        ms_texts_print(r->cx->arena, &r->out->assumed,
                       "NVLinks join %d of %d pairs of GPUs; all pairs are priced alike",
                       linked, pairs);
    if (linked < pairs && r->options->nvlink_bytes_per_s > 0.0)
        return fail(r, "NVLinks do not join all pairs of GPUs, so that the rate of one "
                       "link says nothing about a GPU: leave --nvlink out");
    set_link_rate(r, node, least);
    return MS_OK;
}

/* ---- NICs ---- */

/* The nearest NICs of each GPU, and how many GPUs have them. */
typedef struct shares {
    int nearest[MS_SITE_MAX_DEVICES]; /* per GPU: ms_site_path of its nearest NICs */
    int users[MS_SITE_MAX_DEVICES];   /* per NIC: GPUs for which it is nearest */
} shares;

static bool is_nearest(const ms_site_node *node, const shares *s, int gpu, int nic)
{
    return node->paths[gpu * node->num_nics + nic] == s->nearest[gpu];
}

static void find_nearest(const ms_site_node *node, shares *s)
{
    *s = (shares){{0}, {0}};
    for (int g = 0; g < node->num_gpus; g++) {
        s->nearest[g] = MS_PATH_SYS;
        for (int n = 0; n < node->num_nics; n++) {
            int path = node->paths[g * node->num_nics + n];
            s->nearest[g] = path < s->nearest[g] ? path : s->nearest[g];
        }
        for (int n = 0; n < node->num_nics; n++)
            s->users[n] += is_nearest(node, s, g, n);
    }
}

/* The rate of a NIC: the user's, the text's, or that of the base's NICs. */
static double nic_rate(const ms_site_reader *r, const ms_site_node *node, int nic)
{
    const ms_level *level = &r->options->base->levels[1];
    if (r->options->nic_bytes_per_s > 0.0)
        return r->options->nic_bytes_per_s;
    if (node->nic_bytes_per_s[nic] > 0.0)
        return node->nic_bytes_per_s[nic];
    return level->nics_per_gpu > 0.0 ? level->bandwidth_bytes_per_s / level->nics_per_gpu
                                     : 0.0;
}

/* Whether the rate of a NIC that a GPU uses is only known of the base. */
static bool uses_base_rate(const ms_site_reader *r, const ms_site_node *node,
                           const shares *s)
{
    bool found = false;
    for (int n = 0; n < node->num_nics; n++)
        found = found || (s->users[n] > 0 && !(node->nic_bytes_per_s[n] > 0.0));
    return found && r->options->nic_bytes_per_s == 0.0;
}

/* "GPU0, GPU1 share mlx5_0 (PXB): 200 of its 400 Gb/s each, or 25 GB/s" */
static void note_nic(ms_site_reader *r, const ms_site_node *node, const shares *s,
                     int nic)
{
    const char *gpus = "";
    int path = 0;
    for (int g = 0; g < node->num_gpus; g++) {
        if (is_nearest(node, s, g, nic)) {
            gpus = ms_arena_printf(r->cx->arena, "%s%sGPU%d", gpus,
                                   gpus[0] == '\0' ? "" : ", ", g);
            path = s->nearest[g];
        }
    }
    double rate = nic_rate(r, node, nic), share = rate / s->users[nic];
    if (s->users[nic] == 0) {
        ms_texts_print(r->cx->arena, &r->out->ignored,
                       "NIC %s: another is nearer to each GPU", node->nics[nic]);
    } else if (s->users[nic] == 1) {
        ms_texts_print(r->cx->arena, &r->out->found,
                       "%s has NIC %s (%s): %g Gb/s, or %g GB/s", gpus, node->nics[nic],
                       ms_site_path_names[path], rate * 8e-9, rate * 1e-9);
    } else {
        ms_texts_print(r->cx->arena, &r->out->found,
                       "%s share NIC %s (%s): %g of its %g Gb/s each, or %g GB/s", gpus,
                       node->nics[nic], ms_site_path_names[path], share * 8e-9,
                       rate * 8e-9, share * 1e-9);
    }
}

/* The NICs and the rate that the GPU with the least of them has. */
static void least_share(const ms_site_reader *r, const ms_site_node *node,
                        const shares *s, double *nics, double *rate)
{
    *nics = *rate = INFINITY;
    for (int g = 0; g < node->num_gpus; g++) {
        double own_nics = 0.0, own_rate = 0.0;
        for (int n = 0; n < node->num_nics; n++) {
            if (is_nearest(node, s, g, n)) {
                own_nics += 1.0 / s->users[n];
                own_rate += nic_rate(r, node, n) / s->users[n];
            }
        }
        *nics = fmin(*nics, own_nics);
        *rate = fmin(*rate, own_rate);
    }
}

/* Rails of a level that has them: as many as NICs, where each serves as many GPUs. */
static void set_rails(ms_cluster *c, ms_level *level)
{
    double rails = round(level->nics_per_gpu * (double)c->gpus_per_node);
    rails = fmin(rails, (double)c->gpus_per_node);
    long size = c->levels[0].gpus_per_domain;
    if (level->rails > 0)
        level->rails = size % (long)fmax(rails, 1.0) == 0 ? (long)fmax(rails, 1.0) : 0;
}

static ms_status set_nics(ms_site_reader *r, const ms_site_node *node)
{
    ms_cluster *c = &r->out->cluster;
    if (c->num_levels < 2)
        return MS_OK;
    if (node->num_nics == 0) {
        ms_texts_print(r->cx->arena, &r->out->assumed, "%g NICs a GPU, as %s",
                       c->levels[1].nics_per_gpu, r->options->base->name);
        for (int i = 1; i < c->num_levels; i++)
            set_rails(c, &c->levels[i]);
        return MS_OK;
    }
    shares s;
    double nics, rate;
    find_nearest(node, &s);
    least_share(r, node, &s, &nics, &rate);
    if (!(rate > 0.0)) {
        fail(r, "the rate of a NIC is not known");
        return ms_hint(r->cx, "--nic \"400 Gb/s\"");
    }
    for (int n = 0; n < node->num_nics; n++)
        note_nic(r, node, &s, n);
    if (uses_base_rate(r, node, &s))
        ms_texts_print(r->cx->arena, &r->out->assumed, "rate of NICs, as %s",
                       r->options->base->name);
    ms_texts_print(r->cx->arena, &r->out->assumed,
                   "traffic of a GPU takes the NICs nearest to it");
    double factor = rate / c->levels[1].bandwidth_bytes_per_s;
    for (int i = 1; i < c->num_levels; i++) {
        c->levels[i].bandwidth_bytes_per_s *= factor;
        c->levels[i].nics_per_gpu = nics;
        set_rails(c, &c->levels[i]);
    }
    return MS_OK;
}

ms_status ms_site_node_apply(ms_site_reader *r, const ms_site_node *node)
{
    if (node->num_gpus == 0)
        return fail(r, "no GPU is listed");
    MS_TRY(set_gpus(r, node));
    MS_TRY(set_links(r, node));
    return set_nics(r, node);
}
