/* The model of configs/models whose shapes a file states: those whose own settings are
 * equal in all rows about shapes; rows about values choose among them. */
#include "costmodel/port/port_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LISTED 8 /* other models with the same shapes */

typedef struct match {
    const ms_model *model;
    int num_left_out;   /* parts of the model that the format cannot express */
    int num_equal;      /* settings about values that are as the file states */
    ms_texts different; /* settings about values that are not */
} match;

/* The settings that one row writes for a model; `*num_left_out` grows by what it cannot
 * write. */
static ms_port_settings written(ms_ctx *cx, const ms_port_format *format,
                                const ms_port_row *row, const ms_model *model,
                                int *num_left_out)
{
    ms_port_settings settings = {0};
    ms_texts left_out = {0};
    ms_model shapes = *model;
    ms_plan plan = ms_plan_default(1);
    plan.sequence_length = 1;
    ms_port port = {.cx = cx,
                    .format = format,
                    .plan = &plan,
                    .model = &shapes,
                    .settings = &settings,
                    .left_out = &left_out,
                    .moe = model->moe.num_experts > 0};
    ms_port_put_row(&port, row);
    *num_left_out += left_out.num;
    return settings;
}

static bool is_equal_value(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    char *end_a, *end_b;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return strcmp(a, b) == 0 || (end_a != a && end_b != b && *end_a == '\0' &&
                                 *end_b == '\0' && fabs(x - y) <= 1e-12 * fabs(x));
}

static bool is_equal_list(const ms_port_settings *a, const ms_port_settings *b)
{
    if (a->num != b->num)
        return false;
    for (int i = 0; i < a->num; i++)
        if (strcmp(a->rows[i].key, b->rows[i].key) != 0 ||
            !is_equal_value(a->rows[i].value, b->rows[i].value))
            return false;
    return true;
}

/* Compares settings about values with those that the file states. */
static void compare_values(ms_ctx *cx, const ms_port_settings *own,
                           const ms_port_settings *file, match *out)
{
    for (int i = 0; i < own->num; i++) {
        const ms_port_setting *mine = &own->rows[i], *stated = NULL;
        for (int k = 0; k < file->num; k++)
            if (strcmp(file->rows[k].key, mine->key) == 0)
                stated = &file->rows[k];
        if (stated == NULL)
            continue;
        if (is_equal_value(mine->value, stated->value))
            out->num_equal++;
        else {
            ms_texts_add(cx->arena, &out->different,
                         ms_arena_printf(cx->arena, "%s%s%s of model %s, not %s",
                                         mine->key, mine->value == NULL ? "" : " ",
                                         mine->value == NULL ? "" : mine->value,
                                         out->model->name, stated->value));
        }
    }
}

/* The first key in which the shapes of a model differ from those of the file; NULL: they
 * are equal, and `out` has the comparison of values. */
static const char *compare(ms_ctx *cx, const ms_port_format *format,
                           const ms_port_imported *imported, const ms_model *model,
                           match *out)
{
    int num_left_out = 0;
    *out = (match){.model = model};
    for (const ms_port_row *row = format->tables[0]; row->kind != MS_PORT_END; row++) {
        ms_port_settings own = written(cx, format, row, model, &out->num_left_out);
        if (row->soft) {
            compare_values(cx, &own, &imported->settings, out);
            continue;
        }
        ms_port_settings read = written(cx, format, row, &imported->model, &num_left_out);
        if (!is_equal_list(&own, &read))
            return row->key != NULL ? row->key : row->keys[0];
    }
    return NULL;
}

static bool is_better(const match *a, const match *b)
{
    if (b->model == NULL || a->num_left_out != b->num_left_out)
        return b->model == NULL || a->num_left_out < b->num_left_out;
    return a->num_equal > b->num_equal ||
           (a->num_equal == b->num_equal && a->different.num < b->different.num);
}

static ms_status fail_unknown(ms_ctx *cx, const char *file, const ms_model *model)
{
    ms_fail(
        cx, MS_EINPUT, (ms_loc){.file = file},
        "no model of configs/models has these shapes: %ld layers, hidden size %ld, %ld "
        "heads, %ld key-value heads, MLP width %ld, %ld experts",
        model->num_layers, model->hidden, model->num_heads, model->num_kv_heads,
        model->ffn_hidden, model->moe.num_experts);
    return ms_hint(cx, "--model FILE names one, such as its Hugging Face config.json");
}

/* Takes the model that the user names; its shapes must be those of the file, unless it
 * replaces them. */
static ms_status take_named(ms_ctx *cx, const ms_port_format *format,
                            const ms_port_import_options *options,
                            ms_port_imported *imported, const ms_model **out)
{
    match found;
    const char *name = imported->plan.model;
    MS_TRY(ms_model_load(cx, name, out));
    const char *key =
        imported->has_model ? compare(cx, format, imported, *out, &found) : NULL;
    if (key == NULL)
        return MS_OK;
    if (options->overrides) {
        ms_texts_print(cx->arena, &imported->assumed,
                       "model %s, which differs from the file in %s", name, key);
        return MS_OK;
    }
    ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->name},
            "model %s differs from the file in %s", name, key);
    return ms_hint(cx, "leave out --model to find the model by its shapes");
}

ms_status ms_port_find_model(ms_ctx *cx, const ms_port_format *format,
                             const ms_port_import_options *options,
                             ms_port_imported *imported, const ms_model **out)
{
    const char *const *names;
    int num;
    match best = {0};
    const char *others = "";
    int num_equal = 0;
    if (imported->plan.model != NULL)
        return take_named(cx, format, options, imported, out);
    if (!imported->has_model) {
        ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->name},
                "the file does not say which model it trains");
        return ms_hint(cx, "--model NAME, such as --model 70b");
    }
    MS_TRY(ms_model_names(cx, &names, &num));
    for (int i = 0; i < num; i++) {
        const ms_model *model;
        match found;
        MS_TRY(ms_model_load(cx, names[i], &model));
        if (compare(cx, format, imported, model, &found) != NULL)
            continue;
        const ms_model *other = is_better(&found, &best) ? best.model : model;
        if (other != model)
            best = found;
        if (other != NULL && ++num_equal <= MAX_LISTED)
            others = ms_arena_printf(cx->arena, "%s%s%s", others,
                                     others[0] == '\0' ? "" : ", ", other->name);
    }
    if (best.model == NULL)
        return fail_unknown(cx, options->name, &imported->model);
    *out = best.model;
    imported->plan.model = best.model->name;
    ms_texts_add(cx->arena, &imported->assumed,
                 ms_arena_printf(cx->arena, "model %s, by its shapes%s%s%s",
                                 best.model->name, others[0] == '\0' ? "" : "; equal: ",
                                 others, num_equal > MAX_LISTED ? ", ..." : ""));
    for (int i = 0; i < best.different.num; i++)
        ms_texts_add(cx->arena, &imported->assumed, best.different.texts[i]);
    return MS_OK;
}
