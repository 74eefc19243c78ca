/* Prints a cluster as a page of text, and writes it as JSON. */
#include "base/print.h"
#include "base/units.h"
#include "topo/cluster.h"
#include "topo/device_kinds.h"

#include <limits.h>

#include <math.h>

static void print_quantity(FILE *out, const char *label, double value, ms_unit unit)
{
    char text[48];
    ms_print(out, "  %-18s %s\n", label,
             ms_format_quantity(text, sizeof text, value, unit));
}

static void print_device(FILE *out, const ms_device *device)
{
    ms_print(out, "\ndevice %s (profile %s)\n", device->name, device->profile);
    print_quantity(out, "memory", device->memory_bytes, MS_UNIT_BYTES);
    print_quantity(out, "memory bandwidth", device->hbm_bytes_per_s, MS_UNIT_BYTES_PER_S);
    for (int i = 0; i < MS_NUM_DTYPES; i++) {
        char label[24];
        snprintf(label, sizeof label, "peak %s", ms_dtype_names[i]);
        if (!isnan(device->peak_flop_per_s[i]))
            print_quantity(out, label, device->peak_flop_per_s[i], MS_UNIT_FLOP_PER_S);
    }
    ms_print(out, "  %-18s %ld\n", "multiprocessors", device->num_sms);
    if (!isnan(device->tdp_w))
        ms_print(out, "  %-18s %.0f W\n", "power limit", device->tdp_w);
    if (!isnan(device->compute_capability))
        ms_print(out, "  %-18s %.1f\n", "compute capability", device->compute_capability);
}

static void print_host(FILE *out, const ms_host_link *host)
{
    if (host->source == NULL)
        return;
    ms_print(out, "\nhost\n");
    if (!isnan(host->bytes_per_s))
        print_quantity(out, "copies each way", host->bytes_per_s, MS_UNIT_BYTES_PER_S);
    if (host->gpus_per_link > 1)
        ms_print(out, "  %-18s %ld\n", "GPUs per link", host->gpus_per_link);
    if (!isnan(host->memory_bytes_per_s))
        print_quantity(out, "memory bandwidth", host->memory_bytes_per_s,
                       MS_UNIT_BYTES_PER_S);
    ms_print(out, "  %-18s %s\n", "source", host->source);
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
    ms_print(out, "  %-10s %12s   %s per GPU and direction", level->name, domain,
             bandwidth);
    if (level->latency_s > 0.0)
        ms_print(out, ", +%s a message", latency);
    if (level->oversubscription > 1.0)
        ms_print(out, ", %g:1 oversubscribed", level->oversubscription);
    if (level->nics_per_gpu > 0.0)
        ms_print(out, ", %g %s a GPU", level->nics_per_gpu,
                 level->nics_per_gpu == 1.0 ? "NIC" : "NICs");
    if (level->topology != MS_SWITCH)
        ms_print(out, ", %s", ms_topology_names[level->topology]);
    for (int i = 0; i < level->num_dims; i++)
        ms_print(out, "%s%ld", i == 0 ? " " : " x ", level->dims[i]);
    if (level->rails > 0)
        ms_print(out, ", %ld rails", level->rails);
    fputc('\n', out);
}

/* Number of GPUs of a kind; LONG_MAX: not limited. */
static long gpus_of_kind(const ms_cluster *cluster, int kind)
{
    long num_gpus = 0;
    for (int i = 0; i < cluster->num_ranges; i++) {
        const ms_kind_range *range = &cluster->ranges[i];
        if (range->kind != kind)
            continue;
        if (range->num_gpus == LONG_MAX)
            return LONG_MAX;
        num_gpus += range->num_gpus;
    }
    return num_gpus;
}

static void print_kinds(FILE *out, const ms_cluster *cluster)
{
    if (cluster->num_kinds == 0)
        return;
    ms_print(out, "\ngroups and slow nodes\n");
    ms_arena *scratch = ms_arena_open();
    for (int k = 0; k < cluster->num_kinds; k++) {
        const ms_cluster *like = cluster->kinds[k].like;
        long num_gpus = gpus_of_kind(cluster, k);
        ms_print(out, "  %-18s %s%s%s\n",
                 num_gpus == LONG_MAX ? "all other GPUs"
                                      : ms_arena_printf(scratch, "%ld GPUs", num_gpus),
                 ms_kind_text(scratch, cluster, k), like != NULL ? ", like " : "",
                 like != NULL ? like->name : "");
    }
    ms_arena_close(scratch);
    if (cluster->between != NULL)
        ms_print(out, "below: the least memory and network of all groups, and the rates "
                      "of the first group's device\n");
}

void ms_cluster_print(FILE *out, const ms_cluster *cluster)
{
    ms_print(out, "cluster %s\n", cluster->name);
    if (cluster->description != NULL)
        ms_print(out, "  %s\n", cluster->description);
    ms_print(out, "  %-18s %ld\n", "GPUs per node", cluster->gpus_per_node);
    if (cluster->max_gpus > 0)
        ms_print(out, "  %-18s %ld\n", "GPUs at most", cluster->max_gpus);
    if (!isnan(cluster->usd_per_gpu_hour))
        ms_print(out, "  %-18s %.2f USD\n", "GPU hour", cluster->usd_per_gpu_hour);
    print_kinds(out, cluster);
    print_device(out, &cluster->device);
    print_host(out, &cluster->host);
    ms_print(out, "\nnetwork %s, innermost level first\n", cluster->network);
    for (int i = 0; i < cluster->num_levels; i++)
        print_level(out, &cluster->levels[i]);
    ms_print(out, "\nsource: %s\n", cluster->source);
}

/* Writes a count; null for 0, which stands for "not stated". */
static void write_count(ms_jout *out, const char *key, long count)
{
    ms_jout_number_field(out, key, count > 0 ? (double)count : (double)NAN);
}

static void write_device(ms_jout *out, const ms_device *device)
{
    ms_jout_begin_object_field(out, "device");
    ms_jout_text_field(out, "name", device->name);
    ms_jout_text_field(out, "profile", device->profile);
    ms_jout_number_field(out, "memory_bytes", device->memory_bytes);
    ms_jout_number_field(out, "hbm_bytes_per_s", device->hbm_bytes_per_s);
    ms_jout_begin_object_field(out, "peak_flop_per_s");
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        ms_jout_number_field(out, ms_dtype_names[i], device->peak_flop_per_s[i]);
    ms_jout_end_object(out);
    ms_jout_number_field(out, "num_sms", (double)device->num_sms);
    ms_jout_number_field(out, "tdp_w", device->tdp_w);
    ms_jout_number_field(out, "compute_capability", device->compute_capability);
    ms_jout_end_object(out);
}

static void write_host(ms_jout *out, const ms_host_link *host)
{
    ms_jout_begin_object_field(out, "host_link");
    ms_jout_number_field(out, "bytes_per_s", host->bytes_per_s);
    ms_jout_number_field(out, "gpus_per_link", (double)host->gpus_per_link);
    ms_jout_number_field(out, "memory_bytes_per_s", host->memory_bytes_per_s);
    ms_jout_text_field(out, "source", host->source);
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
    ms_jout_text_field(out, "topology", ms_topology_names[level->topology]);
    if (level->topology == MS_TORUS) {
        ms_jout_key(out, "dims");
        ms_jout_integers(out, level->dims, level->num_dims);
        ms_jout_number_field(out, "wrap", (double)level->wrap);
    }
    write_count(out, "rails", level->rails);
    ms_jout_end_object(out);
}

static void write_kinds(ms_jout *out, const ms_cluster *cluster)
{
    if (cluster->num_kinds == 0)
        return;
    ms_jout_begin_array_field(out, "device_kinds");
    for (int k = 0; k < cluster->num_kinds; k++) {
        const ms_device_kind *kind = &cluster->kinds[k];
        long num_gpus = gpus_of_kind(cluster, k);
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "group", kind->group);
        ms_jout_text_field(out, "like", kind->like == NULL ? NULL : kind->like->name);
        ms_jout_text_field(out, "device", ms_kind_device(cluster, k)->name);
        write_count(out, "gpus", num_gpus == LONG_MAX ? 0 : num_gpus);
        ms_jout_number_field(out, "compute_frac", kind->compute_frac);
        ms_jout_number_field(out, "link_frac", kind->link_frac);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
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
    write_host(out, &cluster->host);
    ms_jout_number_field(out, "gpus_per_node", (double)cluster->gpus_per_node);
    write_count(out, "max_gpus", cluster->max_gpus);
    ms_jout_begin_array_field(out, "levels");
    for (int i = 0; i < cluster->num_levels; i++)
        write_level(out, &cluster->levels[i]);
    ms_jout_end_array(out);
    ms_jout_number_field(out, "usd_per_gpu_hour", cluster->usd_per_gpu_hour);
    write_kinds(out, cluster);
    ms_jout_end_object(out);
}
