/* Reads clusters: network levels, innermost first; a domain holds whole inner domains. */
#include "topo/cluster.h"

#include "base/paths.h"
#include "base/units.h"
#include "topo/cluster_priv.h"

#include <math.h>
#include <string.h>

/* Largest bandwidth and latency accepted, far beyond any machine: more is a mistake. */
#define MAX_BYTES_PER_S 1e15
#define MAX_LATENCY_S   1.0

const char *const ms_dtype_names[] = {"fp64", "fp32", "tf32", "bf16",
                                      "fp16", "fp8",  "fp4",  NULL};

double ms_dtype_bytes(ms_dtype dtype)
{
    static const double bytes[MS_NUM_DTYPES] = {8.0, 4.0, 4.0, 2.0, 2.0, 1.0, 0.5};
    return bytes[dtype];
}

double ms_stored_bytes(ms_dtype compute)
{
    bool narrow = compute == MS_FP8 || compute == MS_FP4;
    return ms_dtype_bytes(narrow ? MS_BF16 : compute);
}

const char *const ms_topology_names[] = {"switch", "mesh", "torus", NULL};

#define AT(member) offsetof(ms_cluster, member)

static const ms_field cluster_fields[] = {
    {MS_FIELD_TEXT, "name", AT(name), .required = true, .help = "name of the cluster"},
    {MS_FIELD_TEXT, "description", AT(description), .help = "one line for people"},
    {MS_FIELD_TEXT, "source", AT(source), .required = true,
     .help = "where the figures come from, with date"},
    {MS_FIELD_TEXT, "network", AT(network), .required = true,
     .help = "infiniband, roce, efa, ethernet or none: coefficients of the profile"},
    {MS_FIELD_ANY, "device", 0, .required = true, .help = "the accelerator"},
    {MS_FIELD_INTEGER, "gpus_per_node", AT(gpus_per_node), .required = true, .low = 1,
     .high = 4096, .help = "GPUs of one host"},
    {MS_FIELD_INTEGER, "max_gpus", AT(max_gpus), .nullable = true, .low = 1, .high = 1e8,
     .help = "GPUs of the whole cluster; absent: not limited"},
    {MS_FIELD_ANY, "levels", 0, .required = true,
     .help = "levels of the network, innermost first"},
    {MS_FIELD_ANY, "host_link", 0,
     .help = "copies between devices and host memory; absent: unknown"},
    {MS_FIELD_NUMBER, "usd_per_gpu_hour", AT(usd_per_gpu_hour), .nullable = true,
     .low = 0, .high = 1e6, .help = "price of one GPU for an hour"},
    {MS_FIELD_ANY, "slow", 0, .help = "nodes that are slower than the others"},
    {0}};

#undef AT
#define AT(member) offsetof(ms_device, member)

static const ms_field device_fields[] = {
    {MS_FIELD_TEXT, "name", AT(name), .required = true, .help = "name of the device"},
    {MS_FIELD_TEXT, "profile", AT(profile), .required = true,
     .help = "cost profile in configs/profiles/"},
    {MS_FIELD_TEXT, "unit", AT(unit), .help = "word for one device; default GPU"},
    {MS_FIELD_QUANTITY, "memory", AT(memory_bytes), .required = true,
     .unit = MS_UNIT_BYTES, .help = "usable memory as the driver reports it"},
    {MS_FIELD_QUANTITY, "hbm", AT(hbm_bytes_per_s), .required = true,
     .unit = MS_UNIT_BYTES_PER_S, .help = "listed memory bandwidth"},
    {MS_FIELD_ANY, "peak", 0, .required = true,
     .help = "dense peak per data type; null or absent: unknown or not supported"},
    {MS_FIELD_INTEGER, "sms", AT(num_sms), .required = true, .low = 1, .high = 4096,
     .help = "streaming multiprocessors"},
    {MS_FIELD_NUMBER, "tdp_w", AT(tdp_w), .nullable = true, .low = 1, .high = 1e5,
     .help = "power limit in watts"},
    {MS_FIELD_NUMBER, "compute_capability", AT(compute_capability), .nullable = true,
     .low = 1, .high = 99, .help = "NVIDIA's compute capability, as 8.9"},
    {0}};

#undef AT
#define AT(member) offsetof(ms_host_link, member)

static const ms_field host_fields[] = {
    {MS_FIELD_QUANTITY, "bandwidth", AT(bytes_per_s), .nullable = true,
     .unit = MS_UNIT_BYTES_PER_S,
     .help = "of one device each way, as large copies reach it"},
    {MS_FIELD_INTEGER, "gpus_per_link", AT(gpus_per_link), .low = 1, .high = 4096,
     .help = "devices that share a link to the host; default 1"},
    {MS_FIELD_QUANTITY, "memory_bandwidth", AT(memory_bytes_per_s), .nullable = true,
     .unit = MS_UNIT_BYTES_PER_S, .help = "listed bandwidth of a node's host memory"},
    {MS_FIELD_TEXT, "source", AT(source), .required = true,
     .help = "where the figures come from"},
    {0}};

#undef AT
#define AT(member) offsetof(ms_level, member)

static const ms_field level_fields[] = {
    {MS_FIELD_TEXT, "name", AT(name), .required = true, .help = "name of the level"},
    {MS_FIELD_INTEGER, "gpus_per_domain", AT(gpus_per_domain), .low = 1, .high = 1e8,
     .help = "GPUs that share a domain; absent at the outermost level"},
    {MS_FIELD_QUANTITY, "bandwidth", AT(bandwidth_bytes_per_s), .required = true,
     .unit = MS_UNIT_BYTES_PER_S, .help = "per GPU and direction"},
    {MS_FIELD_QUANTITY, "latency", AT(latency_s), .required = true,
     .unit = MS_UNIT_SECONDS,
     .help = "latency of a message, in addition to a send inside the innermost level"},
    {MS_FIELD_NUMBER, "oversubscription", AT(oversubscription), .low = 1, .high = 1000,
     .help = "1: full bisection"},
    {MS_FIELD_NUMBER, "nics_per_gpu", AT(nics_per_gpu), .low = 0, .high = 64,
     .help = "NICs that one GPU can use alone; below 1: shared by several"},
    {MS_FIELD_CHOICE, "topology", AT(topology), .choices = ms_topology_names,
     .help = "how the GPUs of a domain are joined: switch, mesh or torus"},
    {MS_FIELD_ANY, "dims", 0, .help = "sides of a torus"},
    {MS_FIELD_ANY, "wrap", 0,
     .help = "a box of a torus has rings if all its sides are multiples of this"},
    {MS_FIELD_ANY, "rails", 0, .help = "rails with switches of their own"},
    {0}};

#undef AT

static void make_peak_fields(ms_field fields[MS_NUM_DTYPES + 1])
{
    memset(fields, 0, (MS_NUM_DTYPES + 1) * sizeof *fields);
    for (int i = 0; i < MS_NUM_DTYPES; i++) {
        fields[i] = (ms_field){.kind = MS_FIELD_QUANTITY,
                               .key = ms_dtype_names[i],
                               .offset = offsetof(ms_device, peak_flop_per_s) +
                                         (size_t)i * sizeof(double),
                               .nullable = true,
                               .unit = MS_UNIT_FLOP_PER_S,
                               .help = "dense peak"};
    }
}

static ms_status read_peaks(ms_ctx *cx, ms_jval peak, ms_device *device)
{
    ms_field fields[MS_NUM_DTYPES + 1];
    make_peak_fields(fields);
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        device->peak_flop_per_s[i] = NAN;
    MS_TRY(ms_json_read(cx, peak, fields, device));
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        if (device->peak_flop_per_s[i] <= 0.0)
            return ms_json_fail(cx, peak, "peak of \"%s\" is 0, must be positive or null",
                                ms_dtype_names[i]);
    return MS_OK;
}

void ms_cluster_figures(const ms_cluster *cluster, ms_figures *list)
{
    ms_field peaks[MS_NUM_DTYPES + 1];
    make_peak_fields(peaks);
    ms_figures_add(list, "", cluster_fields, 0);
    ms_figures_add(list, "device", device_fields, offsetof(ms_cluster, device));
    ms_figures_add(list, "device.peak", peaks, offsetof(ms_cluster, device));
    ms_figures_add(list, "host_link", host_fields, offsetof(ms_cluster, host));
    for (int i = 0; i < cluster->num_levels; i++) {
        ms_figures_add(
            list, ms_arena_printf(list->arena, "levels.%s", cluster->levels[i].name),
            level_fields,
            offsetof(ms_cluster, levels) + (size_t)i * sizeof cluster->levels[i]);
    }
}

static ms_status check_positive(ms_ctx *cx, ms_jval object, const char *key, double value)
{
    if (value > 0.0)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, object, key),
                   "\"%s\" is 0, must be positive", key);
}

static ms_status check_most(ms_ctx *cx, ms_jval object, const char *key, double value,
                            ms_unit unit)
{
    double most = unit == MS_UNIT_SECONDS ? MAX_LATENCY_S : MAX_BYTES_PER_S;
    if (value <= most)
        return MS_OK;
    const char *suffix = unit == MS_UNIT_SECONDS ? "s" : "B/s";
    return ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, object, key),
                   "\"%s\" is %g %s, must be at most %g %s", key, value, suffix, most,
                   suffix);
}

static ms_status check_bandwidth(ms_ctx *cx, ms_jval object, const char *key,
                                 double value)
{
    MS_TRY(check_positive(cx, object, key, value));
    return check_most(cx, object, key, value, MS_UNIT_BYTES_PER_S);
}

static ms_status read_device(ms_ctx *cx, ms_jval value, ms_device *device)
{
    device->tdp_w = NAN;
    device->compute_capability = NAN;
    MS_TRY(ms_json_read(cx, value, device_fields, device));
    MS_TRY(check_positive(cx, value, "memory", device->memory_bytes));
    MS_TRY(check_bandwidth(cx, value, "hbm", device->hbm_bytes_per_s));
    ms_jval peak = value;
    ms_json_member(cx, value, "peak", &peak);
    device->peak_loc = ms_json_key_loc(cx, value, "peak");
    return read_peaks(cx, peak, device);
}

/* Checks that a domain of `level` is whole inner domains; only the last may be open. */
static ms_status check_nesting(ms_ctx *cx, ms_jval value, const ms_cluster *cluster,
                               int level)
{
    long size = cluster->levels[level].gpus_per_domain;
    bool last = level == cluster->num_levels - 1;
    if (last && size == 0)
        return MS_OK;
    if (last) {
        ms_json_fail(
            cx, value,
            "the outermost level has gpus_per_domain %ld, but it must hold everything",
            size);
        return ms_hint(cx,
                       "leave gpus_per_domain out there, and state the size as max_gpus");
    }
    if (size == 0) {
        return ms_json_fail(
            cx, value,
            "level \"%s\" needs gpus_per_domain; only the outermost may leave it out",
            cluster->levels[level].name);
    }
    long inner = level > 0 ? cluster->levels[level - 1].gpus_per_domain : 1;
    if (inner == 0)
        return MS_EINPUT; /* an error of the level inside, recorded already */
    if (size % inner != 0 || (level > 0 && size == inner)) {
        return ms_json_fail(
            cx, value,
            "gpus_per_domain is %ld, must be a larger multiple of the %ld GPUs of the "
            "level below",
            size, inner);
    }
    return MS_OK;
}

#define MAX_RAILS 4096
/* Limit of the GPUs of a full-mesh domain: its links grow with the square of the GPUs. */
#define MAX_MESH 64

static ms_status read_optional(ms_ctx *cx, ms_jval level, const char *key, long most,
                               long *out)
{
    ms_jval value;
    if (!ms_json_member(cx, level, key, &value) || ms_json_is_null(value))
        return MS_OK;
    return ms_json_integer(cx, value, 1, most, out);
}

static ms_status read_dims(ms_ctx *cx, ms_jval value, ms_level *level)
{
    ms_jval dims;
    if (!ms_json_member(cx, value, "dims", &dims) || ms_json_is_null(dims))
        return MS_OK;
    int num = ms_json_is_array(dims) ? ms_json_length(dims) : 0;
    if (num < 1 || num > MS_MAX_TORUS_DIMS)
        return ms_json_fail(cx, dims, "dims must be an array of 1 to %d sides",
                            MS_MAX_TORUS_DIMS);
    for (int i = 0; i < num; i++)
        MS_TRY(ms_json_integer(cx, ms_json_element(cx, dims, i), 1, MS_MAX_TORUS_SIDES,
                               &level->dims[i]));
    level->num_dims = num;
    return MS_OK;
}

long ms_level_gpus(const ms_level *level)
{
    return level->whole_gpus > 0 ? level->whole_gpus : level->gpus_per_domain;
}

static ms_status check_torus(ms_ctx *cx, ms_jval value, const ms_level *level)
{
    if (level->topology != MS_TORUS) {
        if (level->num_dims == 0 && level->wrap == 1)
            return MS_OK;
        return ms_json_fail(cx, value, "dims and wrap are for a torus only, not for a %s",
                            ms_topology_names[level->topology]);
    }
    if (level->num_dims == 0)
        return ms_json_fail(cx, value, "a torus needs dims, such as [4, 4, 4]");
    double size = 1.0;
    long sides = 0;
    for (int i = 0; i < level->num_dims; i++) {
        size *= (double)level->dims[i];
        sides += level->dims[i];
    }
    if (sides > MS_MAX_TORUS_SIDES)
        return ms_json_fail(cx, value, "the sides of a torus add up to %ld, at most %d",
                            sides, MS_MAX_TORUS_SIDES);
    if (size == (double)level->gpus_per_domain)
        return MS_OK;
    return ms_json_fail(
        cx, value, "dims hold %.0f GPUs, must be the gpus_per_domain of the torus, %ld",
        size, level->gpus_per_domain);
}

static ms_status check_topology(ms_ctx *cx, ms_jval value, const ms_cluster *cluster,
                                int index)
{
    const ms_level *level = &cluster->levels[index];
    const char *word = ms_topology_names[level->topology];
    MS_TRY(check_torus(cx, value, level));
    if (level->topology != MS_SWITCH && index > 0)
        return ms_json_fail(cx, value,
                            "level \"%s\" is a %s, which only the innermost level can be",
                            level->name, word);
    if (level->topology != MS_SWITCH && level->gpus_per_domain == 0)
        return ms_json_fail(cx, value, "a %s needs gpus_per_domain and a level above it",
                            word);
    if (level->topology == MS_FULL_MESH &&
        (level->gpus_per_domain < 2 || level->gpus_per_domain > MAX_MESH))
        return ms_json_fail(cx, value, "a mesh has %ld GPUs, must have 2 to %d",
                            level->gpus_per_domain, MAX_MESH);
    if (level->rails == 0)
        return MS_OK;
    if (index == 0)
        return ms_json_fail(cx, value,
                            "rails are for the levels outside the innermost one");
    long inner = cluster->levels[0].gpus_per_domain;
    if (inner % level->rails != 0)
        return ms_json_fail(
            cx, value, "%ld rails must divide the %ld GPUs of a domain of level \"%s\"",
            level->rails, inner, cluster->levels[0].name);
    return MS_OK;
}

ms_status ms_level_read(ms_ctx *cx, ms_jval value, ms_level *level)
{
    level->oversubscription = 1.0;
    level->wrap = 1;
    MS_TRY(ms_json_read(cx, value, level_fields, level));
    MS_TRY(check_bandwidth(cx, value, "bandwidth", level->bandwidth_bytes_per_s));
    return check_most(cx, value, "latency", level->latency_s, MS_UNIT_SECONDS);
}

static ms_status read_level(ms_ctx *cx, ms_jval value, ms_cluster *cluster, int index)
{
    ms_level *level = &cluster->levels[index];
    MS_TRY(ms_level_read(cx, value, level));
    MS_TRY(read_dims(cx, value, level));
    MS_TRY(read_optional(cx, value, "wrap", MS_MAX_TORUS_SIDES, &level->wrap));
    MS_TRY(read_optional(cx, value, "rails", MAX_RAILS, &level->rails));
    MS_TRY(check_nesting(cx, value, cluster, index));
    return check_topology(cx, value, cluster, index);
}

static ms_status read_levels(ms_ctx *cx, ms_jval levels, ms_cluster *cluster)
{
    int num = ms_json_is_array(levels) ? ms_json_length(levels) : 0;
    if (num < 1 || num > MS_MAX_LEVELS)
        return ms_json_fail(cx, levels, "levels must be an array of 1 to %d levels",
                            MS_MAX_LEVELS);
    cluster->num_levels = num;
    ms_status status = MS_OK;
    for (int i = 0; i < num; i++)
        if (read_level(cx, ms_json_element(cx, levels, i), cluster, i) != MS_OK)
            status = MS_EINPUT;
    return status;
}

/* Checks that an innermost domain holds whole nodes (NVL72: 18 nodes of 4 GPUs each). */
static ms_status check_node(ms_ctx *cx, ms_jval root, const ms_cluster *cluster)
{
    long size = cluster->levels[0].gpus_per_domain;
    if (size == 0 || size % cluster->gpus_per_node == 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, root, "gpus_per_node"),
            "gpus_per_node is %ld, must divide the %ld GPUs of a domain of level \"%s\"",
            cluster->gpus_per_node, size, cluster->levels[0].name);
    return ms_hint(
        cx, "gpus_per_node is the GPUs of one host; gpus_per_domain of the innermost "
            "level is those that its fastest links join");
}

static ms_status read_host(ms_ctx *cx, ms_jval root, ms_host_link *host)
{
    ms_jval value;
    *host =
        (ms_host_link){.bytes_per_s = NAN, .gpus_per_link = 1, .memory_bytes_per_s = NAN};
    if (!ms_json_member(cx, root, "host_link", &value) || ms_json_is_null(value))
        return MS_OK;
    MS_TRY(ms_json_read(cx, value, host_fields, host));
    if (!isnan(host->bytes_per_s))
        MS_TRY(check_bandwidth(cx, value, "bandwidth", host->bytes_per_s));
    return isnan(host->memory_bytes_per_s)
               ? MS_OK
               : check_bandwidth(cx, value, "memory_bandwidth", host->memory_bytes_per_s);
}

ms_status ms_cluster_read(ms_ctx *cx, ms_jval root, ms_cluster *out)
{
    ms_jval groups;
    *out = (ms_cluster){.usd_per_gpu_hour = NAN};
    if (ms_json_member(cx, root, "device_groups", &groups))
        return ms_cluster_read_mixed(cx, root, groups, out);
    MS_TRY(ms_json_read(cx, root, cluster_fields, out));
    ms_jval device = root;
    ms_jval levels = root;
    ms_json_member(cx, root, "device", &device);
    ms_json_member(cx, root, "levels", &levels);
    ms_status status = read_device(cx, device, &out->device);
    if (read_host(cx, root, &out->host) != MS_OK)
        status = MS_EINPUT;
    if (read_levels(cx, levels, out) != MS_OK || check_node(cx, root, out) != MS_OK)
        status = MS_EINPUT;
    return status == MS_OK ? ms_cluster_read_slow(cx, root, out) : status;
}

ms_status ms_cluster_check_levels(ms_ctx *cx, const ms_cluster *cluster)
{
    const ms_jval nowhere = {0};
    for (int i = 0; i < cluster->num_levels; i++) {
        MS_TRY(check_nesting(cx, nowhere, cluster, i));
        MS_TRY(check_topology(cx, nowhere, cluster, i));
    }
    return check_node(cx, nowhere, cluster);
}

ms_status ms_cluster_load(ms_ctx *cx, const char *name_or_path, const ms_cluster **out)
{
    const char *path = NULL;
    MS_TRY(ms_config_resolve(cx, "clusters", "cluster", name_or_path, &path));
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_cluster *cluster = MS_NEW(cx->arena, ms_cluster);
    ms_status status = ms_cluster_read(cx, root, cluster);
    ms_json_close(doc);
    *out = cluster;
    return status;
}

ms_status ms_cluster_names(ms_ctx *cx, const char *const **names, int *num_names)
{
    return ms_config_names(cx, "clusters", names, num_names);
}
