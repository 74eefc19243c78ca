/* Determines the coefficients that the time of a measured collective depends on, and the
 * sources that they were fitted to. */
#include "sim/validate/collective_rows_priv.h"

#include <math.h>
#include <string.h>

#define SEND_FRAC ".send_frac"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t length = strlen(text), least = strlen(with);
    return length >= least && strcmp(text + length - least, with) == 0;
}

bool ms_collective_figure(const ms_figure *figure)
{
    static const char *const prefixes[] = {"p2p_base", "link.", "all_to_all.", "nvls.",
                                           "networks."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (begins(figure->key, prefixes[i]))
            return figure->is_coefficient && !ends(figure->key, ".min_ranks");
    return false;
}

bool ms_collective_figure_of_law(const ms_figure *figure, const char *law)
{
    const char *key = figure->key;
    if (!ms_collective_figure(figure))
        return false;
    if (strcmp(law, "send") == 0)
        return strcmp(key, "p2p_base") == 0 || ends(key, SEND_FRAC);
    return begins(key, law) && key[strlen(law)] == '.' && !ends(key, SEND_FRAC);
}

static bool may_reduce_in_switch(const ms_collective_row *row)
{
    return row->collective == MS_ALL_REDUCE &&
           !isnan(row->profile->nvls_bytes_per_s.value) &&
           (double)row->gpus >= row->profile->nvls_min_ranks.value &&
           (row->algorithm == MS_ALGORITHM_NONE ||
            ms_algorithm_row_of(row->algorithm)->in_switch);
}

const char *ms_collective_row_law_name(ms_arena *arena, const ms_collective_row *row)
{
    if (row->collective == MS_SEND)
        return "send";
    if (ms_collective_row_span(row).tier > 0)
        return ms_arena_printf(arena, "networks.%s", row->cluster->network);
    if (row->collective == MS_ALL_TO_ALL)
        return "all_to_all";
    return may_reduce_in_switch(row) ? "nvls" : "link";
}

/* Length of a source's name before its revision or remark: "owner/repository", or a
 * whole address. */
static size_t source_key_length(const char *source)
{
    if (strncmp(source, "http", 4) == 0)
        return strcspn(source, " ");
    return strcspn(source, "@: ");
}

bool ms_coefficient_names_source(const ms_coefficient *c, const char *source)
{
    if (c->source == NULL || (c->from != MS_FITTED && c->from != MS_MEASURED))
        return false;
    size_t length = source_key_length(source);
    for (const char *at = c->source; (at = strchr(at, source[0])) != NULL; at++)
        if (strncmp(at, source, length) == 0)
            return true;
    return false;
}

bool ms_collective_row_is_fitted(ms_arena *arena, const ms_collective_row *row)
{
    ms_figures figures = {.arena = arena};
    const char *law = ms_collective_row_law_name(arena, row);
    /* time between nodes also depends on the links inside nodes */
    bool crosses = begins(law, "networks.");
    ms_profile_figures(row->profile, &figures);
    for (int i = 0; i < figures.num; i++) {
        const ms_figure *figure = &figures.items[i];
        const void *at = (const char *)row->profile + figure->offset;
        if ((ms_collective_figure_of_law(figure, law) ||
             (crosses && (ms_collective_figure_of_law(figure, "link") ||
                          ms_collective_figure_of_law(figure, "nvls")))) &&
            ms_coefficient_names_source(at, row->source))
            return true;
    }
    return false;
}
