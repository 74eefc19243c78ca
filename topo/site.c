/* Clusters from the texts of tools: the list of formats, and what their readers share. */
#include "topo/site.h"

#include "topo/site_priv.h"

#include <string.h>

const char *const ms_site_format_names[] = {"nvidia-smi", "slurm", "nccl-topology", NULL};

/* The readers and what the formats are, in the order of ms_site_format_names. */
static const struct {
    ms_status (*read)(ms_site_reader *r, const char *text, size_t length);
    const char *part, *what;
} formats[] = {
    {ms_site_read_matrix, "node", "matrix of nvidia-smi topo -m"},
    {ms_site_read_slurm, "switches", "topology of Slurm"},
    {ms_site_read_nccl, "node", "topology of NCCL"},
};

ms_loc ms_site_loc(const ms_site_reader *r, int line, int column)
{
    return (ms_loc){.file = r->options->name, .line = line, .column = column};
}

static ms_status check_base(const ms_site_reader *r)
{
    const ms_cluster *base = r->options->base;
    if (base->num_kinds > 0) {
        return ms_fail(
            r->cx, MS_EINPUT, MS_NOWHERE,
            "cluster \"%s\" has several kinds of devices or slow nodes, a base "
            "must have one",
            base->name);
    }
    if (base->levels[0].topology == MS_TORUS)
        return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                       "cluster \"%s\" is a torus, a base must have nodes and switches",
                       base->name);
    return MS_OK;
}

ms_status ms_site_read(ms_ctx *cx, int format, const char *text, size_t length,
                       const ms_site_options *options, ms_site *out)
{
    *out = (ms_site){.cluster = *options->base};
    ms_site_reader r = {cx, options, out};
    const char *base = options->base->name, *what = formats[format].what;
    ms_cluster *c = &out->cluster;
    MS_TRY(check_base(&r));
    c->name = ms_arena_printf(cx->arena, "%s-imported", base);
    c->description = ms_arena_printf(cx->arena, "cluster %s with the %s of a %s", base,
                                     formats[format].part, what);
    c->source = ms_arena_printf(cx->arena, "%s %s; the rest as %s: %s", what,
                                options->name, base, c->source);
    ms_texts_print(r.cx->arena, &out->assumed, "device %s, as %s", c->device.name, base);
    MS_TRY(formats[format].read(&r, text, length));
    return ms_cluster_check_levels(cx, c);
}
