#include "cli/options/grid_axis.h"

#include "base/options.h"
#include "sim/planning/sizes.h"
#include "sim/request/plan_flags.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- names ---- */

#define MOST_TOKENS 16777216

typedef struct job_axis {
    const char *name;
    ms_choice choice;
    long most;
} job_axis;

static const job_axis job_axes[] = {
    {"gpus", MS_CHOOSE_GPUS, MS_MAX_GPUS},
    {"batch", MS_CHOOSE_GLOBAL_BATCH, MOST_TOKENS},
    {"global_batch", MS_CHOOSE_GLOBAL_BATCH, MOST_TOKENS},
    {"seq", MS_CHOOSE_SEQUENCE_LENGTH, MOST_TOKENS},
    {"sequence_length", MS_CHOOSE_SEQUENCE_LENGTH, MOST_TOKENS}};
#define NUM_JOB_AXES (int)(sizeof job_axes / sizeof *job_axes)

static const job_axis *find_job_axis(const char *name)
{
    for (int i = 0; i < NUM_JOB_AXES; i++)
        if (strcasecmp(job_axes[i].name, name) == 0)
            return &job_axes[i];
    return NULL;
}

static ms_status refuse_name(ms_ctx *cx, const ms_grid_axis *axis)
{
    const char *names[MS_NUM_CHOICES + NUM_JOB_AXES + 1] = {NULL};
    int num = 0;
    for (int i = 0; i < NUM_JOB_AXES; i++)
        names[num++] = job_axes[i].name;
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].search == MS_SEARCH_TRIES)
            names[num++] = ms_plan_fields[i].name;
    const char *nearest = ms_nearest(axis->name, names, num);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: unknown choice \"%s\"", axis->option,
            axis->name);
    return nearest != NULL
               ? ms_hint(cx, "did you mean %s?", nearest)
               : ms_hint(cx, "choices: %s", ms_choice_text(cx->arena, names, ", "));
}

/* ---- values ---- */

static ms_status add_value(ms_ctx *cx, ms_grid_axis *axis, long value)
{
    for (int i = 0; i < axis->num; i++)
        if (axis->values[i] == value)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s has the value %s twice",
                           axis->option, axis->texts[i]);
    if (axis->num == MS_MAX_GRID_VALUES) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: more than %d values of %s", axis->option,
                MS_MAX_GRID_VALUES, axis->name);
        return ms_hint(cx, "name those to draw: %s %s=A,B,...", axis->option, axis->name);
    }
    axis->texts[axis->num] = ms_choice_value_text(cx->arena, axis->choice, value);
    axis->values[axis->num++] = value;
    return MS_OK;
}

/* Reads "64..512" or "64,128". */
static ms_status read_sizes(ms_ctx *cx, ms_grid_axis *axis, long most)
{
    ms_sizes sizes;
    const char *option = ms_arena_printf(cx->arena, "%s %s", axis->option, axis->name);
    MS_TRY(ms_sizes_parse(cx, option, axis->values_text, most, &sizes));
    for (int i = 0; i < sizes.num; i++)
        MS_TRY(add_value(cx, axis, sizes.sizes[i]));
    return MS_OK;
}

/* Reads a list of values as limits of the space, so that each is a value of it. */
static ms_status read_values(ms_ctx *cx, const ms_space *space, ms_grid_axis *axis)
{
    const char *rest = axis->values_text;
    for (const char *item; (item = ms_list_next(cx->arena, &rest)) != NULL;) {
        ms_space limited = *space;
        const char *text = ms_arena_printf(cx->arena, "%s=%s", axis->name, item);
        MS_TRY(ms_space_limit(cx, &limited, text));
        MS_TRY(add_value(cx, axis, limited.low[axis->choice]));
    }
    return MS_OK;
}

static int by_size(const void *left, const void *right)
{
    const long *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static long size_of(const ms_mesh_choice *mesh, ms_choice choice)
{
    ms_plan plan = {.ep = mesh->ep, .etp = mesh->etp};
    memcpy(plan.size, mesh->size, sizeof plan.size);
    return ms_plan_get(&plan, choice);
}

static ms_status take_sizes(ms_ctx *cx, const ms_space *space, const ms_model *model,
                            ms_grid_axis *axis)
{
    ms_mesh_choice *meshes;
    long refused[MS_NUM_REFUSALS] = {0};
    int num = ms_space_meshes(space, model, cx->arena, &meshes, refused);
    long *sizes = MS_NEW_ARRAY(cx->arena, num + 1, long);
    for (int i = 0; i < num; i++)
        sizes[i] = size_of(&meshes[i], axis->choice);
    qsort(sizes, (size_t)num, sizeof *sizes, by_size);
    for (int i = 0; i < num; i++)
        if (i == 0 || sizes[i] != sizes[i - 1])
            MS_TRY(add_value(cx, axis, sizes[i]));
    return MS_OK;
}

static bool has_value(ms_ctx *cx, const ms_space *space, ms_choice choice, long value)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    ms_ctx scratch = {.arena = cx->arena, .verbosity = -1};
    ms_space limited = *space;
    return (field->can == NULL || field->can(space->stack, value)) &&
           ms_space_limit(&scratch, &limited,
                          ms_space_choice_text(cx->arena, choice, value)) == MS_OK;
}

/* Takes all values of a choice that is not a size of the mesh. */
static ms_status take_values(ms_ctx *cx, const ms_space *space, ms_grid_axis *axis)
{
    ms_choice choice = axis->choice;
    bool doubles = choice == MS_CHOOSE_MICROBATCH;
    long low = doubles || choice == MS_CHOOSE_VIRTUAL_STAGES ? 1 : 0;
    long high = doubles                              ? space->max_microbatch
                : choice == MS_CHOOSE_VIRTUAL_STAGES ? space->max_virtual_stages
                : choice == MS_CHOOSE_ZERO           ? 3
                                                     : ms_choice_last(choice);
    for (long value = low; value <= high; value = doubles ? 2 * value : value + 1)
        if (has_value(cx, space, choice, value))
            MS_TRY(add_value(cx, axis, value));
    return MS_OK;
}

static bool is_mesh_size(ms_choice choice)
{
    return choice >= MS_CHOOSE_PP && choice <= MS_CHOOSE_ETP;
}

/* ---- axes ---- */

ms_status ms_grid_axis_read(ms_ctx *cx, const char *option, const char *text,
                            ms_grid_axis *out)
{
    size_t length = strcspn(text, "=");
    char *name = ms_arena_strndup(cx->arena, text, length);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
    *out = (ms_grid_axis){.option = option, .name = name};
    if (text[length] == '=')
        out->values_text = text + length + 1;
    const job_axis *job = find_job_axis(name);
    int choice = job != NULL ? (int)job->choice : ms_space_find_choice(name);
    if (choice < 0)
        return refuse_name(cx, out);
    out->choice = (ms_choice)choice;
    out->of_job = job != NULL;
    if (job == NULL)
        return MS_OK;
    if (out->values_text != NULL)
        return read_sizes(cx, out, job->most);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s %s needs values", option, name);
    return ms_hint(cx, "for example %s gpus=64..512", option);
}

ms_status ms_grid_axis_fill(ms_ctx *cx, const ms_space *space, const ms_model *model,
                            ms_grid_axis *axis)
{
    if (axis->of_job)
        return MS_OK;
    bool is_range = axis->values_text != NULL && strstr(axis->values_text, "..") != NULL;
    if (is_range && ms_choice_words(axis->choice) == NULL)
        return read_sizes(cx, axis, MS_MAX_GPUS);
    if (axis->values_text != NULL)
        return read_values(cx, space, axis);
    MS_TRY(is_mesh_size(axis->choice) ? take_sizes(cx, space, model, axis)
                                      : take_values(cx, space, axis));
    return axis->num > 0
               ? MS_OK
               : ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: the search has no value of %s",
                         axis->option, axis->name);
}
