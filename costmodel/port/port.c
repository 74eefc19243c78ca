/* The engine of export and import: rows of a format's tables, one after another. */
#include "costmodel/port/port_priv.h"

#include "base/print.h"

#include <string.h>

#define MAX_COUNT 1e12 /* the largest number in a file */

bool ms_port_needs_layers(const ms_port_format *format, const ms_plan *plan,
                          const ms_model *model)
{
    return plan->num_stage_layers == 0 && plan->size[MS_PP] > 1 &&
           format->needs_layers != NULL && format->needs_layers(plan, model);
}

/* ---- values of rows ---- */

static double get_model(const ms_model *model, const ms_port_row *row)
{
    const char *at = (const char *)model + row->offset;
    return row->kind == MS_PORT_WHOLE  ? (double)*(const long *)at
           : row->kind == MS_PORT_ON   ? *(const bool *)at
           : row->kind == MS_PORT_WORD ? *(const int *)at
                                       : *(const double *)at;
}

static void set_model(ms_model *model, const ms_port_row *row, double value)
{
    char *at = (char *)model + row->offset;
    if (row->kind == MS_PORT_WHOLE)
        *(long *)at = (long)value;
    else if (row->kind == MS_PORT_ON)
        *(bool *)at = value != 0.0;
    else if (row->kind == MS_PORT_WORD)
        *(int *)at = (int)value;
    else
        *(double *)at = value;
}

static double *number_of(ms_plan *plan, int choice)
{
    return (double *)((char *)plan + ms_plan_fields[choice].offset);
}

static double get(const ms_port *port, const ms_port_row *row)
{
    if (row->of == MS_OF_MODEL)
        return get_model(port->model, row);
    return row->kind == MS_PORT_NUMBER
               ? *number_of(port->plan, row->choice)
               : (double)ms_plan_get(port->plan, (ms_choice)row->choice);
}

static void set(ms_port *port, const ms_port_row *row, double value)
{
    if (row->of == MS_OF_MODEL)
        set_model(port->model, row, value);
    else if (row->kind == MS_PORT_NUMBER)
        *number_of(port->plan, row->choice) = value;
    else
        ms_plan_set(port->plan, (ms_choice)row->choice, (long)value);
}

static bool has_effect(const ms_port *port, const ms_port_row *row)
{
    return row->when == NULL || row->when(port);
}

/* ---- export ---- */

static void put_word(ms_port *port, const ms_port_row *row)
{
    const char *word = ms_port_word_of(row->words, (long)get(port, row));
    if (word != NULL)
        ms_port_put_text(port, row->key, word);
    else if (row->of == MS_OF_PLAN)
        ms_port_leave_choice(port, (ms_choice)row->choice);
    else
        ms_port_leave_out(port, "the model's %s", row->key);
}

void ms_port_put_row(ms_port *port, const ms_port_row *row)
{
    if (!has_effect(port, row))
        return;
    if (row->kind == MS_PORT_OWN) {
        if (row->put != NULL)
            row->put(port);
        return;
    }
    if (row->kind == MS_PORT_ALSO) {
        if (row->when != NULL)
            ms_port_put(port, row->key, row->value);
        return;
    }
    double value = get(port, row);
    if (row->kind == MS_PORT_FIXED) {
        if (value != row->absent && ms_plan_matters(port->plan, (ms_choice)row->choice))
            ms_port_leave_choice(port, (ms_choice)row->choice);
        return;
    }
    if (value == row->absent && !row->always)
        return;
    if (row->kind == MS_PORT_WHOLE)
        ms_port_put_whole(port, row->key, (long)value);
    else if (row->kind == MS_PORT_NUMBER)
        ms_port_put_number(port, row->key, value);
    else if (row->kind == MS_PORT_WORD)
        put_word(port, row);
    else
        ms_port_put(port, row->key, value != 0.0 ? NULL : "false");
}

static void put_rows(ms_port *port)
{
    for (int i = 0; i < 4 && port->format->tables[i] != NULL; i++)
        for (const ms_port_row *row = port->format->tables[i]; row->kind != MS_PORT_END;
             row++)
            ms_port_put_row(port, row);
}

static void mark_carried(const ms_port_row *row, bool carried[MS_NUM_CHOICES])
{
    if (row->of == MS_OF_PLAN && row->choice >= 0)
        carried[row->choice] = true;
    for (int i = 0; row->choices != NULL && row->choices[i] >= 0; i++)
        carried[row->choices[i]] = true;
}

/* Choices that say where a plan runs and on what data, and no file of a framework. */
static const ms_choice of_machine[] = {MS_CHOOSE_MODEL,       MS_CHOOSE_CLUSTER,
                                       MS_CHOOSE_PROFILE,     MS_CHOOSE_STACK,
                                       MS_CHOOSE_GPUS,        MS_CHOOSE_RANKS_PER_DOMAIN,
                                       MS_CHOOSE_SLOW_NODES,  MS_CHOOSE_EXPERT_IMBALANCE,
                                       MS_CHOOSE_EXPERT_LOADS};

/* Leaves out all choices with effect that no row of the format has. */
static void leave_rest(ms_port *port)
{
    bool carried[MS_NUM_CHOICES] = {false};
    for (size_t i = 0; i < sizeof of_machine / sizeof *of_machine; i++)
        carried[of_machine[i]] = true;
    for (int i = 0; i < 4 && port->format->tables[i] != NULL; i++)
        for (const ms_port_row *row = port->format->tables[i]; row->kind != MS_PORT_END;
             row++)
            mark_carried(row, carried);
    for (ms_choice choice = 0; choice < MS_NUM_CHOICES; choice++)
        if (!carried[choice] && ms_plan_matters(port->plan, choice) &&
            !ms_plan_is_plain(port->plan, choice))
            ms_port_leave_choice(port, choice);
}

ms_status ms_port_export(ms_ctx *cx, const ms_port_format *format,
                         const ms_port_subject *subject, bool lossy,
                         ms_port_exported *out)
{
    const char *version = subject->rules->version;
    if (format->until != NULL && version != NULL && strcmp(version, format->until) == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "version %s of %s has no such file", version,
                format->name);
        return ms_hint(cx, "--stack %s", format->stack);
    }
    ms_plan own = *subject->plan;
    ms_model shapes = *subject->model;
    *out = (ms_port_exported){0};
    ms_port port = {.cx = cx,
                    .format = format,
                    .plan = &own,
                    .model = &shapes,
                    .stack = subject->stack,
                    .rules = subject->rules,
                    .settings = &out->settings,
                    .left_out = &out->left_out,
                    .moe = shapes.moe.num_experts > 0,
                    .gpus_per_node = subject->gpus_per_node};
    put_rows(&port);
    leave_rest(&port);
    if (lossy || out->left_out.num == 0)
        return MS_OK;
    for (int i = 0; i < out->left_out.num; i++)
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "format %s cannot express %s", format->name,
                out->left_out.texts[i]);
    return ms_hint(cx, "--lossy leaves it out, with a comment in its place");
}

long ms_port_nodes(const ms_plan *plan, const ms_port_export_options *options,
                   long *per_node)
{
    *per_node = plan->gpus < options->gpus_per_node ? plan->gpus : options->gpus_per_node;
    return (plan->gpus + *per_node - 1) / *per_node;
}

void ms_port_write_launcher(FILE *out, const ms_plan *plan,
                            const ms_port_export_options *options, const char *mark,
                            const char *program)
{
    long per_node, nodes = ms_port_nodes(plan, options, &per_node);
    if (options->launcher == MS_PORT_SRUN) {
        ms_print(out,
                 "%sHEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | "
                 "head -n 1)\n",
                 mark);
        ms_print(out, "%ssrun --nodes %ld --ntasks-per-node 1 \\\n%s    ", mark, nodes,
                 mark);
    } else {
        ms_print(out, "%s", mark);
    }
    ms_print(out, "torchrun --nnodes %ld --nproc-per-node %ld", nodes, per_node);
    if (nodes > 1)
        ms_print(out,
                 " \\\n%s    --rdzv-backend c10d --rdzv-endpoint \"$HEAD_NODE:29500\"",
                 mark);
    ms_print(out, " \\\n%s    %s", mark, program);
}

ms_texts ms_port_head(ms_arena *arena, const ms_plan *plan,
                      const ms_port_exported *exported)
{
    ms_texts lines = {0};
    ms_texts_add(arena, &lines,
                 ms_arena_printf(
                     arena, "%s on %s GPUs, stack %s, %s sequences of %s tokens a step",
                     plan->model, ms_plan_value_text(arena, plan, MS_CHOOSE_GPUS),
                     plan->stack, ms_plan_value_text(arena, plan, MS_CHOOSE_GLOBAL_BATCH),
                     ms_plan_value_text(arena, plan, MS_CHOOSE_SEQUENCE_LENGTH)));
    ms_texts_add(arena, &lines,
                 ms_arena_printf(arena, "plan: %s", ms_plan_text(arena, plan)));
    for (int i = 0; i < exported->left_out.num; i++)
        ms_texts_add(arena, &lines,
                     ms_arena_printf(arena, "left out: %s", exported->left_out.texts[i]));
    return lines;
}

void ms_port_write_head(FILE *out, ms_arena *arena, const char *mark, const ms_plan *plan,
                        const ms_port_exported *exported)
{
    ms_texts lines = ms_port_head(arena, plan, exported);
    for (int i = 0; i < lines.num; i++)
        ms_print(out, "%s %s\n", mark, lines.texts[i]);
}

void ms_port_write(FILE *out, ms_arena *arena, const ms_port_format *format,
                   const ms_plan *plan, const ms_port_exported *exported,
                   const ms_port_export_options *options)
{
    format->write(out, arena, plan, exported, options);
}

/* ---- import ---- */

static ms_status take_value(ms_port *port, const ms_port_row *row, const char *key,
                            double *value)
{
    long whole = (long)*value;
    bool on = whole != 0;
    if (row->kind == MS_PORT_NUMBER)
        return ms_port_take_number(port, key, 0.0, MAX_COUNT, value);
    if (row->kind == MS_PORT_WHOLE)
        MS_TRY(ms_port_take_whole(port, key, 0, (long)MAX_COUNT, &whole));
    else if (row->kind == MS_PORT_WORD)
        MS_TRY(ms_port_take_word(port, key, row->words, &whole));
    else
        MS_TRY(ms_port_take_on(port, key, &on));
    *value = row->kind == MS_PORT_ON ? on : (double)whole;
    return MS_OK;
}

/* Notes the framework's default that a plan takes where it has effect. */
static void assume_absent(ms_port *port, const ms_port_row *row)
{
    if (row->of == MS_OF_MODEL || row->absent < 0.0 || !has_effect(port, row) ||
        !ms_plan_matters(port->plan, (ms_choice)row->choice) ||
        ms_port_is_given(port, (ms_choice)row->choice) ||
        row->absent == ms_plan_fields[row->choice].plain)
        return;
    if (row->kind == MS_PORT_WORD)
        ms_port_assume(port, "%s %s", row->key,
                       ms_port_word_of(row->words, (long)row->absent));
    else
        ms_port_assume(port, "%s %g", row->key, row->absent);
}

static ms_status check_range(ms_port *port, const ms_port_row *row, const char *key,
                             double value)
{
    const ms_plan_field *field = &ms_plan_fields[row->choice];
    bool is_number = field->kind == MS_CHOICE_WHOLE || field->kind == MS_CHOICE_NUMBER;
    if (row->of == MS_OF_MODEL || !is_number ||
        (value >= field->low && value <= field->high))
        return MS_OK;
    const ms_port_setting *setting = ms_port_find(port, key);
    return ms_port_fail(port, setting, "%s is not from %g to %g", setting->value,
                        field->low, field->high);
}

static ms_status take_row(ms_port *port, const ms_port_row *row)
{
    if (row->kind == MS_PORT_OWN)
        return row->take == NULL ? MS_OK : row->take(port);
    if (row->kind == MS_PORT_ALSO) {
        (void)ms_port_has(port, row->key);
        return MS_OK;
    }
    if (row->kind == MS_PORT_FIXED) {
        set(port, row, row->absent);
        return MS_OK;
    }
    const char *key = row->key;
    if (!has_effect(port, row)) {
        if (ms_port_has(port, key))
            ms_port_assume(port, "%s has no effect", key);
        return MS_OK;
    }
    if (row->alias != NULL && !ms_port_has(port, key))
        key = row->alias;
    double value = row->absent;
    if (ms_port_has(port, key)) {
        MS_TRY(take_value(port, row, key, &value));
        MS_TRY(check_range(port, row, key, value));
    } else if (row->required) {
        return ms_port_fail_missing(port, row->key, "the framework requires it");
    }
    set(port, row, value);
    return MS_OK;
}

/* A file without shapes has those of the model that the user names. */
static ms_status take_model(ms_port *port, const char *name)
{
    const ms_model *model;
    if (port->model->num_layers > 0 || name == NULL)
        return MS_OK;
    MS_TRY(ms_model_load(port->cx, name, &model));
    *port->model = *model;
    port->moe = model->moe.num_experts > 0;
    return MS_OK;
}

static ms_status take_rows(ms_port *port, int from, int to)
{
    ms_status status = MS_OK;
    for (int i = from; i < to && port->format->tables[i] != NULL; i++) {
        for (const ms_port_row *row = port->format->tables[i]; row->kind != MS_PORT_END;
             row++) {
            ms_status taken = take_row(port, row);
            status = status == MS_OK ? taken : status;
        }
    }
    return status;
}

static void assume_rows(ms_port *port)
{
    for (int i = 0; i < 4 && port->format->tables[i] != NULL; i++) {
        for (const ms_port_row *row = port->format->tables[i]; row->kind != MS_PORT_END;
             row++) {
            if ((row->kind == MS_PORT_WHOLE || row->kind == MS_PORT_NUMBER ||
                 row->kind == MS_PORT_WORD) &&
                !ms_port_has(port, row->key) &&
                (row->alias == NULL || !ms_port_has(port, row->alias)))
                assume_absent(port, row);
        }
    }
}

/* ---- keys that no row has read ---- */

static bool is_listed(const char *key, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++)
        if (strcmp(key, *list) == 0)
            return true;
    return false;
}

static bool has_part(const char *key, const char *const *parts)
{
    for (; parts != NULL && *parts != NULL; parts++)
        if (strstr(key, *parts) != NULL)
            return true;
    return false;
}

/* The keys of all rows, for the nearest one. */
static const char *nearest_key(const ms_port *port, const char *key)
{
    ms_texts keys = {0};
    ms_arena *arena = port->cx->arena;
    for (int i = 0; i < 4 && port->format->tables[i] != NULL; i++) {
        for (const ms_port_row *row = port->format->tables[i]; row->kind != MS_PORT_END;
             row++) {
            if (row->key != NULL)
                ms_texts_add(arena, &keys, row->key);
            for (int k = 0; row->keys != NULL && row->keys[k] != NULL; k++)
                ms_texts_add(arena, &keys, row->keys[k]);
        }
    }
    return ms_nearest(key, keys.texts, keys.num);
}

static ms_status fail_unknown(ms_port *port, const ms_port_setting *setting)
{
    const char *nearest = nearest_key(port, setting->key);
    const char *kind_key = port->format->kind_key;
    const ms_port_setting *kind = kind_key == NULL ? NULL : ms_port_find(port, kind_key);
    if (kind != NULL && nearest != NULL && strcmp(nearest, setting->key) == 0)
        return ms_fail(port->cx, MS_EINPUT, setting->loc, "%s does not go with %s: %s",
                       setting->key, kind_key, kind->value);
    ms_fail(port->cx, MS_EINPUT, setting->loc,
            "%s may change how the job is parallel, and no plan can have it",
            setting->key);
    return nearest != NULL
               ? ms_hint(port->cx, "did you mean %s?", nearest)
               : ms_hint(port->cx, "take it out of the file if the plan may ignore it");
}

/* A setting that a later one of the same key replaces. */
static bool is_replaced(const ms_port_settings *list, int index)
{
    for (int i = index + 1; i < list->num; i++)
        if (strcmp(list->rows[i].key, list->rows[index].key) == 0)
            return true;
    return false;
}

static ms_status list_ignored(ms_port *port, ms_texts *ignored)
{
    ms_status status = MS_OK;
    for (int i = 0; i < port->settings->num; i++) {
        const ms_port_setting *s = &port->settings->rows[i];
        bool replaced = is_replaced(port->settings, i);
        if (s->used && !replaced)
            continue;
        if (!s->used && !replaced && !is_listed(s->key, port->format->ignored) &&
            has_part(s->key, port->format->reserved)) {
            status = fail_unknown(port, s);
            continue;
        }
        ms_texts_add(port->cx->arena, ignored,
                     ms_arena_printf(port->cx->arena, "%s%s%s%s", s->key,
                                     s->value == NULL ? "" : " ",
                                     s->value == NULL ? "" : s->value,
                                     replaced ? " (given again later)" : ""));
    }
    return status;
}

ms_status ms_port_set_ranks(ms_port *port, long gpus, long replicas)
{
    ms_plan *plan = port->plan;
    double others =
        (double)plan->size[MS_PP] * (double)plan->size[MS_CP] * (double)plan->size[MS_TP];
    long rest = others > (double)gpus ? 0 : gpus / (long)others;
    const char *file = port->settings->num > 0 ? port->settings->rows[0].loc.file : NULL;
    if ((double)rest * others != (double)gpus)
        return ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = file},
                       "pp %ld x cp %ld x tp %ld do not divide %ld GPUs",
                       plan->size[MS_PP], plan->size[MS_CP], plan->size[MS_TP], gpus);
    if (replicas < 1 || rest % replicas != 0)
        return ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = file},
                       "%ld replicas do not divide %ld data-parallel ranks", replicas,
                       rest);
    plan->gpus = gpus;
    plan->size[MS_DP_REPLICATE] = replicas;
    plan->size[MS_DP_SHARD] = rest / replicas;
    return MS_OK;
}

ms_status ms_port_fit_ranks(ms_port *port, long gpus)
{
    const ms_plan *plan = port->plan;
    long replicas = plan->size[MS_DP_REPLICATE];
    long others = plan->size[MS_PP] * plan->size[MS_CP] * plan->size[MS_TP];
    if (replicas > 1 && plan->size[MS_DP_SHARD] == 1)
        replicas = gpus / others;
    return ms_port_set_ranks(port, gpus, replicas);
}

static ms_plan plain_plan(void)
{
    ms_plan plan = ms_plan_default(1);
    for (ms_choice i = MS_CHOOSE_PP; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].kind != MS_CHOICE_LIST &&
            ms_plan_fields[i].kind != MS_CHOICE_TEXT)
            ms_plan_reset(&plan, i);
    return plan;
}

ms_status ms_port_import(ms_ctx *cx, const ms_port_format *format, const char *text,
                         size_t length, const ms_port_import_options *options,
                         ms_port_imported *out)
{
    *out = (ms_port_imported){.plan = plain_plan()};
    out->plan.model = options->model;
    if (options->cluster != NULL)
        out->plan.cluster = options->cluster;
    out->plan.stack = options->stack != NULL ? options->stack : format->stack;
    ms_port port = {.cx = cx,
                    .format = format,
                    .plan = &out->plan,
                    .model = &out->model,
                    .settings = &out->settings,
                    .assumed = &out->assumed,
                    .gpus = options->gpus,
                    .sequence_length = options->sequence_length,
                    .overrides = options->overrides,
                    .given = options->given};
    MS_TRY(ms_stack_load(cx, out->plan.stack, &port.stack));
    MS_TRY(format->read(&port, options->name, text, length));
    MS_TRY(take_rows(&port, 0, 1));
    out->has_model = out->model.num_layers > 0;
    MS_TRY(take_model(&port, out->plan.model));
    MS_TRY(take_rows(&port, 1, 4));
    MS_TRY(format->finish(&port));
    if (options->sequence_length > 0 && !options->overrides &&
        options->sequence_length != out->plan.sequence_length)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->name},
                       "the file says sequences of %ld tokens, not %ld",
                       out->plan.sequence_length, options->sequence_length);
    assume_rows(&port);
    return list_ignored(&port, &out->ignored);
}
