/* Finds the clusters and memory sizes of devices that cells of published tables name. */
#include "sim/validate/pubrun_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names in texts ---- */

/* Whether `text` begins with one of the list's texts. */
static bool begins_with_any(ms_list list, const char *text)
{
    const char *const *words = list.rows;
    for (int i = 0; i < list.num_rows; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

static bool ends_device(const ms_name_tables *names, const char *rest)
{
    if (!isalnum((unsigned char)*rest))
        return true;
    if (rest[0] == 's' && !isalnum((unsigned char)rest[1])) /* plural: "H100s" */
        return true;
    if (rest[0] == 'x' && isdigit((unsigned char)rest[1])) /* device count: "x8" */
        return true;
    return begins_with_any(names->after, rest);
}

/* Whether a device's name may begin at `at`: after a space or punctuation, a count as in
 * "8xH100", or a vendor's name. */
static bool begins_device(const ms_name_tables *names, const char *text, const char *at)
{
    if (at == text || !isalnum((unsigned char)at[-1]))
        return true;
    if (at[-1] == 'x' && at - text >= 2 && isdigit((unsigned char)at[-2]))
        return true;
    const char *const *begins = names->before.rows;
    for (int i = 0; i < names->before.num_rows; i++) {
        size_t length = strlen(begins[i]);
        if ((size_t)(at - text) >= length && strncmp(at - length, begins[i], length) == 0)
            return true;
    }
    return false;
}

static bool is_gap(char c)
{
    return c != '\0' && strchr(" -_", c) != NULL;
}

/* Matches `name` with the text at `at`, where gaps (" -_") in either do not count.
 * Returns the end of the match; NULL if there is none. */
static const char *match_name(const char *at, const char *name)
{
    const char *begin = at;
    for (; *name != '\0'; name++) {
        if (*name == ' ')
            continue;
        while (at > begin && is_gap(*at))
            at++;
        if (*at != *name)
            return NULL;
        at++;
    }
    return at;
}

/* Whether the text, in lower case, names the device, and no adjacent letter or digit
 * makes it the name of another (A100X, H1000). */
static bool names_device(const ms_name_tables *names, const char *text, const char *name)
{
    for (const char *at = text; *at != '\0'; at++) {
        const char *end = match_name(at, name);
        if (end != NULL && begins_device(names, text, at) && ends_device(names, end))
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

/* Length of the unit of memory at `unit` ("gib", "gb", "g"); 0 if there is none, or if it
 * is part of a word or of a rate ("400 Gb/s"). */
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

/* The first amount of memory in a text in lower case ("80GB", "80 GiB", "80G") that is no
 * count of GPUs ("a3-highgpu-8g"), in GiB; 0 if none. */
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

static bool has_number(ms_list list, double number)
{
    const double *numbers = list.rows;
    for (int i = 0; i < list.num_rows; i++)
        if (number == numbers[i])
            return true;
    return false;
}

/* Number of devices that a text in lower case states: "8x A100", "A100 x 4", "4 * H100";
 * 8 for DGX and HGX systems, which are sold with eight; 0 if none is stated. */
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

/* Whether the text names a Superchip whose host has `gib` of memory. */
static bool is_of_host(const ms_name_tables *names, const char *text, double gib)
{
    const ms_device_name *rows = names->devices.rows;
    for (int i = 0; i < names->devices.num_rows; i++)
        if (has_number(rows[i].host_gib, gib) && names_device(names, text, rows[i].name))
            return true;
    return false;
}

/* Memory of one device that the text states, GiB. The amount is a sum over the stated
 * number of devices (else eight) if no device has as much, or if only its share is a size
 * that devices are sold with ("8x A100 (320GB)"). 0: the amount is a Superchip host's. */
static double device_gib(const ms_name_tables *names, const char *text)
{
    double gib = stated_gib(text), stated = stated_devices(text);
    double share = gib / (stated > 1.0 ? stated : 8.0);
    bool is_sum =
        gib > names->most_gib || (stated > 1.0 && !has_number(names->memories_gib, gib) &&
                                  has_number(names->memories_gib, share));
    return is_of_host(names, text, gib) ? 0.0 : is_sum ? share : gib;
}

double ms_pubrun_stated_gib(const ms_name_tables *names, const ms_pubrun_cells *cells)
{
    return device_gib(names, lower_text(names->arena, cells->gpu_type));
}

/* ---- clusters ---- */

static bool has_word(const char *device, const char *network, const char *word)
{
    return word == NULL || strstr(device, word) != NULL || strstr(network, word) != NULL;
}

static const ms_device_name *match_device(const ms_name_tables *names,
                                          const ms_pubrun_cells *cells)
{
    const char *text = lower_text(names->arena, cells->gpu_type);
    const char *device = ms_plain_text(names->arena, cells->gpu_type);
    const char *network = ms_plain_text(names->arena, cells->network);
    double gib = device_gib(names, text);
    const ms_device_name *rows = names->devices.rows;
    for (const ms_device_name *row = rows; row < rows + names->devices.num_rows; row++) {
        bool fits = row->gib <= 0.0 || fabs(gib / row->gib - 1.0) < 0.02;
        if (fits && names_device(names, text, row->name) &&
            has_word(device, network, row->word))
            return row;
    }
    return NULL;
}

const char *ms_pubrun_cluster_name(const ms_name_tables *names,
                                   const ms_pubrun_cells *cells)
{
    const ms_device_name *row = match_device(names, cells);
    return row == NULL ? NULL : row->cluster;
}

static bool joins_words(const char *text)
{
    return strpbrk(text, "/+&,;") != NULL || strstr(text, " or ") != NULL ||
           strstr(text, " and ") != NULL || strstr(text, " vs ") != NULL;
}

/* Whether the text joins two memory sizes that devices are sold with: "40/80GB", "40GB or
 * 80GB". */
static bool joins_memories(const ms_name_tables *names, const char *text)
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
        if (letters > 0 && has_number(names->memories_gib, gib) &&
            has_number(names->memories_gib, other) && gib != other &&
            memory_unit(end + strspn(end, " -")) > 0)
            return true;
    }
    return false;
}

bool ms_pubrun_mixes_memories(const ms_name_tables *names, const ms_pubrun_cells *cells)
{
    return joins_memories(names, lower_text(names->arena, cells->gpu_type));
}

bool ms_pubrun_mixes_devices(const ms_name_tables *names, const ms_pubrun_cells *cells)
{
    const char *text = lower_text(names->arena, cells->gpu_type);
    const ms_device_name *named = match_device(names, cells);
    if (named == NULL || !joins_words(text) || named->host_gib.num_rows > 0)
        return false;
    const ms_device_name *rows = names->devices.rows;
    for (const ms_device_name *row = rows; row < rows + names->devices.num_rows; row++)
        if (row->mixes && strcmp(row->name, named->name) != 0 &&
            names_device(names, text, row->name))
            return true;
    return false;
}
