#include "sim/validate/fit_files.h"

#include "base/paths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that is copied, with what replaces its numbers. */
typedef struct copying {
    ms_ctx *cx;
    const ms_own_group *group;
    const char *file; /* "profile" or "stack" */
    const char *name, *table;
    ms_jout *out;
} copying;

/* Corrections below this, in widths, are left out: nothing told them apart from 0. */
#define LEAST_WIDTHS 0.005

static bool is_moved(const copying *c, const ms_own_move *move,
                     const ms_own_figure *figure)
{
    return fabs(move->widths) >= LEAST_WIDTHS && figure->before != figure->after &&
           strcmp(figure->file, c->file) == 0;
}

static const ms_own_figure *find_moved(const copying *c, const char *key,
                                       const ms_own_fit **fit, const ms_own_move **move)
{
    for (int m = 0; m < MS_NUM_MEASUREMENTS; m++) {
        *fit = &c->group->fits[m];
        for (int i = 0; i < (*fit)->num_moves; i++) {
            *move = &(*fit)->moves[i];
            for (int f = 0; f < (*move)->num_figures; f++) {
                const ms_own_figure *figure = &(*move)->figures[f];
                if (is_moved(c, *move, figure) && strcmp(figure->key, key) == 0)
                    return figure;
            }
        }
    }
    return NULL;
}

static const char *value_text(ms_arena *arena, const ms_own_figure *figure)
{
    static const char *const names[] = {[MS_UNIT_BYTES] = "B",
                                        [MS_UNIT_BYTES_PER_S] = "B/s",
                                        [MS_UNIT_SECONDS] = "s",
                                        [MS_UNIT_FLOP_PER_S] = "FLOP/s"};
    return ms_arena_printf(arena, "%.6g %s", figure->after, names[figure->unit]);
}

/* The value to six digits, as other quantities are written. */
static double rounded(double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.6g", value);
    return strtod(text, NULL);
}

/* Writes the corrected number; false if the figure is not corrected. */
static bool write_moved(const copying *c, const char *key)
{
    const ms_own_fit *fit;
    const ms_own_move *move;
    const ms_own_figure *figure = find_moved(c, key, &fit, &move);
    if (figure == NULL)
        return false;
    ms_arena *arena = c->cx->arena;
    ms_jout_begin_object(c->out);
    if (figure->unit == MS_UNIT_COUNT)
        ms_jout_number_field(c->out, "value", rounded(figure->after));
    else
        ms_jout_text_field(c->out, "value", value_text(arena, figure));
    ms_jout_text_field(c->out, "from", "fitted");
    ms_jout_text_field(
        c->out, "source",
        ms_arena_printf(arena,
                        "%s: `meshsim calibrate --from-run %s`, %d own runs, moved by "
                        "%+.2f sigma from %.6g",
                        move->constant->name, c->table,
                        fit->num_rows + fit->num_out_of_memory, move->widths,
                        figure->before));
    ms_jout_end_object(c->out);
    return true;
}

/* The last part of a key that is a member of the object at `path`; NULL for others. */
static const char *member_of(const char *path, const char *key)
{
    size_t length = strlen(path);
    if (strncmp(key, path, length) != 0 || (length > 0 && key[length] != '.'))
        return NULL;
    const char *last = key + length + (length > 0);
    return strchr(last, '.') == NULL ? last : NULL;
}

static void add_default(const copying *c, ms_jval object, const char *path,
                        const char *key)
{
    ms_jval found;
    const char *member = member_of(path, key);
    if (member == NULL || ms_json_member(c->cx, object, member, &found))
        return;
    ms_jout_key(c->out, member);
    (void)write_moved(c, key);
}

/* Writes corrected numbers that the object at `path` leaves to their defaults. */
static void add_defaults(const copying *c, ms_jval object, const char *path)
{
    for (int m = 0; m < MS_NUM_MEASUREMENTS; m++) {
        const ms_own_fit *fit = &c->group->fits[m];
        for (int i = 0; i < fit->num_moves; i++) {
            const ms_own_move *move = &fit->moves[i];
            for (int f = 0; f < move->num_figures; f++) {
                if (is_moved(c, move, &move->figures[f]))
                    add_default(c, object, path, move->figures[f].key);
            }
        }
    }
}

static ms_status copy_value(const copying *c, ms_jval value, const char *key);

static ms_status copy_members(const copying *c, ms_jval object, const char *path)
{
    ms_jout_begin_object(c->out);
    for (int i = 0; i < ms_json_length(object); i++) {
        const char *key;
        ms_jval value = ms_json_entry(c->cx, object, i, &key);
        ms_jout_key(c->out, key);
        const char *inner =
            *path == '\0' ? key : ms_arena_printf(c->cx->arena, "%s.%s", path, key);
        if (*path == '\0' && strcmp(key, "name") == 0)
            ms_jout_text(c->out, c->name);
        else if (!write_moved(c, inner))
            MS_TRY(copy_value(c, value, inner));
    }
    add_defaults(c, object, path);
    ms_jout_end_object(c->out);
    return MS_OK;
}

static ms_status copy_elements(const copying *c, ms_jval array, const char *path)
{
    ms_jout_begin_array(c->out);
    for (int i = 0; i < ms_json_length(array); i++)
        MS_TRY(copy_value(c, ms_json_element(c->cx, array, i), path));
    ms_jout_end_array(c->out);
    return MS_OK;
}

static ms_status copy_value(const copying *c, ms_jval value, const char *key)
{
    const char *text = NULL;
    bool is_true = false;
    double number = 0.0;
    if (ms_json_is_object(value))
        return copy_members(c, value, key);
    if (ms_json_is_array(value))
        return copy_elements(c, value, key);
    if (ms_json_is_string(value)) {
        MS_TRY(ms_json_text(c->cx, value, &text));
        ms_jout_text(c->out, text);
    } else if (ms_json_is_bool(value)) {
        MS_TRY(ms_json_bool(c->cx, value, &is_true));
        ms_jout_bool(c->out, is_true);
    } else if (ms_json_is_null(value)) {
        ms_jout_null(c->out);
    } else {
        MS_TRY(ms_json_number(c->cx, value, -1e300, 1e300, &number));
        ms_jout_number(c->out, number);
    }
    return MS_OK;
}

ms_status ms_fit_file_write(ms_ctx *cx, const ms_own_group *group, bool is_stack,
                            const char *name, const char *table, ms_jout *out)
{
    const char *path = NULL;
    ms_jdoc *doc = NULL;
    ms_jval root;
    const copying c = {cx, group, is_stack ? "stack" : "profile", name, table, out};
    MS_TRY(ms_config_resolve(cx, is_stack ? "stacks" : "profiles", c.file,
                             is_stack ? group->stack_file : group->profile_file, &path));
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = copy_members(&c, root, "");
    ms_json_close(doc);
    return status;
}
