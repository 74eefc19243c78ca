/* Reads names and rates that publications state for networks. Texts are compared in lower
 * case without ' ', '-' and '_'. */
#include "sim/validate/pubrun_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_part(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Rate and count of adapters that a text about a network states. */
typedef struct stated_rate {
    /* number of adapters: "8 x 200G", "HDR 200 Gb/s x8", "4 NICs"; 1 if not stated */
    double count;
    double bytes_per_s; /* rate of one adapter; 0 if not stated */
    bool is_named;      /* only the link type is stated, as "EDR" */
} stated_rate;

/* Bytes per second of the unit of a rate, as "Gb/s"; 0 if `unit` is no such unit. */
static double rate_unit(const char *unit)
{
    double prefix = *unit == 'G' || *unit == 'g' ? 1e9 : *unit == 'T' ? 1e12 : 0.0;
    bool is_bytes = unit[0] != '\0' && unit[1] == 'B' && unit[2] != 'i';
    bool is_volume = unit[0] != '\0' && strncmp(unit + 1, "iB", 2) == 0;
    bool is_bare_t = *unit == 'T' && unit[1] != 'b' && unit[1] != 'B';
    return is_volume || is_bare_t ? 0.0 : is_bytes ? prefix : prefix / 8.0;
}

/* Rate of one link of the type that the text names, bytes/s; 0 if it names none. */
static double named_rate(const ms_name_tables *names, const char *plain)
{
    const ms_link_name *rows = names->links.rows;
    for (int i = 0; i < names->links.num_rows; i++)
        if (has_part(plain, rows[i].name))
            return rows[i].bytes_per_s;
    return 0.0;
}

static const char *after_blanks(const char *at)
{
    return at + strspn(at, " ");
}

/* Whether a word for adapters comes before the next number or bracket behind `at`: "4
 * NICs", "8 HCA", "4 HDR NICs". */
static bool is_adapters(ms_arena *arena, const char *at)
{
    static const char *const words[] = {"nic", "hca", "adapter", "rail", "link", "port"};
    int length = (int)strcspn(at, "0123456789(),;+");
    const char *text = ms_plain_text(arena, ms_arena_printf(arena, "%.*s", length, at));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_part(text, words[i]))
            return true;
    return false;
}

/* Whether a number starts at `at`; digits inside of names do not count: "CX-6", "HDR100",
 * "RoCEv2". */
static bool is_number_start(const char *text, const char *at)
{
    return isdigit((unsigned char)*at) &&
           (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '-' &&
                           at[-1] != '.' && at[-1] != '_'));
}

/* The first count of adapters in the text from `at` on, "x8" or "x 8"; 0 if none. */
static double count_behind(const char *at)
{
    for (; *at != '\0'; at++)
        if (*at == 'x' && !isalpha((unsigned char)at[-1]) &&
            isdigit((unsigned char)*after_blanks(at + 1)))
            return strtod(after_blanks(at + 1), NULL);
    return 0.0;
}

/* Reads rate and count of network adapters. Rate: the first number with a unit. Count:
 * the 8 of an "x8" behind the rate, else the last number that "x" or a word for adapters
 * follows. */
static stated_rate find_rate(const ms_name_tables *names, const char *text)
{
    ms_arena *arena = names->arena;
    stated_rate rate = {.count = 1.0};
    for (const char *at = text; *at != '\0'; at++) {
        if (!is_number_start(text, at) &&
            !(at > text && at[-1] == 'x' && isdigit((unsigned char)*at)))
            continue;
        char *end = NULL;
        double value = strtod(at, &end);
        const char *behind = after_blanks(end);
        double unit = rate_unit(behind);
        at = end - 1;
        if (*behind == 'x' || *behind == 'X') {
            rate.count = value;
        } else if (unit > 0.0 && value > 0.0 && value < 1e5) {
            if (rate.bytes_per_s > 0.0)
                continue;
            rate.bytes_per_s = value * unit;
            double count = count_behind(end);
            rate.count = count > 0.0 ? count : rate.count;
        } else if (is_adapters(arena, behind)) {
            rate.count = value;
        }
    }
    if (rate.count == 1.0 && has_part(ms_plain_text(arena, text), "dual"))
        rate.count = 2.0;
    if (!(rate.count >= 1.0 && rate.count <= 64.0))
        rate.count = 1.0;
    if (rate.bytes_per_s == 0.0) {
        rate.bytes_per_s = named_rate(names, ms_plain_text(arena, text));
        rate.is_named = true;
    }
    return rate;
}

static const char *network_text(const ms_name_tables *names, const ms_pubrun_cells *cells,
                                const ms_cluster *cluster)
{
    if (cells->network != NULL || cells->gpus <= cluster->gpus_per_node)
        return cells->network;
    return ms_pubrun_facts_of(names, cells).network;
}

/* Text after the link inside a node: "8x200 Gb/s" of "NVLink 600 GB/s + 8x200 Gb/s". */
static const char *outside_node(const char *text)
{
    const char *plus = strchr(text, '+');
    return plus != NULL && plus[1] != '\0' ? plus + 1 : text;
}

ms_pubrun_network ms_pubrun_network_of(const ms_name_tables *names,
                                       const ms_pubrun_cells *cells,
                                       const ms_cluster *cluster)
{
    ms_pubrun_network out = {.name = NULL, .bytes_per_s_per_gpu = (double)NAN};
    const char *stated = network_text(names, cells, cluster);
    if (stated == NULL || cluster->num_levels < 2)
        return out;
    const char *outside = outside_node(stated);
    const char *text = ms_plain_text(names->arena, outside);
    const ms_network_name *rows = names->networks.rows;
    for (int i = 0; i < names->networks.num_rows; i++) {
        if (has_part(text, rows[i].name)) {
            out.name = rows[i].network;
            out.instead_of = rows[i].instead_of;
            break;
        }
    }
    stated_rate rate = find_rate(names, outside);
    if (!(rate.bytes_per_s > 0.0))
        return out;
    double own = cluster->levels[1].bandwidth_bytes_per_s,
           nics_per_gpu = cluster->levels[1].nics_per_gpu;
    if (rate.is_named && rate.count == 1.0 && nics_per_gpu > 0.0) {
        out.bytes_per_s_per_gpu = rate.bytes_per_s * nics_per_gpu;
        return out;
    }
    bool is_per_gpu = strstr(text, "pergpu") != NULL || strstr(text, "/gpu") != NULL;
    bool is_per_node =
        rate.count > 1.0 || strstr(text, "node") != NULL || rate.bytes_per_s > 1.01 * own;
    double bytes_per_s = rate.bytes_per_s * rate.count;
    /* an NVLink rate is not the network's */
    bool is_nvlink = strstr(text, "nvl") != NULL;
    if (!is_nvlink)
        out.bytes_per_s_per_gpu = is_per_gpu || !is_per_node
                                      ? bytes_per_s
                                      : bytes_per_s / (double)cluster->gpus_per_node;
    return out;
}
