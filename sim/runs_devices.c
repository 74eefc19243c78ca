/* Names that publications use for devices, as tables of parts of them; the first rule
 * that matches holds. docs/names.md lists them. */
#include "sim/runs_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cluster by parts of the device's name, of the memory that it states and of what else
 * its text or the network's says. */
typedef struct device_rule {
    const char *part;
    double gib;       /* within a tenth; 0: any, or none stated */
    const char *word; /* NULL: any */
    const char *name; /* in configs/clusters/; NULL: there is none */
} device_rule;

/* Instances of clouds stand for their devices: AWS p4d, p4de, p5, p5e, p5en, p6, trn1,
 * trn2; Google Cloud a2, a3, a4 (machine types). */
static const device_rule device_rules[] = {
    {"laptop", 0, NULL, NULL},
    {"mig", 0, NULL, NULL},
    {"cnx", 0, NULL, NULL},
    {"tpu v3", 0, NULL, "tpu-v3"},
    {"tpu v4", 0, NULL, "tpu-v4"},
    {"tpu v5e", 0, NULL, "tpu-v5e"},
    {"tpu v5 lite", 0, NULL, "tpu-v5e"},
    {"tpu v5p", 0, NULL, "tpu-v5p"},
    {"tpu v6e", 0, NULL, "tpu-v6e"},
    {"tpu v7", 0, NULL, "tpu-v7"},
    {"tpu 7x", 0, NULL, "tpu-v7"},
    {"trillium", 0, NULL, "tpu-v6e"},
    {"ironwood", 0, NULL, "tpu-v7"},
    {"v5p", 0, NULL, "tpu-v5p"},
    {"v5e", 0, NULL, "tpu-v5e"},
    {"v5 lite", 0, NULL, "tpu-v5e"},
    {"v6e", 0, NULL, "tpu-v6e"},
    {"tpu", 0, NULL, NULL},
    {"gb300", 0, NULL, "gb300-nvl72"},
    {"gb200", 0, NULL, "gb200-nvl72"},
    {"gh200", 144, NULL, "gh200-144g"},
    {"gh200", 0, NULL, "gh200"},
    {"b300", 0, NULL, "hgx-b300"},
    {"b200", 0, "efa", "b200-efa"},
    {"b200", 0, NULL, "hgx-b200"},
    {"b100", 0, NULL, NULL},
    {"h200 nvl", 0, NULL, "h200-nvl"},
    {"h200", 0, "efa", "h200-efa"},
    {"h200", 0, "roce", "h200-roce"},
    {"h200", 0, NULL, "hgx-h200"},
    {"h800", 0, "pcie", "h800-pcie"},
    {"h800", 0, NULL, "hgx-h800"},
    {"h100 nvl", 0, NULL, "h100-nvl"},
    {"h100", 0, "pcie", "h100-pcie"},
    {"h100", 94, NULL, "h100-nvl"},
    {"h100", 96, NULL, "h100-96g-500w"},
    {"h100", 0, "efa", "h100-efa"},
    {"h100", 0, "tcpxo", "h100-tcpxo"},
    {"h100", 0, "tcpx", "h100-tcpx"},
    {"h100", 0, NULL, "hgx-h100"},
    {"h20 3e", 0, NULL, "h20-141g"},
    {"h20", 141, NULL, "h20-141g"},
    {"h20", 0, NULL, "hgx-h20"},
    {"a800", 0, "pcie", "a800-pcie"},
    {"a800", 0, NULL, "hgx-a800-80g"},
    {"a100", 40, "pcie", "a100-pcie-40g"},
    {"a100", 0, "pcie", "a100-pcie-80g"},
    {"a100", 40, "efa", "a100-efa"},
    {"a100", 40, NULL, "hgx-a100-40g"},
    {"a100", 80, "efa", "a100-80g-efa"},
    {"a100", 0, "efa", "a100-efa"},
    {"a100", 0, NULL, "hgx-a100-80g"},
    {"p4de", 0, NULL, "a100-80g-efa"},
    {"p4d", 0, NULL, "a100-efa"},
    {"p5e", 0, NULL, "h200-efa"},
    {"p5en", 0, NULL, "h200-efa"},
    {"p5", 0, NULL, "h100-efa"},
    {"p6 b200", 0, NULL, "b200-efa"},
    {"a2 highgpu", 0, NULL, "hgx-a100-40g"},
    {"a2 ultragpu", 0, NULL, "hgx-a100-80g"},
    {"a3 high", 0, NULL, "h100-tcpx"},
    {"a3 highgpu", 0, NULL, "h100-tcpx"},
    {"a3 mega", 0, NULL, "h100-tcpxo"},
    {"a3 megagpu", 0, NULL, "h100-tcpxo"},
    {"a3 ultra", 0, NULL, "h200-roce"},
    {"a3 ultragpu", 0, NULL, "h200-roce"},
    {"mi355x", 0, NULL, "mi355x"},
    {"mi355", 0, NULL, "mi355x"},
    {"mi350x", 0, NULL, "mi350x"},
    {"mi350", 0, NULL, "mi350x"},
    {"mi325x", 0, NULL, "mi325x"},
    {"mi325", 0, NULL, "mi325x"},
    {"mi300a", 0, NULL, "mi300a"},
    {"mi300x", 0, NULL, "mi300x"},
    {"mi300", 0, NULL, "mi300x"},
    {"mi250x", 0, NULL, "mi250x"},
    {"mi250", 0, NULL, "mi250"},
    {"mi210", 0, NULL, "mi210"},
    {"bi v100", 0, NULL, NULL}, /* Iluvatar's */
    {"v100", 0, "pcie", "v100-pcie"},
    {"v100", 0, NULL, "hgx-v100"},
    {"dgx 2", 0, NULL, "dgx-2"},
    {"l40s", 0, NULL, "pcie-l40s"},
    {"l40", 0, NULL, "pcie-l40"},
    {"l4", 0, NULL, "pcie-l4"},
    {"a10g", 0, NULL, "pcie-a10g"},
    {"a10", 0, NULL, "pcie-a10"},
    {"a30", 0, NULL, "pcie-a30"},
    {"a40", 0, NULL, "pcie-a40"},
    {"rtx pro 6000", 0, NULL, "pcie-rtx-pro-6000"},
    {"rtx 6000 ada", 0, NULL, "pcie-rtx-6000-ada"},
    {"a6000 ada", 0, NULL, "pcie-rtx-6000-ada"},
    {"a6000", 0, NULL, "pcie-rtx-a6000"},
    {"4090 d", 0, NULL, NULL},
    {"4090", 0, NULL, "pcie-rtx4090"},
    {"3090 ti", 0, NULL, NULL},
    {"3090", 0, NULL, "pcie-rtx3090"},
    {"5090 d", 0, NULL, NULL},
    {"5090", 0, NULL, "pcie-rtx5090"},
    {"gaudi 2", 0, NULL, "gaudi2"},
    {"gaudi 3", 0, NULL, "gaudi3"},
    {"trainium 2", 0, NULL, "trn2"},
    {"trn2", 0, NULL, "trn2"},
    {"trainium 1", 0, NULL, "trn1"},
    {"trn1", 0, NULL, "trn1"},
    {"ascend 910b", 0, NULL, "ascend-910b"},
    {"atlas 800t a2", 0, NULL, "ascend-910b"},
    {NULL, 0, NULL, NULL},
};

/* ---- names in texts ---- */

/* What may stand around a device's name without a space. */
static const char *const device_endings[] = {"sxm", "pcie", "pod", "nvl", "hbm", "16g",
                                             "32g", "40g",  "64g", "80g", "96g", NULL};
static const char *const device_beginnings[] = {
    "nvidia", "amd", "intel", "tesla", "rtx", "geforce", "instinct",
    "dgx",    "hgx", "aws",   "azure", "gcp", "habana",  NULL};

static bool ends_device(const char *rest)
{
    if (!isalnum((unsigned char)*rest))
        return true;
    if (rest[0] == 's' && !isalnum((unsigned char)rest[1])) /* H100s */
        return true;
    if (rest[0] == 'x' && isdigit((unsigned char)rest[1])) /* H100x8 */
        return true;
    for (const char *const *ending = device_endings; *ending != NULL; ending++)
        if (strncmp(rest, *ending, strlen(*ending)) == 0)
            return true;
    return false;
}

/* Whether a name may begin there: behind a space or mark, a count as in "8xH100", or a
 * vendor's name. */
static bool begins_device(const char *text, const char *at)
{
    if (at == text || !isalnum((unsigned char)at[-1]))
        return true;
    if (at[-1] == 'x' && at - text >= 2 && isdigit((unsigned char)at[-2]))
        return true;
    for (const char *const *begin = device_beginnings; *begin != NULL; begin++) {
        size_t length = strlen(*begin);
        if ((size_t)(at - text) >= length && strncmp(at - length, *begin, length) == 0)
            return true;
    }
    return false;
}

static bool is_gap(char c)
{
    return c != '\0' && strchr(" -_", c) != NULL;
}

/* Where the part's name ends in the text at `at`, whatever gaps either of them has
 * between its letters; NULL: it is not there. */
static const char *after_part(const char *at, const char *part)
{
    const char *begin = at;
    for (; *part != '\0'; part++) {
        if (*part == ' ')
            continue;
        while (at > begin && is_gap(*at))
            at++;
        if (*at != *part)
            return NULL;
        at++;
    }
    return at;
}

/* Whether the text, in lower case, names the device, and no letter or digit beside it
 * makes it another's name (A100X, H1000). */
static bool names_device(const char *text, const char *part)
{
    for (const char *at = text; *at != '\0'; at++) {
        const char *end = after_part(at, part);
        if (end != NULL && begins_device(text, at) && ends_device(end))
            return true;
    }
    return false;
}

static const char *lower_text(ms_arena *arena, const char *text)
{
    char *out = ms_arena_strdup(arena, text == NULL ? "" : text);
    for (char *at = out; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    return out;
}

/* ---- memory ---- */

/* Letters of a unit of memory at `unit`, in lower case and not part of a word or rate
 * ("400 Gb/s"); 0: it is none. */
static size_t memory_unit(const char *unit)
{
    static const char *const units[] = {"gib", "gb", "g"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i]);
        char next = strncmp(unit, units[i], length) == 0 ? unit[length] : 'x';
        if (!isalnum((unsigned char)next) && next != '/')
            return length;
    }
    return 0;
}

/* The first "80GB", "80 GiB", "80G" of a text in lower case, which is no count of GPUs
 * ("a3-highgpu-8g"); 0: none. */
static double stated_gib(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (!isdigit((unsigned char)*at))
            continue;
        bool starts = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '.');
        bool is_count = at - text >= 4 && strncmp(at - 4, "gpu-", 4) == 0;
        char *end = NULL;
        double value = strtod(at, &end);
        if (starts && !is_count && memory_unit(end + strspn(end, " -")) > 0 &&
            value >= 8.0 && value <= 4096.0)
            return value;
        at = end - 1;
    }
    return 0.0;
}

/* Memories that devices are sold with. */
static bool is_usual_gib(double gib)
{
    static const double usual[] = {16, 24, 32,  40,  48,  64, 80,
                                   94, 96, 128, 141, 192, 288};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (gib == usual[i])
            return true;
    return false;
}

/* Devices that a text in lower case counts: "8x A100", "A100 x 4", "4 * H100"; of a
 * system that is sold with eight, these; 0: it counts none. */
static double stated_devices(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool starts = isdigit((unsigned char)*at) && (at == text || is_gap(at[-1]));
        size_t digits = strspn(at, "0123456789");
        const char *behind = at + digits + strspn(at + digits, " ");
        if (starts && digits < 4 && (*behind == 'x' || *behind == '*'))
            return strtod(at, NULL);
        bool is_times = at > text && (at[-1] == ' ' || isdigit((unsigned char)at[-1])) &&
                        (*at == 'x' || *at == '*');
        behind = at + 1 + strspn(at + 1, " ");
        digits = strspn(behind, "0123456789");
        if (is_times && digits > 0 && digits < 4)
            return strtod(behind, NULL);
    }
    return strstr(text, "gx") != NULL ? 8.0 : 0.0;
}

/* Of a device: what a text states of all that it counts ("DGX A100 640GB", "8x A100
 * (320GB)"), or more than any device has, is shared by them, else by eight; a Superchip's
 * first figure may be its host's. */
static double device_gib(const char *text)
{
    const double most = 300.0;
    double gib = stated_gib(text), stated = stated_devices(text);
    double share = gib / (stated > 1.0 ? stated : 8.0);
    bool of_host = names_device(text, "gh200") && (gib == 120.0 || gib == 480.0);
    bool of_all =
        gib > most || (stated > 1.0 && !is_usual_gib(gib) && is_usual_gib(share));
    return of_host ? 0.0 : of_all ? share : gib;
}

double ms_run_stated_gib(ms_arena *arena, const ms_run_cells *cells)
{
    return device_gib(lower_text(arena, cells->gpu_type));
}

/* ---- clusters ---- */

static bool has_word(const char *device, const char *network, const char *word)
{
    return word == NULL || strstr(device, word) != NULL || strstr(network, word) != NULL;
}

static const device_rule *match_device(ms_arena *arena, const ms_run_cells *cells)
{
    const char *text = lower_text(arena, cells->gpu_type);
    const char *device = ms_plain_text(arena, cells->gpu_type);
    const char *network = ms_plain_text(arena, cells->network);
    double gib = device_gib(text);
    for (const device_rule *rule = device_rules; rule->part != NULL; rule++) {
        bool fits = rule->gib <= 0.0 || fabs(gib / rule->gib - 1.0) < 0.02;
        if (fits && names_device(text, rule->part) &&
            has_word(device, network, rule->word))
            return rule;
    }
    return NULL;
}

const char *ms_run_cluster_name(ms_arena *arena, const ms_run_cells *cells)
{
    const device_rule *rule = match_device(arena, cells);
    return rule == NULL ? NULL : rule->name;
}

static bool joins_words(const char *text)
{
    return strpbrk(text, "/+&,;") != NULL || strstr(text, " or ") != NULL ||
           strstr(text, " and ") != NULL || strstr(text, " vs ") != NULL;
}

/* Whether the text joins two memories that devices are sold with: "40/80GB", "40GB or
 * 80GB". */
static bool joins_memories(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool starts = isdigit((unsigned char)*at) &&
                      (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '.'));
        if (!starts)
            continue;
        char *end = NULL;
        double gib = strtod(at, &end);
        const char *joint = end + strspn(end, " gib");
        size_t letters = *joint == '/' ? 1 : strncmp(joint, "or ", 3) == 0 ? 3 : 0;
        const char *behind = joint + letters + strspn(joint + letters, " ");
        double other = strtod(behind, &end);
        if (letters > 0 && is_usual_gib(gib) && is_usual_gib(other) && gib != other &&
            memory_unit(end + strspn(end, " -")) > 0)
            return true;
    }
    return false;
}

bool ms_run_mixes_memories(ms_arena *arena, const ms_run_cells *cells)
{
    return joins_memories(lower_text(arena, cells->gpu_type));
}

bool ms_run_mixes_devices(ms_arena *arena, const ms_run_cells *cells)
{
    static const char *const often[] = {
        "gb300",   "gb200",  "b300",   "b200",   "h200",   "h100",
        "h800",    "h20",    "a800",   "a100",   "v100",   "gaudi 2",
        "gaudi 3", "mi250x", "mi300x", "mi325x", "mi355x", NULL};
    const char *text = lower_text(arena, cells->gpu_type);
    const device_rule *rule = match_device(arena, cells);
    if (rule == NULL || !joins_words(text))
        return false;
    for (const char *const *name = often; *name != NULL; name++)
        if (names_device(text, *name) && strcmp(*name, rule->part) != 0 &&
            strcmp(rule->part, "gh200") != 0)
            return true;
    return false;
}
