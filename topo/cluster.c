/* Reads clusters from configs/clusters/ and prints them. The levels of a cluster are ordered
 * innermost first; every domain holds a whole number of domains of the level below it. */
#include "topo/cluster.h"

#include "base/paths.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

/* Far beyond any machine: larger figures are slips, and would overflow what is summed. */
#define MAX_BYTES_PER_S 1e15
#define MAX_LATENCY_S   1.0

const char *const ms_dtype_names[] = {"fp64", "fp32", "tf32", "bf16",
                                      "fp16", "fp8",  "fp4",  NULL};

double ms_dtype_bytes(ms_dtype dtype)
{
    static const double bytes[MS_NUM_DTYPES] = {8.0, 4.0, 4.0, 2.0, 2.0, 1.0, 0.5};
    return bytes[dtype];
}

static const char *const cluster_aliases[] = {"h100",        "hgx-h100",
                                              "dgx-h100",    "hgx-h100",
                                              "h200",        "hgx-h200",
                                              "dgx-h200",    "hgx-h200",
                                              "h800",        "hgx-h800",
                                              "a100",        "hgx-a100-80g",
                                              "a100-80g",    "hgx-a100-80g",
                                              "dgx-a100",    "hgx-a100-80g",
                                              "b200",        "hgx-b200",
                                              "a100-40g",    "hgx-a100-40g",
                                              "dgx-b200",    "hgx-b200",
                                              "b300",        "hgx-b300",
                                              "dgx-b300",    "hgx-b300",
                                              "gb200",       "gb200-nvl72",
                                              "gb300",       "gb300-nvl72",
                                              "4090",        "workstation-rtx4090",
                                              "rtx4090",     "workstation-rtx4090",
                                              "workstation", "workstation-rtx4090",
                                              "p5",          "h100-efa",
                                              "h100-96g",    "h100-96g-500w",
                                              NULL};

#define AT(member) offsetof(ms_cluster, member)

static const ms_field cluster_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "name",
     .offset = AT(name),
     .required = true,
     .help = "name of the cluster"},
    {.kind = MS_FIELD_TEXT,
     .key = "description",
     .offset = AT(description),
     .help = "one line for people"},
    {.kind = MS_FIELD_TEXT,
     .key = "source",
     .offset = AT(source),
     .required = true,
     .help = "where the figures come from, with date"},
    {.kind = MS_FIELD_TEXT,
     .key = "network",
     .offset = AT(network),
     .required = true,
     .help = "infiniband, roce, efa, ethernet or none: coefficients of the profile"},
    {.kind = MS_FIELD_ANY, .key = "device", .required = true, .help = "the accelerator"},
    {.kind = MS_FIELD_INTEGER,
     .key = "gpus_per_node",
     .offset = AT(gpus_per_node),
     .required = true,
     .low = 1,
     .high = 4096,
     .help = "GPUs of one host"},
    {.kind = MS_FIELD_INTEGER,
     .key = "max_gpus",
     .offset = AT(max_gpus),
     .nullable = true,
     .low = 1,
     .high = 1e8,
     .help = "GPUs of the whole cluster; absent: not limited"},
    {.kind = MS_FIELD_ANY,
     .key = "levels",
     .required = true,
     .help = "levels of the network, innermost first"},
    {.kind = MS_FIELD_NUMBER,
     .key = "usd_per_gpu_hour",
     .offset = AT(usd_per_gpu_hour),
     .nullable = true,
     .low = 0,
     .high = 1e6,
     .help = "price of one GPU for an hour"},
    {0}};

#undef AT
#define AT(member) offsetof(ms_device, member)

static const ms_field device_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "name",
     .offset = AT(name),
     .required = true,
     .help = "name of the device"},
    {.kind = MS_FIELD_TEXT,
     .key = "profile",
     .offset = AT(profile),
     .required = true,
     .help = "cost profile in configs/profiles/"},
    {.kind = MS_FIELD_QUANTITY,
     .key = "memory",
     .offset = AT(memory_bytes),
     .required = true,
     .unit = MS_UNIT_BYTES,
     .help = "usable memory as the driver reports it"},
    {.kind = MS_FIELD_QUANTITY,
     .key = "hbm",
     .offset = AT(hbm_bytes_per_s),
     .required = true,
     .unit = MS_UNIT_BYTES_PER_S,
     .help = "listed memory bandwidth"},
    {.kind = MS_FIELD_ANY,
     .key = "peak",
     .required = true,
     .help = "dense peak per data type; null or absent: unknown or not supported"},
    {.kind = MS_FIELD_INTEGER,
     .key = "sms",
     .offset = AT(num_sms),
     .required = true,
     .low = 1,
     .high = 4096,
     .help = "streaming multiprocessors"},
    {.kind = MS_FIELD_NUMBER,
     .key = "tdp_w",
     .offset = AT(tdp_w),
     .nullable = true,
     .low = 1,
     .high = 1e5,
     .help = "power limit in watts"},
    {0}};

#undef AT
#define AT(member) offsetof(ms_level, member)

static const ms_field level_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "name",
     .offset = AT(name),
     .required = true,
     .help = "name of the level"},
    {.kind = MS_FIELD_INTEGER,
     .key = "gpus_per_domain",
     .offset = AT(gpus_per_domain),
     .low = 1,
     .high = 1e8,
     .help = "GPUs that share a domain; absent at the outermost level"},
    {.kind = MS_FIELD_QUANTITY,
     .key = "bandwidth",
     .offset = AT(bandwidth_bytes_per_s),
     .required = true,
     .unit = MS_UNIT_BYTES_PER_S,
     .help = "per GPU and direction"},
    {.kind = MS_FIELD_QUANTITY,
     .key = "latency",
     .offset = AT(latency_s),
     .required = true,
     .unit = MS_UNIT_SECONDS,
     .help = "of a message, beyond that of a send in the innermost level"},
    {.kind = MS_FIELD_NUMBER,
     .key = "oversubscription",
     .offset = AT(oversubscription),
     .low = 1,
     .high = 1000,
     .help = "1: full bisection"},
    {.kind = MS_FIELD_NUMBER,
     .key = "nics_per_gpu",
     .offset = AT(nics_per_gpu),
     .low = 0,
     .high = 64,
     .help = "NICs that one GPU can use alone"},
    {0}};

#undef AT

/* Peaks are keyed by data type; absent and null ones stay NaN. */
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
    MS_TRY(ms_json_read(cx, value, device_fields, device));
    MS_TRY(check_positive(cx, value, "memory", device->memory_bytes));
    MS_TRY(check_bandwidth(cx, value, "hbm", device->hbm_bytes_per_s));
    ms_jval peak = value;
    ms_json_member(cx, value, "peak", &peak);
    return read_peaks(cx, peak, device);
}

/* Domains must nest: 8, 256, everything. Only the outermost may leave its size open. */
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
        ms_hint(cx, "leave gpus_per_domain out there, and state the size as max_gpus");
        return MS_EINPUT;
    }
    if (size == 0) {
        return ms_json_fail(
            cx, value,
            "level \"%s\" needs gpus_per_domain; only the outermost may leave it out",
            cluster->levels[level].name);
    }
    long inner = level > 0 ? cluster->levels[level - 1].gpus_per_domain : 1;
    if (inner == 0)
        return MS_EINPUT; /* the level below is bad and has been reported */
    if (size % inner != 0 || (level > 0 && size == inner)) {
        return ms_json_fail(
            cx, value,
            "gpus_per_domain is %ld, must be a larger multiple of the %ld GPUs of the level below",
            size, inner);
    }
    return MS_OK;
}

static ms_status read_level(ms_ctx *cx, ms_jval value, ms_cluster *cluster, int index)
{
    ms_level *level = &cluster->levels[index];
    level->oversubscription = 1.0;
    MS_TRY(ms_json_read(cx, value, level_fields, level));
    MS_TRY(check_bandwidth(cx, value, "bandwidth", level->bandwidth_bytes_per_s));
    MS_TRY(check_most(cx, value, "latency", level->latency_s, MS_UNIT_SECONDS));
    return check_nesting(cx, value, cluster, index);
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

/* A domain of the innermost level holds whole nodes, as NVL72 holds 18 of 4. */
static ms_status check_node(ms_ctx *cx, ms_jval root, const ms_cluster *cluster)
{
    long size = cluster->levels[0].gpus_per_domain;
    if (size == 0 || size % cluster->gpus_per_node == 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, root, "gpus_per_node"),
            "gpus_per_node is %ld, must divide the %ld GPUs of a domain of level \"%s\"",
            cluster->gpus_per_node, size, cluster->levels[0].name);
    ms_hint(cx, "gpus_per_node is the GPUs of one host; gpus_per_domain of the innermost "
                "level is those that its fastest links join");
    return MS_EINPUT;
}

ms_status ms_cluster_read(ms_ctx *cx, ms_jval root, ms_cluster *out)
{
    *out = (ms_cluster){.usd_per_gpu_hour = NAN};
    MS_TRY(ms_json_read(cx, root, cluster_fields, out));
    ms_jval device = root;
    ms_jval levels = root;
    ms_json_member(cx, root, "device", &device);
    ms_json_member(cx, root, "levels", &levels);
    ms_status status = read_device(cx, device, &out->device);
    if (read_levels(cx, levels, out) != MS_OK || check_node(cx, root, out) != MS_OK)
        status = MS_EINPUT;
    return status;
}

ms_status ms_cluster_load(ms_ctx *cx, const char *name_or_path, const ms_cluster **out)
{
    const char *path = NULL;
    MS_TRY(ms_config_resolve(cx, "clusters", "cluster", name_or_path, cluster_aliases,
                             &path));
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

static void print_quantity(FILE *out, const char *label, double value, ms_unit unit)
{
    char text[48];
    fprintf(out, "  %-18s %s\n", label,
            ms_format_quantity(text, sizeof text, value, unit));
}

static void print_device(FILE *out, const ms_device *device)
{
    fprintf(out, "\ndevice %s (profile %s)\n", device->name, device->profile);
    print_quantity(out, "memory", device->memory_bytes, MS_UNIT_BYTES);
    print_quantity(out, "memory bandwidth", device->hbm_bytes_per_s, MS_UNIT_BYTES_PER_S);
    for (int i = 0; i < MS_NUM_DTYPES; i++) {
        char label[24];
        snprintf(label, sizeof label, "peak %s", ms_dtype_names[i]);
        if (!isnan(device->peak_flop_per_s[i]))
            print_quantity(out, label, device->peak_flop_per_s[i], MS_UNIT_FLOP_PER_S);
    }
    fprintf(out, "  %-18s %ld\n", "multiprocessors", device->num_sms);
    if (!isnan(device->tdp_w))
        fprintf(out, "  %-18s %.0f W\n", "power limit", device->tdp_w);
}

static void print_level(FILE *out, const ms_level *level)
{
    char domain[32] = "all GPUs";
    char bandwidth[48];
    char latency[48];
    if (level->gpus_per_domain > 0)
        snprintf(domain, sizeof domain, "%ld %s", level->gpus_per_domain,
                 level->gpus_per_domain == 1 ? "GPU" : "GPUs");
    ms_format_quantity(bandwidth, sizeof bandwidth, level->bandwidth_bytes_per_s,
                       MS_UNIT_BYTES_PER_S);
    ms_format_quantity(latency, sizeof latency, level->latency_s, MS_UNIT_SECONDS);
    fprintf(out, "  %-10s %12s   %s per GPU and direction", level->name, domain,
            bandwidth);
    if (level->latency_s > 0.0)
        fprintf(out, ", +%s a message", latency);
    if (level->oversubscription > 1.0)
        fprintf(out, ", %g:1 oversubscribed", level->oversubscription);
    if (level->nics_per_gpu > 0.0)
        fprintf(out, ", %g %s a GPU", level->nics_per_gpu,
                level->nics_per_gpu == 1.0 ? "NIC" : "NICs");
    fputc('\n', out);
}

void ms_cluster_print(FILE *out, const ms_cluster *cluster)
{
    fprintf(out, "cluster %s\n", cluster->name);
    if (cluster->description != NULL)
        fprintf(out, "  %s\n", cluster->description);
    fprintf(out, "  %-18s %ld\n", "GPUs per node", cluster->gpus_per_node);
    if (cluster->max_gpus > 0)
        fprintf(out, "  %-18s %ld\n", "GPUs at most", cluster->max_gpus);
    if (!isnan(cluster->usd_per_gpu_hour))
        fprintf(out, "  %-18s %.2f USD\n", "GPU hour", cluster->usd_per_gpu_hour);
    print_device(out, &cluster->device);
    fprintf(out, "\nnetwork %s, innermost level first\n", cluster->network);
    for (int i = 0; i < cluster->num_levels; i++)
        print_level(out, &cluster->levels[i]);
    fprintf(out, "\nsource: %s\n", cluster->source);
}

static void write_count(ms_jout *out, const char *key, long count)
{
    ms_jout_number_field(out, key, count > 0 ? (double)count : (double)NAN);
}

static void write_device(ms_jout *out, const ms_device *device)
{
    ms_jout_key(out, "device");
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", device->name);
    ms_jout_text_field(out, "profile", device->profile);
    ms_jout_number_field(out, "memory_bytes", device->memory_bytes);
    ms_jout_number_field(out, "hbm_bytes_per_s", device->hbm_bytes_per_s);
    ms_jout_key(out, "peak_flop_per_s");
    ms_jout_begin_object(out);
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        ms_jout_number_field(out, ms_dtype_names[i], device->peak_flop_per_s[i]);
    ms_jout_end_object(out);
    ms_jout_number_field(out, "num_sms", (double)device->num_sms);
    ms_jout_number_field(out, "tdp_w", device->tdp_w);
    ms_jout_end_object(out);
}

static void write_level(ms_jout *out, const ms_level *level)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", level->name);
    write_count(out, "gpus_per_domain", level->gpus_per_domain);
    ms_jout_number_field(out, "bandwidth_bytes_per_s", level->bandwidth_bytes_per_s);
    ms_jout_number_field(out, "latency_s", level->latency_s);
    ms_jout_number_field(out, "oversubscription", level->oversubscription);
    ms_jout_number_field(out, "nics_per_gpu", level->nics_per_gpu);
    ms_jout_end_object(out);
}

void ms_cluster_write_json(ms_jout *out, const ms_cluster *cluster)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.cluster/1");
    ms_jout_text_field(out, "name", cluster->name);
    ms_jout_text_field(out, "description", cluster->description);
    ms_jout_text_field(out, "source", cluster->source);
    ms_jout_text_field(out, "network", cluster->network);
    write_device(out, &cluster->device);
    ms_jout_number_field(out, "gpus_per_node", (double)cluster->gpus_per_node);
    write_count(out, "max_gpus", cluster->max_gpus);
    ms_jout_key(out, "levels");
    ms_jout_begin_array(out);
    for (int i = 0; i < cluster->num_levels; i++)
        write_level(out, &cluster->levels[i]);
    ms_jout_end_array(out);
    ms_jout_number_field(out, "usd_per_gpu_hour", cluster->usd_per_gpu_hour);
    ms_jout_end_object(out);
}
