/* Writes a cluster as a cluster file: quantities with units and all their digits. */
#include "topo/site.h"

#include <math.h>

/* Writes a quantity, or null where it is NaN. */
static void put(ms_jout *out, const char *key, double value, const char *unit)
{
    char number[32], text[48];
    snprintf(text, sizeof text, "%s %s", ms_json_number_text(value, number), unit);
    ms_jout_text_field(out, key, isnan(value) ? NULL : text);
}

static void put_count(ms_jout *out, const char *key, long value)
{
    if (value > 0)
        ms_jout_number_field(out, key, (double)value);
}

static void write_device(ms_jout *out, const ms_device *device)
{
    ms_jout_begin_object_field(out, "device");
    ms_jout_text_field(out, "name", device->name);
    ms_jout_text_field(out, "profile", device->profile);
    if (device->unit != NULL)
        ms_jout_text_field(out, "unit", device->unit);
    put(out, "memory", device->memory_bytes, "B");
    put(out, "hbm", device->hbm_bytes_per_s, "B/s");
    ms_jout_begin_object_field(out, "peak");
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        if (!isnan(device->peak_flop_per_s[i]))
            put(out, ms_dtype_names[i], device->peak_flop_per_s[i], "FLOP/s");
    ms_jout_end_object(out);
    ms_jout_number_field(out, "sms", (double)device->num_sms);
    ms_jout_number_field(out, "tdp_w", device->tdp_w);
    ms_jout_number_field(out, "compute_capability", device->compute_capability);
    ms_jout_end_object(out);
}

static void write_host(ms_jout *out, const ms_host_link *host)
{
    if (host->source == NULL)
        return;
    ms_jout_begin_object_field(out, "host_link");
    put(out, "bandwidth", host->bytes_per_s, "B/s");
    put_count(out, "gpus_per_link", host->gpus_per_link);
    put(out, "memory_bandwidth", host->memory_bytes_per_s, "B/s");
    ms_jout_text_field(out, "source", host->source);
    ms_jout_end_object(out);
}

static void write_level(ms_jout *out, const ms_level *level)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", level->name);
    put_count(out, "gpus_per_domain", level->gpus_per_domain);
    put(out, "bandwidth", level->bandwidth_bytes_per_s, "B/s");
    put(out, "latency", level->latency_s, "s");
    ms_jout_number_field(out, "oversubscription", level->oversubscription);
    ms_jout_number_field(out, "nics_per_gpu", level->nics_per_gpu);
    if (level->topology != MS_SWITCH)
        ms_jout_text_field(out, "topology", ms_topology_names[level->topology]);
    put_count(out, "rails", level->rails);
    ms_jout_end_object(out);
}

void ms_cluster_write_file(ms_jout *out, const ms_cluster *cluster)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", cluster->name);
    ms_jout_text_field(out, "description", cluster->description);
    ms_jout_text_field(out, "source", cluster->source);
    ms_jout_text_field(out, "network", cluster->network);
    write_device(out, &cluster->device);
    write_host(out, &cluster->host);
    ms_jout_number_field(out, "gpus_per_node", (double)cluster->gpus_per_node);
    put_count(out, "max_gpus", cluster->max_gpus);
    ms_jout_begin_array_field(out, "levels");
    for (int i = 0; i < cluster->num_levels; i++)
        write_level(out, &cluster->levels[i]);
    ms_jout_end_array(out);
    ms_jout_number_field(out, "usd_per_gpu_hour", cluster->usd_per_gpu_hour);
    ms_jout_end_object(out);
}
