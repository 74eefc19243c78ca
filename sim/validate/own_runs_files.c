/* Profiles and stacks of a group of own runs: copies, and the figures that constants
 * move in them. */
#include "sim/validate/own_runs_priv.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

/* ---- copies ---- */

static const ms_own_copy *find_copy(const ms_own_files *files, const void *original)
{
    for (int i = 0; i < files->num_copies; i++)
        if (files->copies[i].original == original)
            return &files->copies[i];
    return NULL;
}

static void *copy_of(ms_arena *arena, ms_own_files *files, ms_own_copy file, size_t size)
{
    const ms_own_copy *found = find_copy(files, file.original);
    if (found != NULL)
        return found->copy;
    file.copy = MS_NEW_ARRAY(arena, size, char);
    memcpy(file.copy, file.original, size);
    files->copies[files->num_copies++] = file;
    return file.copy;
}

/* ---- targets ---- */

static bool matches(const ms_own_constant *c, const char *file, const char *key)
{
    size_t length = strlen(file);
    for (int i = 0; i < c->num_patterns; i++)
        if (strncmp(c->patterns[i], file, length) == 0 && c->patterns[i][length] == ' ' &&
            fnmatch(c->patterns[i] + length + 1, key, 0) == 0)
            return true;
    return false;
}

static void add_targets(ms_own_files *files, const ms_own_constant *c, int constant,
                        const ms_figures *figures)
{
    bool is_stack = figures == &files->stack_figures;
    const char *file = is_stack ? "stack" : "profile";
    for (int i = 0; i < figures->num; i++) {
        const ms_figure *figure = &figures->items[i];
        if (figure->is_coefficient && matches(c, file, figure->key))
            files->targets[files->num_targets++] =
                (ms_own_target){constant, is_stack, figure};
    }
}

void ms_own_files_open(ms_arena *arena, const ms_own_runs *own, ms_own_group *group)
{
    ms_own_files *files = MS_NEW(arena, ms_own_files);
    files->copies = MS_NEW_ARRAY(arena, 2 * group->num_rows, ms_own_copy);
    for (int i = 0; i < group->num_rows; i++) {
        ms_pubrun *run = &own->runs->runs[group->rows[i]];
        run->profile =
            copy_of(arena, files, (ms_own_copy){run->profile, NULL, false, run->cluster},
                    sizeof(ms_profile));
        run->stack =
            copy_of(arena, files, (ms_own_copy){run->stack, NULL, true, run->cluster},
                    sizeof(ms_stack));
    }
    files->profile_figures.arena = files->stack_figures.arena = arena;
    ms_profile_figures(own->runs->runs[group->rows[0]].profile, &files->profile_figures);
    ms_stack_figures(&files->stack_figures);
    int num = files->profile_figures.num + files->stack_figures.num;
    files->targets = MS_NEW_ARRAY(arena, own->list->num_constants * num, ms_own_target);
    files->x = MS_NEW_ARRAY(arena, own->list->num_constants, double);
    for (int c = 0; c < own->list->num_constants; c++) {
        add_targets(files, &own->list->constants[c], c, &files->profile_figures);
        add_targets(files, &own->list->constants[c], c, &files->stack_figures);
    }
    group->files = files;
}

/* ---- corrections ---- */

static double most_of(const ms_own_copy *file, const ms_figure *figure)
{
    if (!file->is_stack)
        return ms_profile_most(file->original, file->cluster, figure);
    return figure->low < figure->high ? figure->high : (double)INFINITY;
}

/* Value that a file's figure gets by a correction x; never moved away from its limits
 * where it already lies beyond them. */
static double value_at(const ms_own_constant *c, const ms_own_copy *file,
                       const ms_figure *figure, double x)
{
    double from = ms_figure_value(figure, file->original), most = most_of(file, figure);
    double to = c->scale == 0 ? from * exp(c->width * x) : from + c->width * x;
    double low = fmin(from, fmax(figure->low, c->low)); /* fmax, fmin ignore a NaN */
    double high = fmax(from, fmin(most, c->high));
    return isnan(from) || x == 0.0 ? from : fmax(low, fmin(to, high));
}

void ms_own_files_set(const ms_own_runs *own, ms_own_files *files, int constant, double x,
                      const ms_own_target *only)
{
    const ms_own_constant *c = &own->list->constants[constant];
    files->x[constant] = x;
    for (int t = 0; t < files->num_targets; t++) {
        const ms_own_target *target = &files->targets[t];
        if (target->constant != constant)
            continue;
        for (int i = 0; i < files->num_copies; i++) {
            ms_own_copy *file = &files->copies[i];
            double moved = only == NULL || only == target ? x : 0.0;
            if (file->is_stack == target->is_stack)
                ms_figure_set(target->figure, file->copy,
                              value_at(c, file, target->figure, moved));
        }
    }
}

double ms_own_target_value(const ms_own_runs *own, const ms_own_files *files,
                           const ms_own_target *target, double x)
{
    const ms_own_constant *c = &own->list->constants[target->constant];
    for (int i = 0; i < files->num_copies; i++)
        if (files->copies[i].is_stack == target->is_stack)
            return value_at(c, &files->copies[i], target->figure, x);
    return (double)NAN;
}
