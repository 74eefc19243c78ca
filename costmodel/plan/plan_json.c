/* Reads and writes plan files (meshsim.plan/1). Absent keys take defaults. Axes are always
 * written, and sections if one of their keys is, so a file reads back as the same plan. */
#include "base/paths.h"
#include "costmodel/plan/plan_field.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PLAN_SCHEMA "meshsim.plan/1"

#define MAX_GPUS   16777216.0 /* 2^24 */
#define MAX_STAGES 32767.0
#define MAX_LAYERS 1048576.0

/* Members that field tables fill: the plan, and words still to be translated. */
typedef struct plan_file {
    ms_plan plan;
    const char *schema;
    const char *texts[MS_NUM_CHOICES]; /* [choice] word as read, if it has aliases */
} plan_file;

/* ---- tables ---- */

static ms_field field_of(ms_choice choice)
{
    static const ms_field_kind kinds[] = {
        [MS_CHOICE_WHOLE] = MS_FIELD_INTEGER, [MS_CHOICE_NUMBER] = MS_FIELD_NUMBER,
        [MS_CHOICE_SWITCH] = MS_FIELD_BOOL,   [MS_CHOICE_WORD] = MS_FIELD_CHOICE,
        [MS_CHOICE_SET] = MS_FIELD_TEXT,      [MS_CHOICE_TEXT] = MS_FIELD_TEXT,
        [MS_CHOICE_LIST] = MS_FIELD_ANY};
    const ms_plan_field *row = &ms_plan_fields[choice];
    ms_field field = {.kind = kinds[row->kind],
                      .key = row->key,
                      .offset = offsetof(plan_file, plan) + row->offset,
                      .required = row->required,
                      .nullable = row->json_plain != MS_PLAIN_WRITTEN,
                      .low = row->low,
                      .high = row->high,
                      .choices = row->words,
                      .help = row->help};
    if (row->find != NULL) {
        field.kind = MS_FIELD_TEXT;
        field.offset = offsetof(plan_file, texts) + choice * sizeof(const char *);
    }
    return field;
}

/* Field table of a JSON object in plan files; NULL: the outermost object. */
static const ms_field *fields_of(ms_arena *arena, const char *section)
{
    ms_field *fields = MS_NEW_ARRAY(arena, MS_NUM_CHOICES + 3, ms_field);
    const char *last = NULL;
    int num = 0;
    if (section == NULL) {
        fields[num++] = (ms_field){.kind = MS_FIELD_TEXT,
                                   .key = "schema",
                                   .offset = offsetof(plan_file, schema)};
        fields[num++] = (ms_field){.kind = MS_FIELD_ANY, .key = "mesh"};
    }
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *row = &ms_plan_fields[i];
        if (row->key == NULL)
            continue;
        if (row->section == section || (section != NULL && row->section != NULL &&
                                        strcmp(row->section, section) == 0))
            fields[num++] = field_of((ms_choice)i);
        else if (section == NULL && (last == NULL || strcmp(row->section, last) != 0))
            fields[num++] = (ms_field){.kind = MS_FIELD_ANY, .key = last = row->section};
    }
    return fields;
}

/* ---- reading ---- */

static ms_status worse(ms_status a, ms_status b)
{
    return a != MS_OK ? a : b;
}

static ms_status read_sections(ms_ctx *cx, ms_jval root, plan_file *file)
{
    ms_status status = MS_OK;
    const char *last = NULL;
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        const char *section = ms_plan_fields[i].section;
        ms_jval value;
        if (section == NULL || (last != NULL && strcmp(section, last) == 0))
            continue;
        last = section;
        if (ms_json_member(cx, root, section, &value))
            status = worse(status,
                           ms_json_read(cx, value, fields_of(cx->arena, section), file));
    }
    return status;
}

typedef struct mesh_entry {
    int axis;
    long size;
} mesh_entry;

static const ms_field entry_fields[] = {
    {.kind = MS_FIELD_CHOICE,
     .key = "axis",
     .offset = offsetof(mesh_entry, axis),
     .required = true,
     .choices = ms_plan_axis_names,
     .help = "name"},
    {.kind = MS_FIELD_INTEGER,
     .key = "size",
     .offset = offsetof(mesh_entry, size),
     .required = true,
     .low = 1,
     .high = MAX_GPUS,
     .help = "ranks"},
    {0},
};

/* Whether axes are listed in the order that plans have by default. */
static bool is_usual_order(const ms_plan *plan, const unsigned char *listed, int num)
{
    int at = 0;
    for (int i = 0; i < num; i++) {
        while (at < MS_NUM_PLAN_AXES && plan->order[at] != listed[i])
            at++;
        if (at == MS_NUM_PLAN_AXES)
            return false;
    }
    return true;
}

/* Reads the mesh of a plan file; axes not listed have size 1. They have their usual place,
 * or are outermost if the listed ones have not. */
static ms_status read_axes(ms_ctx *cx, ms_jval mesh, ms_plan *plan)
{
    bool is_listed[MS_NUM_PLAN_AXES] = {false};
    unsigned char listed[MS_NUM_PLAN_AXES];
    int num_listed = 0;
    for (int i = 0; i < ms_json_length(mesh); i++) {
        mesh_entry entry = {0};
        ms_jval value = ms_json_element(cx, mesh, i);
        MS_TRY(ms_json_read(cx, value, entry_fields, &entry));
        if (is_listed[entry.axis])
            return ms_json_fail(cx, value, "axis \"%s\" appears twice",
                                ms_plan_axis_names[entry.axis]);
        is_listed[entry.axis] = true;
        listed[num_listed++] = (unsigned char)entry.axis;
        plan->size[entry.axis] = entry.size;
    }
    bool is_usual = is_usual_order(plan, listed, num_listed);
    int at = 0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES && !is_usual; axis++)
        if (!is_listed[axis])
            plan->order[at++] = (unsigned char)axis;
    for (int i = 0; i < num_listed && !is_usual; i++)
        plan->order[at++] = listed[i];
    if (!is_listed[MS_DP_SHARD] && (plan->gpus == 0 || is_listed[MS_DP_REPLICATE]))
        plan->size[MS_DP_SHARD] = 1; /* the default, 0, means all remaining GPUs */
    return MS_OK;
}

static ms_status read_mesh(ms_ctx *cx, ms_jval root, ms_plan *plan)
{
    ms_jval mesh;
    if (!ms_json_member(cx, root, "mesh", &mesh)) {
        if (plan->gpus == 0)
            plan->size[MS_DP_SHARD] = 1;
        return MS_OK;
    }
    if (!ms_json_is_array(mesh))
        return ms_json_fail(cx, mesh,
                            "the mesh must be an array of {\"axis\", \"size\"}");
    return read_axes(cx, mesh, plan);
}

static ms_status read_stage_layers(ms_ctx *cx, ms_jval root, ms_plan *plan)
{
    ms_jval pipeline, list;
    if (!ms_json_member(cx, root, "pipeline", &pipeline) ||
        !ms_json_is_object(pipeline) ||
        !ms_json_member(cx, pipeline, "layers_per_stage", &list) || ms_json_is_null(list))
        return MS_OK;
    if (!ms_json_is_array(list) || ms_json_length(list) == 0)
        return ms_json_fail(cx, list,
                            "layers_per_stage must be an array of counts, or null");
    int num_stages = ms_json_length(list);
    if (num_stages > (int)MAX_STAGES)
        return ms_json_fail(cx, list,
                            "layers_per_stage has %d entries, at most %.0f are possible",
                            num_stages, MAX_STAGES);
    long *layers = MS_NEW_ARRAY(cx->arena, num_stages, long);
    for (int i = 0; i < num_stages; i++)
        MS_TRY(ms_json_integer(cx, ms_json_element(cx, list, i), 0, (long)MAX_LAYERS,
                               &layers[i]));
    plan->num_stage_layers = num_stages;
    plan->layers_per_stage = layers;
    return MS_OK;
}

/* Finds the value of a choice in a plan file; false if absent. */
static bool stated(ms_ctx *cx, ms_jval root, ms_choice choice, ms_jval *value)
{
    ms_jval section;
    return ms_json_member(cx, root, ms_plan_fields[choice].section, &section) &&
           ms_json_member(cx, section, ms_plan_fields[choice].key, value);
}

/* Reports an unknown word at its place in the plan file, with a hint. */
static ms_status fail_word(ms_ctx *cx, ms_jval root, ms_choice choice, const char *text)
{
    const char *const *names = ms_plan_fields[choice].words;
    ms_jval value;
    int num_names = (int)ms_choice_last(choice) + 1;
    ms_loc loc = stated(cx, root, choice, &value) ? ms_json_loc(cx, value) : MS_NOWHERE;
    ms_status status = ms_fail(cx, MS_EINPUT, loc, "unknown %s \"%s\"",
                               ms_plan_fields[choice].key, text);
    const char *nearest = ms_nearest(text, names, num_names);
    if (nearest != NULL) {
        ms_hint(cx, "did you mean \"%s\"?", nearest);
        return status;
    }
    const char *known = names[0];
    for (int i = 1; i < num_names; i++)
        known = ms_arena_printf(cx->arena, "%s%s%s", known,
                                i == num_names - 1 ? " and " : ", ", names[i]);
    ms_hint(cx, "known are %s", known);
    return status;
}

/* Loads schedule file `file_name`, relative to the plan file. Virtual stages and memory
 * limit, if in the plan file, stay, and ms_plan_check compares them with the schedule. */
static ms_status read_schedule_file(ms_ctx *cx, ms_jval root, const char *file_name,
                                    ms_plan *plan)
{
    ms_jval value;
    long virtual_stages = plan->virtual_stages;
    double limit = plan->memory_limit;
    const char *path = ms_path_sibling(cx, ms_json_loc(cx, root).file, file_name);
    MS_TRY(ms_plan_load_schedule(cx, path, plan));
    plan->memory_limit = limit;
    if (stated(cx, root, MS_CHOOSE_VIRTUAL_STAGES, &value))
        plan->virtual_stages = virtual_stages;
    return MS_OK;
}

/* Translates the words of choices, aliases included, into values. */
static ms_status read_words(ms_ctx *cx, ms_jval root, plan_file *file)
{
    ms_status status = MS_OK;
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        const char *text = file->texts[i];
        int value;
        if (text == NULL)
            continue;
        if (i == MS_CHOOSE_SCHEDULE && ms_schedule_is_file(text))
            status = worse(status, read_schedule_file(cx, root, text, &file->plan));
        else if (!ms_plan_fields[i].find(text, &value))
            status = worse(status, fail_word(cx, root, (ms_choice)i, text));
        else if (i == MS_CHOOSE_SCHEDULE)
            file->plan.schedule = (ms_schedule_kind)value;
        else
            ms_plan_set(&file->plan, (ms_choice)i, value);
    }
    return status;
}

/* Reports that a plan states a value of `choice`, which has effect only in `mode`. */
static ms_status fail_without_effect(ms_ctx *cx, ms_jval root, const ms_plan *plan,
                                     ms_choice choice, ms_recompute mode)
{
    const char *key = ms_plan_fields[choice].key;
    ms_jval value;
    ms_status status = ms_json_fail(cx, stated(cx, root, choice, &value) ? value : root,
                                    "%s is %s, but has no effect with mode \"%s\"", key,
                                    ms_plan_value_text(cx->arena, plan, choice),
                                    ms_recompute_names[plan->recompute]);
    ms_hint(cx, "the mode must be \"%s\", or %s null", ms_recompute_names[mode], key);
    return status;
}

static ms_status check_recompute(ms_ctx *cx, ms_jval root, const ms_plan *plan)
{
    if (plan->recompute != MS_RECOMPUTE_FULL && plan->recompute_layers != 0)
        return fail_without_effect(cx, root, plan, MS_CHOOSE_RECOMPUTE_LAYERS,
                                   MS_RECOMPUTE_FULL);
    if (plan->recompute != MS_RECOMPUTE_AUTO && plan->recompute_budget_frac >= 0.0)
        return fail_without_effect(cx, root, plan, MS_CHOOSE_RECOMPUTE_BUDGET,
                                   MS_RECOMPUTE_AUTO);
    if (plan->recompute != MS_RECOMPUTE_SELECTIVE && plan->recompute_modules != 0)
        return fail_without_effect(cx, root, plan, MS_CHOOSE_RECOMPUTE_MODULES,
                                   MS_RECOMPUTE_SELECTIVE);
    return MS_OK;
}

/* Refuses empty texts, such as names of files. */
static ms_status check_texts(ms_ctx *cx, ms_jval root, const ms_plan *plan)
{
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *row = &ms_plan_fields[i];
        ms_jval value;
        if (row->key == NULL || row->kind != MS_CHOICE_TEXT ||
            !stated(cx, root, i, &value) || ms_json_is_null(value))
            continue;
        const char *text = *(const char *const *)((const char *)plan + row->offset);
        if (text != NULL && text[0] == '\0')
            return ms_json_fail(cx, value, "%s is empty; leave it out, or null",
                                row->key);
    }
    return MS_OK;
}

/* Refuses numbers at a bound that they must be above, such as buckets of 0 bytes. */
static ms_status check_above_low(ms_ctx *cx, ms_jval root, const ms_plan *plan)
{
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *row = &ms_plan_fields[i];
        ms_jval value;
        if (row->key != NULL && row->above_low && stated(cx, root, i, &value) &&
            !ms_json_is_null(value) &&
            *(const double *)((const char *)plan + row->offset) <= row->low)
            return ms_json_fail(cx, value, "%s is %g, must be above it, or null",
                                row->key, row->low);
    }
    return MS_OK;
}

/* Sets `gpus` to the product of the mesh axes; MS_EINPUT if the file states another. */
static ms_status check_ranks(ms_ctx *cx, ms_jval root, ms_plan *plan)
{
    double product = 1.0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        if (plan->size[axis] > 0)
            product *= (double)plan->size[axis];
    if (product > MAX_GPUS)
        return ms_json_fail(cx, root,
                            "the mesh has %.0f ranks, at most %.0f are possible", product,
                            MAX_GPUS);
    bool is_open = plan->size[MS_DP_SHARD] == 0;
    if (plan->gpus == 0)
        plan->gpus = (long)product;
    if (is_open ? plan->gpus % (long)product == 0 : plan->gpus == (long)product)
        return MS_OK;
    ms_jval where;
    if (!ms_json_member(cx, root, "gpus", &where))
        where = root;
    return ms_json_fail(cx, where, "the mesh has %.0f ranks, but gpus is %ld", product,
                        plan->gpus);
}

/* Refuses a file by its "schema", before any of its keys is reported as unknown. */
static ms_status check_schema(ms_ctx *cx, ms_jval root)
{
    ms_jval value;
    const char *schema = NULL;
    if (!ms_json_is_object(root) || !ms_json_member(cx, root, "schema", &value) ||
        !ms_json_is_string(value))
        return MS_OK;
    MS_TRY(ms_json_text(cx, value, &schema));
    if (strcmp(schema, PLAN_SCHEMA) == 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, root, "schema"),
            "the schema is \"%s\", not \"%s\"", schema, PLAN_SCHEMA);
    ms_hint(cx, "search --save-plan writes plans");
    return MS_EINPUT;
}

ms_status ms_plan_read(ms_ctx *cx, ms_jval root, ms_plan *out)
{
    MS_TRY(check_schema(cx, root));
    plan_file file = {.plan = ms_plan_default(1)};
    ms_jval value;
    file.plan.gpus = 0;         /* 0: not stated in the file */
    file.plan.global_batch = 0; /* 0: not stated in the file */
    ms_status status = ms_json_read(cx, root, fields_of(cx->arena, NULL), &file);
    if (!ms_json_is_object(root))
        return worse(status, MS_EINPUT);
    status = worse(status, read_sections(cx, root, &file));
    status = worse(status, read_mesh(cx, root, &file.plan));
    status = worse(status, read_stage_layers(cx, root, &file.plan));
    status = worse(status, read_words(cx, root, &file));
    status = worse(status, check_recompute(cx, root, &file.plan));
    if (status == MS_OK)
        status = check_above_low(cx, root, &file.plan);
    if (status == MS_OK)
        status = check_texts(cx, root, &file.plan);
    if (status != MS_OK)
        return status;
    MS_TRY(check_ranks(cx, root, &file.plan));
    ms_plan_fill_defaults(&file.plan);
    if (!stated(cx, root, MS_CHOOSE_RESHARD, &value))
        file.plan.reshard_after_forward =
            ms_plan_usual(&file.plan, NULL, MS_CHOOSE_RESHARD);
    *out = file.plan;
    return MS_OK;
}

ms_status ms_plan_load(ms_ctx *cx, const char *path, ms_plan *out)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = ms_plan_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

/* ---- writing ---- */

static void write_mesh(ms_jout *out, const ms_plan *plan)
{
    ms_jout_begin_array_field(out, "mesh");
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "axis", ms_plan_axis_names[plan->order[i]]);
        ms_jout_number_field(out, "size", (double)plan->size[plan->order[i]]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_stage_layers(ms_jout *out, const ms_plan *plan)
{
    if (plan->num_stage_layers == 0) {
        ms_jout_null(out);
        return;
    }
    ms_jout_begin_array(out);
    for (long i = 0; i < plan->num_stage_layers; i++)
        ms_jout_number(out, (double)plan->layers_per_stage[i]);
    ms_jout_end_array(out);
}

static void write_set(ms_jout *out, const char *const *words, long set)
{
    char text[160] = "";
    for (int i = 0; words[i] != NULL; i++) {
        if ((set >> i & 1) == 0)
            continue;
        size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, "%s%s",
                       length == 0 ? "" : ",", words[i]);
    }
    ms_jout_text(out, text);
}

static void write_value(ms_jout *out, const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *row = &ms_plan_fields[choice];
    if (row->kind == MS_CHOICE_LIST)
        write_stage_layers(out, plan);
    else if (row->kind == MS_CHOICE_NUMBER)
        ms_jout_number(out, *(const double *)((const char *)plan + row->offset));
    else if (row->kind == MS_CHOICE_WHOLE)
        ms_jout_number(out, (double)ms_plan_get(plan, choice));
    else if (row->kind == MS_CHOICE_SWITCH)
        ms_jout_bool(out, ms_plan_get(plan, choice));
    else if (row->kind == MS_CHOICE_SET)
        write_set(out, row->words, ms_plan_get(plan, choice));
    else /* word or text: ms_plan_value_text allocates nothing */
        ms_jout_text(out, ms_plan_value_text(NULL, plan, choice));
}

/* Whether a plan file shows a choice's JSON default as null, or leaves it out. */
static bool is_shortened(const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *row = &ms_plan_fields[choice];
    return row->json_plain != MS_PLAIN_WRITTEN && ms_plan_is_plain(plan, choice);
}

static bool is_written(const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *row = &ms_plan_fields[choice];
    return row->key != NULL &&
           (row->json_plain != MS_PLAIN_OMITTED ||
            (!is_shortened(plan, choice) && ms_plan_matters(plan, choice)));
}

static void write_choice(ms_jout *out, const ms_plan *plan, ms_choice choice)
{
    ms_jout_key(out, ms_plan_fields[choice].key);
    if (is_shortened(plan, choice))
        ms_jout_null(out);
    else
        write_value(out, plan, choice);
}

void ms_plan_write_json(ms_jout *out, const ms_plan *plan)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", PLAN_SCHEMA);
    const char *open = NULL; /* JSON section being written; NULL: none */
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *row = &ms_plan_fields[i];
        if (i == MS_CHOOSE_PP)
            write_mesh(out, plan);
        if (!is_written(plan, (ms_choice)i))
            continue;
        bool same =
            open != NULL && row->section != NULL && strcmp(open, row->section) == 0;
        if (open != NULL && !same)
            ms_jout_end_object(out);
        if (row->section != NULL && !same) {
            ms_jout_key(out, row->section);
            ms_jout_begin_object(out);
        }
        open = row->section;
        write_choice(out, plan, (ms_choice)i);
    }
    if (open != NULL)
        ms_jout_end_object(out);
    ms_jout_end_object(out);
}
