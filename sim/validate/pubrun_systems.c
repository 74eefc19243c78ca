/* Finds the frameworks and precisions that cells of published tables name. Texts are
 * compared in lower case without ' ', '-' and '_'. */
#include "sim/validate/pubrun_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *ms_plain_text(ms_arena *arena, const char *text)
{
    char *out = ms_arena_strdup(arena, text == NULL ? "" : text);
    char *end = out;
    for (const char *at = out; *at != '\0'; at++)
        if (*at != ' ' && *at != '-' && *at != '_')
            *end++ = (char)tolower((unsigned char)*at);
    *end = '\0';
    return out;
}

static bool has_part(const char *text, const char *part)
{
    return part == NULL || strstr(text, part) != NULL;
}

/* ---- frameworks ---- */

/* Year and month as 202308 of "2023-08" or "2023/08/01"; "2023" counts as June of the
 * year. 0 if the date is absent or begins with no year, as in "08-2023". */
static long month_of(const char *date)
{
    if (date == NULL)
        return 0;
    char *end = NULL;
    long year = strtol(date, &end, 10);
    bool is_year = year >= 1990 && year <= 2100;
    long month = *end == '-' || *end == '/' ? strtol(end + 1, NULL, 10) : 0;
    bool has_month = month >= 1 && month <= 12;
    return is_year ? 100 * year + (has_month ? month : 6) : 0;
}

bool ms_pubrun_is_before(const ms_pubrun_cells *cells, long month)
{
    long own = month_of(cells->date);
    return own > 0 && own < month;
}

/* Whether the text begins with `name`, gaps (" -_") and case of the text ignored. */
static bool begins_plainly(const char *text, const char *name)
{
    for (; *name != '\0'; name++, text++) {
        text += strspn(text, " -_");
        if (tolower((unsigned char)*text) != *name)
            return false;
    }
    return true;
}

bool ms_begins_word(const char *text, const char *name)
{
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        bool inside = at > text && isalnum((unsigned char)at[-1]);
        if (strchr(" -_", *at) != NULL)
            continue;
        if ((!inside || !isalnum((unsigned char)*name)) && begins_plainly(at, name))
            return true;
    }
    return false;
}

/* Whether the cells of framework, flags or precision contain the word; true for NULL. */
static bool has_word(ms_arena *arena, const ms_pubrun_cells *cells, const char *word)
{
    const char *const own[] = {cells->framework, cells->compile, cells->precision};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (has_part(ms_plain_text(arena, own[i]), word))
            return true;
    return false;
}

static const ms_framework_name *match_framework(const ms_name_tables *names,
                                                const ms_pubrun_cells *cells,
                                                const char *text)
{
    const ms_framework_name *rows = names->frameworks.rows;
    for (const ms_framework_name *row = rows; row < rows + names->frameworks.num_rows;
         row++) {
        bool in_time = row->before == 0 || ms_pubrun_is_before(cells, row->before);
        if (in_time && ms_begins_word(text, row->name) &&
            has_word(names->arena, cells, row->word) &&
            (has_word(names->arena, cells, row->work) ||
             ms_begins_word(cells->source, row->work)))
            return row;
    }
    return NULL;
}

/* Finds the framework by the framework's cell, otherwise by the source's cell. */
static const ms_framework_name *find_framework(const ms_name_tables *names,
                                               const ms_pubrun_cells *cells)
{
    const ms_framework_name *row = match_framework(names, cells, cells->framework);
    return row != NULL ? row : match_framework(names, cells, cells->source);
}

const char *ms_pubrun_stack_name(const ms_name_tables *names,
                                 const ms_pubrun_cells *cells)
{
    const ms_framework_name *row = find_framework(names, cells);
    return row == NULL ? NULL : row->stack;
}

bool ms_pubrun_stack_is_of_source(const ms_name_tables *names,
                                  const ms_pubrun_cells *cells)
{
    return match_framework(names, cells, cells->framework) == NULL &&
           match_framework(names, cells, cells->source) != NULL;
}

long ms_pubrun_default_batch(const ms_name_tables *names, const ms_pubrun_cells *cells)
{
    const ms_framework_name *row = find_framework(names, cells);
    return row == NULL ? 0 : row->global_batch;
}

/* ---- facts that tables do not state ---- */

static bool fits_fact(const ms_pubrun_fact *fact, const ms_pubrun_cells *cells,
                      const char *framework)
{
    const char *const *others = fact->but_not.rows;
    for (int i = 0; i < fact->but_not.num_rows; i++)
        if (has_part(framework, others[i]))
            return false;
    return has_part(framework, fact->framework) &&
           (fact->source == NULL || ms_begins_word(cells->source, fact->source));
}

ms_pubrun_fact ms_pubrun_facts_of(const ms_name_tables *names,
                                  const ms_pubrun_cells *cells)
{
    const char *framework = ms_plain_text(names->arena, cells->framework);
    const ms_pubrun_fact *rows = names->run_facts.rows;
    ms_pubrun_fact all = {0};
    for (const ms_pubrun_fact *row = rows; row < rows + names->run_facts.num_rows;
         row++) {
        if (!fits_fact(row, cells, framework))
            continue;
        all.network = all.network != NULL ? all.network : row->network;
        all.decimal_memory |= row->decimal_memory;
        all.device_memory |= row->device_memory;
        all.changes_mathematics |= row->changes_mathematics;
    }
    return all;
}

/* ---- precision ---- */

bool ms_pubrun_precision(const ms_name_tables *names, const char *precision,
                         ms_plan *plan)
{
    plan->compute = MS_BF16;
    if (precision == NULL)
        return true;
    const char *text = ms_plain_text(names->arena, precision);
    const ms_precision_name *rows = names->precision.rows;
    for (int i = 0; i < names->precision.num_rows; i++) {
        if (has_part(text, rows[i].name)) {
            plan->compute = (ms_dtype)rows[i].dtype;
            plan->recipe = (ms_recipe)rows[i].recipe;
            return true;
        }
    }
    return false;
}
