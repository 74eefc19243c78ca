/* meshsim.plan/1: reading and writing. Everything absent takes its default; what is
 * written reads back as the same plan, so all five axes and every section are always
 * written. */
#include "costmodel/plan.h"

#include "base/paths.h"

#include <stddef.h>
#include <string.h>

#define PLAN_SCHEMA "meshsim.plan/1"

#define MAX_GPUS   16777216.0 /* 2^24 */
#define MAX_TOKENS 4294967296.0
#define MAX_BATCH  4294967296.0
#define MAX_STAGES 32767.0
#define MAX_INT    2147483647.0
#define MAX_LAYERS 1048576.0
#define MAX_LIMIT  4194304.0

static const char *const storage_words[] = {"fp32", "bf16", NULL};

enum {
    PARAMS,
    GRADS,
    OPTIMIZER,
    COMM,
    NUM_STORED
};

/* What the tables fill: the plan, and words that are translated afterwards. */
typedef struct plan_file {
    ms_plan plan;
    const char *schema;
    const char *schedule, *cp_method; /* or aliases of them */
    int stored[NUM_STORED];           /* index into storage_words, -1: not stated */
} plan_file;

#define AT(member) offsetof(plan_file, member)
#define PART(word, what)                                                                 \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (word), .help = (what)                              \
    }
#define SWITCH(word, member, what)                                                       \
    {                                                                                    \
        .kind = MS_FIELD_BOOL, .key = (word), .offset = AT(member), .help = (what)       \
    }
#define WHOLE(word, member, least, most, what)                                           \
    {                                                                                    \
        .kind = MS_FIELD_INTEGER, .key = (word), .offset = AT(member), .low = (least),   \
        .high = (most), .help = (what)                                                   \
    }
/* null stands for "not chosen" */
#define WHOLE_OR_NULL(word, member, least, most, what)                                   \
    {                                                                                    \
        .kind = MS_FIELD_INTEGER, .key = (word), .offset = AT(member), .nullable = true, \
        .low = (least), .high = (most), .help = (what)                                   \
    }
#define WORD(word, member, words, what)                                                  \
    {                                                                                    \
        .kind = MS_FIELD_CHOICE, .key = (word), .offset = AT(member),                    \
        .choices = (words), .help = (what)                                               \
    }
#define WORD_OR_NULL(word, member, words, what)                                          \
    {                                                                                    \
        .kind = MS_FIELD_CHOICE, .key = (word), .offset = AT(member), .nullable = true,  \
        .choices = (words), .help = (what)                                               \
    }
#define TEXT(word, member, needed, what)                                                 \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = (word), .offset = AT(member),                      \
        .required = (needed), .help = (what)                                             \
    }

/* null stands for "not chosen" */
#define SHARE_OR_NULL(word, member, what)                                                \
    {                                                                                    \
        .kind = MS_FIELD_NUMBER, .key = (word), .offset = AT(member), .nullable = true,  \
        .low = 0, .high = 1, .help = (what)                                              \
    }

static const ms_field plan_fields[] = {
    TEXT("schema", schema, false, PLAN_SCHEMA),
    TEXT("model", plan.model, true, "name or path of the model"),
    TEXT("cluster", plan.cluster, false, "name or path of the cluster"),
    WHOLE("gpus", plan.gpus, 1, MAX_GPUS, "product of the mesh; absent: computed"),
    PART("mesh", "axes and sizes, outer to inner"),
    PART("experts", "second mesh of the expert layers"),
    PART("batch", "sequence length and batches"),
    PART("pipeline", "schedule and stages"),
    PART("sharding", "ZeRO stage over dp_shard x cp"),
    PART("tensor", "habits of tensor parallelism"),
    PART("context", "habits of context parallelism"),
    PART("recompute", "activations computed again"),
    PART("precision", "data types"),
    TEXT("stack", plan.stack, false, "training framework"),
    {0},
};

static const ms_field experts_fields[] = {
    WHOLE("ep", plan.ep, 1, MAX_GPUS, "expert parallelism"),
    WHOLE("etp", plan.etp, 1, MAX_GPUS, "tensor parallelism inside experts: 1 or tp"),
    {0},
};

static const ms_field batch_fields[] = {
    WHOLE("sequence_length", plan.sequence_length, 1, MAX_TOKENS, "tokens"),
    WHOLE("global_batch", plan.global_batch, 1, MAX_BATCH, "sequences per step"),
    WHOLE("microbatch", plan.microbatch, 1, MAX_BATCH, "sequences"),
    {0},
};

static const ms_field pipeline_fields[] = {
    TEXT("schedule", schedule, false,
         "1f1b, interleaved, ..., an alias, or a path that ends in .csv"),
    WHOLE("virtual_stages", plan.virtual_stages, 1, MAX_STAGES, "chunks per rank"),
    WHOLE_OR_NULL(
        "microbatch_group", plan.microbatch_group, 0, MAX_INT,
        "consecutive micro-batches per chunk; null or 0: the schedule's default"),
    {.kind = MS_FIELD_NUMBER,
     .key = "memory_limit",
     .offset = AT(plan.memory_limit),
     .nullable = true,
     .low = 0,
     .high = MAX_LIMIT,
     .help = "zb-auto: times 1f1b's peak on rank 0; null or 0: the schedule's default"},
    PART("layers_per_stage", "layers of every virtual stage; null: balanced"),
    {0},
};

static const ms_field sharding_fields[] = {
    WHOLE("zero", plan.zero, 0, 3,
          "what is sharded: 1 optimizer, 2 gradients, 3 parameters"),
    SWITCH("reshard_after_forward", plan.reshard_after_forward,
           "free gathered parameters"),
    {0},
};

static const ms_field tensor_fields[] = {
    SWITCH("sequence_parallel", plan.sequence_parallel,
           "shard activations between blocks"),
    SWITCH("async", plan.async_tp, "overlap traffic with matrix products"),
    SWITCH("loss_parallel", plan.loss_parallel,
           "keep logits sharded over the vocabulary"),
    {0},
};

static const ms_field context_fields[] = {
    TEXT("method", cp_method, false, "all-gather, ring, ulysses or an alias"),
    WORD("balance", plan.cp_balance, ms_cp_balance_names, "which tokens a rank holds"),
    {0},
};

static const ms_field recompute_fields[] = {
    WORD("mode", plan.recompute, ms_recompute_names, "what is computed again"),
    WHOLE_OR_NULL("layers", plan.recompute_layers, 0, MAX_LAYERS,
                  "layers of each chunk under full recomputation; null or 0: all"),
    SHARE_OR_NULL("budget_frac", plan.recompute_budget_frac,
                  "bytes that auto may keep, from 0 (full) to 1 (none); null: the most "
                  "that fits"),
    {0},
};

static const ms_field precision_fields[] = {
    WORD("compute", plan.compute, ms_dtype_names, "matrix products"),
    WORD_OR_NULL("params", stored[PARAMS], storage_words, "null: as the stack does it"),
    WORD_OR_NULL("grads", stored[GRADS], storage_words, "null: as the stack does it"),
    WORD_OR_NULL("optimizer", stored[OPTIMIZER], storage_words,
                 "null: as the stack does it"),
    WORD_OR_NULL("comm", stored[COMM], storage_words, "null: as the stack does it"),
    {0},
};

static const struct section {
    const char *key;
    const ms_field *fields;
} sections[] = {
    {"experts", experts_fields},     {"batch", batch_fields},
    {"pipeline", pipeline_fields},   {"sharding", sharding_fields},
    {"tensor", tensor_fields},       {"context", context_fields},
    {"recompute", recompute_fields}, {"precision", precision_fields},
};

/* ---- reading ---- */

static ms_status worse(ms_status a, ms_status b)
{
    return a != MS_OK ? a : b;
}

static ms_status read_sections(ms_ctx *cx, ms_jval root, plan_file *file)
{
    ms_status status = MS_OK;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        ms_jval value;
        if (ms_json_member(cx, root, sections[i].key, &value))
            status = worse(status, ms_json_read(cx, value, sections[i].fields, file));
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

/* Axes that are not listed have size 1 and stand outside of the others. */
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
    int at = 0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        if (!is_listed[axis])
            plan->order[at++] = (unsigned char)axis;
    for (int i = 0; i < num_listed; i++)
        plan->order[at++] = listed[i];
    if (!is_listed[MS_DP_SHARD] && (plan->gpus == 0 || is_listed[MS_DP_REPLICATE]))
        plan->size[MS_DP_SHARD] = 1; /* otherwise it takes the rest of the GPUs */
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

typedef struct word_place {
    const char *section, *key;
    const char *const *names; /* NULL-ended */
} word_place;

/* An unknown name is reported at its place with the nearest known one. */
static ms_status fail_word(ms_ctx *cx, ms_jval root, const word_place *place,
                           const char *text)
{
    ms_jval section, value;
    ms_loc loc = MS_NOWHERE;
    int num_names = 0;
    while (place->names[num_names] != NULL)
        num_names++;
    if (ms_json_member(cx, root, place->section, &section) &&
        ms_json_member(cx, section, place->key, &value))
        loc = ms_json_loc(cx, value);
    ms_status status = ms_fail(cx, MS_EINPUT, loc, "unknown %s \"%s\"", place->key, text);
    const char *nearest = ms_nearest(text, place->names, num_names);
    if (nearest != NULL) {
        ms_hint(cx, "did you mean \"%s\"?", nearest);
        return status;
    }
    const char *known = place->names[0];
    for (int i = 1; i < num_names; i++)
        known = ms_arena_printf(cx->arena, "%s%s%s", known,
                                i == num_names - 1 ? " and " : ", ", place->names[i]);
    ms_hint(cx, "known are %s", known);
    return status;
}

/* A path of the plan's file is relative to it. A number of virtual stages that is stated
 * too must be the schedule's: ms_plan_check tells. */
static ms_status read_schedule_file(ms_ctx *cx, ms_jval root, plan_file *file)
{
    ms_jval pipeline, value;
    long stated = file->plan.virtual_stages;
    double limit = file->plan.memory_limit;
    const char *path = ms_path_beside(cx, ms_json_loc(cx, root).file, file->schedule);
    MS_TRY(ms_plan_load_schedule(cx, path, &file->plan));
    file->plan.memory_limit = limit;
    if (ms_json_member(cx, root, "pipeline", &pipeline) &&
        ms_json_member(cx, pipeline, "virtual_stages", &value))
        file->plan.virtual_stages = stated;
    return MS_OK;
}

static ms_status read_words(ms_ctx *cx, ms_jval root, plan_file *file)
{
    static const word_place schedule = {"pipeline", "schedule", ms_schedule_names},
                            method = {"context", "method", ms_cp_method_names};
    ms_status status = MS_OK;
    if (file->schedule != NULL && ms_schedule_is_file(file->schedule))
        status = read_schedule_file(cx, root, file);
    else if (file->schedule != NULL &&
             !ms_schedule_parse(file->schedule, &file->plan.schedule))
        status = fail_word(cx, root, &schedule, file->schedule);
    if (file->cp_method != NULL &&
        !ms_cp_method_parse(file->cp_method, &file->plan.cp_method))
        status = fail_word(cx, root, &method, file->cp_method);
    return status;
}

static ms_jval recompute_field(ms_ctx *cx, ms_jval root, const char *key)
{
    ms_jval recompute = root, field = root;
    if (ms_json_member(cx, root, "recompute", &recompute))
        (void)ms_json_member(cx, recompute, key, &field);
    return field;
}

static ms_status check_layers(ms_ctx *cx, ms_jval root, const ms_plan *plan)
{
    if (plan->recompute == MS_RECOMPUTE_FULL || plan->recompute_layers == 0)
        return MS_OK;
    ms_status status =
        ms_json_fail(cx, recompute_field(cx, root, "layers"),
                     "layers is %ld, but has no effect with mode \"%s\"",
                     plan->recompute_layers, ms_recompute_names[plan->recompute]);
    ms_hint(cx, "the mode must be \"full\", or layers null");
    return status;
}

static ms_status check_recompute(ms_ctx *cx, ms_jval root, const ms_plan *plan)
{
    MS_TRY(check_layers(cx, root, plan));
    if (plan->recompute == MS_RECOMPUTE_AUTO || plan->recompute_budget_frac < 0.0)
        return MS_OK;
    ms_status status =
        ms_json_fail(cx, recompute_field(cx, root, "budget_frac"),
                     "budget_frac is %g, but has no effect with mode \"%s\"",
                     plan->recompute_budget_frac, ms_recompute_names[plan->recompute]);
    ms_hint(cx, "the mode must be \"auto\", or budget_frac null");
    return status;
}

static void translate_precision(plan_file *file)
{
    const char **words[NUM_STORED] = {&file->plan.param_dtype, &file->plan.grad_dtype,
                                      &file->plan.optimizer_dtype,
                                      &file->plan.comm_dtype};
    for (int i = 0; i < NUM_STORED; i++)
        if (file->stored[i] >= 0)
            *words[i] = storage_words[file->stored[i]];
}

/* The product must be `gpus`; without it, gpus is the product. */
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
    ms_jval where = root;
    if (ms_json_member(cx, root, "gpus", &where))
        return ms_json_fail(cx, where, "the mesh has %.0f ranks, but gpus is %ld",
                            product, plan->gpus);
    return ms_json_fail(cx, root, "the mesh has %.0f ranks, but gpus is %ld", product,
                        plan->gpus);
}

static bool states_reshard(ms_ctx *cx, ms_jval root)
{
    ms_jval sharding, value;
    return ms_json_member(cx, root, "sharding", &sharding) &&
           ms_json_member(cx, sharding, "reshard_after_forward", &value);
}

/* What other commands wrote is told at once, instead of by its unknown keys. */
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
    plan_file file = {.plan = ms_plan_default(1), .stored = {-1, -1, -1, -1}};
    file.plan.gpus = 0;         /* not stated */
    file.plan.global_batch = 0; /* not stated */
    ms_status status = ms_json_read(cx, root, plan_fields, &file);
    if (!ms_json_is_object(root))
        return worse(status, MS_EINPUT);
    status = worse(status, read_sections(cx, root, &file));
    status = worse(status, read_mesh(cx, root, &file.plan));
    status = worse(status, read_stage_layers(cx, root, &file.plan));
    status = worse(status, read_words(cx, root, &file));
    status = worse(status, check_recompute(cx, root, &file.plan));
    if (status != MS_OK)
        return status;
    MS_TRY(check_ranks(cx, root, &file.plan));
    translate_precision(&file);
    ms_plan_settle(&file.plan);
    if (!states_reshard(cx,
                        root)) /* a pipeline would gather again for every micro-batch */
        file.plan.reshard_after_forward =
            file.plan.zero == 3 && file.plan.size[MS_PP] == 1;
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

static void write_count(ms_jout *out, const char *key, long value)
{
    ms_jout_number_field(out, key, (double)value);
}

/* 0 stands for "not chosen". */
static void write_count_or_null(ms_jout *out, const char *key, long value)
{
    if (value > 0) {
        write_count(out, key, value);
        return;
    }
    ms_jout_key(out, key);
    ms_jout_null(out);
}

static void begin_section(ms_jout *out, const char *key)
{
    ms_jout_begin_object_field(out, key);
}

static void write_mesh(ms_jout *out, const ms_plan *plan)
{
    ms_jout_begin_array_field(out, "mesh");
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "axis", ms_plan_axis_names[plan->order[i]]);
        write_count(out, "size", plan->size[plan->order[i]]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_pipeline(ms_jout *out, const ms_plan *plan)
{
    begin_section(out, "pipeline");
    ms_jout_text_field(out, "schedule", ms_plan_schedule_name(plan));
    write_count(out, "virtual_stages", plan->virtual_stages);
    write_count_or_null(out, "microbatch_group", plan->microbatch_group);
    if (plan->memory_limit > 0.0)
        ms_jout_number_field(out, "memory_limit", plan->memory_limit);
    ms_jout_key(out, "layers_per_stage");
    if (plan->num_stage_layers == 0) {
        ms_jout_null(out);
    } else {
        ms_jout_begin_array(out);
        for (long i = 0; i < plan->num_stage_layers; i++)
            ms_jout_number(out, (double)plan->layers_per_stage[i]);
        ms_jout_end_array(out);
    }
    ms_jout_end_object(out);
}

static void write_batch(ms_jout *out, const ms_plan *plan)
{
    begin_section(out, "batch");
    write_count(out, "sequence_length", plan->sequence_length);
    write_count(out, "global_batch", plan->global_batch);
    write_count(out, "microbatch", plan->microbatch);
    ms_jout_end_object(out);
}

static void write_habits(ms_jout *out, const ms_plan *plan)
{
    begin_section(out, "sharding");
    write_count(out, "zero", plan->zero);
    ms_jout_bool_field(out, "reshard_after_forward", plan->reshard_after_forward);
    ms_jout_end_object(out);
    begin_section(out, "tensor");
    ms_jout_bool_field(out, "sequence_parallel", plan->sequence_parallel);
    ms_jout_bool_field(out, "async", plan->async_tp);
    ms_jout_bool_field(out, "loss_parallel", plan->loss_parallel);
    ms_jout_end_object(out);
    begin_section(out, "context");
    ms_jout_text_field(out, "method", ms_cp_method_names[plan->cp_method]);
    ms_jout_text_field(out, "balance", ms_cp_balance_names[plan->cp_balance]);
    ms_jout_end_object(out);
    begin_section(out, "recompute");
    ms_jout_text_field(out, "mode", ms_recompute_names[plan->recompute]);
    write_count_or_null(out, "layers", plan->recompute_layers);
    if (plan->recompute == MS_RECOMPUTE_AUTO && plan->recompute_budget_frac >= 0.0)
        ms_jout_number_field(out, "budget_frac", plan->recompute_budget_frac);
    ms_jout_end_object(out);
}

static void write_precision(ms_jout *out, const ms_plan *plan)
{
    begin_section(out, "precision");
    ms_jout_text_field(out, "compute", ms_dtype_names[plan->compute]);
    ms_jout_text_field(out, "params", plan->param_dtype);
    ms_jout_text_field(out, "grads", plan->grad_dtype);
    ms_jout_text_field(out, "optimizer", plan->optimizer_dtype);
    ms_jout_text_field(out, "comm", plan->comm_dtype);
    ms_jout_end_object(out);
}

void ms_plan_write_json(ms_jout *out, const ms_plan *plan)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", PLAN_SCHEMA);
    ms_jout_text_field(out, "model", plan->model);
    ms_jout_text_field(out, "cluster", plan->cluster);
    write_count(out, "gpus", plan->gpus);
    write_mesh(out, plan);
    begin_section(out, "experts");
    write_count(out, "ep", plan->ep);
    write_count(out, "etp", plan->etp);
    ms_jout_end_object(out);
    write_batch(out, plan);
    write_pipeline(out, plan);
    write_habits(out, plan);
    write_precision(out, plan);
    ms_jout_text_field(out, "stack", plan->stack);
    ms_jout_end_object(out);
}
