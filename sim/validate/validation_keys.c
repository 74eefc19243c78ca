/* Keys by which published runs can be grouped: "gpus", "precision", ... */
#include "sim/validate/validation_by.h"
#include "sim/validate/validation_priv.h"

#include <string.h>

/* ---- computed values ---- */

static const char *number_text(ms_arena *arena, long number)
{
    return ms_arena_printf(arena, "%ld", number);
}

static const char *kind_of(ms_arena *arena, const ms_pubrun *run)
{
    (void)arena;
    return run->model->moe.num_experts > 0 ? "moe" : "dense";
}

/* Precision of the GEMMs as predicted; the file's own texts have many spellings. */
static const char *precision_of(ms_arena *arena, const ms_pubrun *run)
{
    (void)arena;
    return ms_dtype_names[run->plan.compute];
}

static const char *nodes_of(ms_arena *arena, const ms_pubrun *run)
{
    long each = run->cluster->gpus_per_node;
    return number_text(arena, (run->plan.gpus + each - 1) / each);
}

static const char *dp_of(ms_arena *arena, const ms_pubrun *run)
{
    return number_text(arena, ms_plan_data_parallel(&run->plan));
}

static const char *microbatches_of(ms_arena *arena, const ms_pubrun *run)
{
    return number_text(arena, ms_plan_microbatches(&run->plan));
}

static const char *schedule_of(ms_arena *arena, const ms_pubrun *run)
{
    (void)arena;
    return run->plan.size[MS_PP] > 1 ? ms_plan_schedule_name(&run->plan) : "none";
}

static const char *recompute_of(ms_arena *arena, const ms_pubrun *run)
{
    (void)arena;
    return ms_recompute_names[run->plan.recompute];
}

static const char *pipeline_of(ms_arena *arena, const ms_pubrun *run)
{
    (void)arena;
    return run->plan.size[MS_PP] > 1 ? "pp > 1" : "pp 1";
}

/* Placement of tensor parallelism, the innermost axis: a group stays within a node if it
 * is no larger than the node. */
static const char *tensor_of(ms_arena *arena, const ms_pubrun *run)
{
    (void)arena;
    long tp = run->plan.size[MS_TP];
    if (tp == 1)
        return "tp 1";
    return tp <= run->cluster->gpus_per_node ? "tp in a node" : "tp over nodes";
}

/* ---- keys ---- */

/* A key to group runs by: a text of the run, a whole number, or a function's result. */
typedef struct known_key {
    const char *name;
    size_t text_offset, number_offset; /* offset of ms_pubrun's member; 0 if unused */
    const char *(*value)(ms_arena *arena, const ms_pubrun *run);
} known_key;

#define TEXT(title, member)                                                              \
    {                                                                                    \
        .name = (title), .text_offset = offsetof(ms_pubrun, member)                      \
    }
#define NUMBER(title, member)                                                            \
    {                                                                                    \
        .name = (title), .number_offset = offsetof(ms_pubrun, member)                    \
    }
#define FUNCTION(title, function)                                                        \
    {                                                                                    \
        .name = (title), .value = (function)                                             \
    }

static const known_key known_keys[] = {
    TEXT("source", source),
    TEXT("framework", framework),
    TEXT("stack", plan.stack),
    TEXT("gpu_type", gpu_type),
    TEXT("cluster", plan.cluster),
    TEXT("network", network),
    TEXT("model", model_text),
    FUNCTION("kind", kind_of),
    FUNCTION("precision", precision_of),
    NUMBER("gpus", plan.gpus),
    FUNCTION("nodes", nodes_of),
    FUNCTION("dp", dp_of),
    NUMBER("tp", plan.size[MS_TP]),
    NUMBER("pp", plan.size[MS_PP]),
    NUMBER("cp", plan.size[MS_CP]),
    NUMBER("ep", plan.ep),
    NUMBER("zero", plan.zero),
    NUMBER("seq", plan.sequence_length),
    NUMBER("microbatch", plan.microbatch),
    FUNCTION("microbatches", microbatches_of),
    FUNCTION("schedule", schedule_of),
    FUNCTION("recompute", recompute_of),
    FUNCTION("pipeline", pipeline_of),
    FUNCTION("tensor", tensor_of),
};
#define NUM_KNOWN_KEYS ((int)(sizeof known_keys / sizeof *known_keys))

static const char *known_text(ms_arena *arena)
{
    const char *text = known_keys[0].name;
    for (int i = 1; i < NUM_KNOWN_KEYS; i++)
        text = ms_arena_printf(arena, "%s, %s", text, known_keys[i].name);
    return text;
}

static ms_status unknown_key(ms_ctx *cx, const char *option, const char *word)
{
    const char *names[NUM_KNOWN_KEYS];
    for (int i = 0; i < NUM_KNOWN_KEYS; i++)
        names[i] = known_keys[i].name;
    const char *nearest = ms_nearest(word, names, NUM_KNOWN_KEYS);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: unknown key \"%s\"", option, word);
    if (nearest != NULL)
        ms_hint(cx, "did you mean \"%s\"?", nearest);
    else
        ms_hint(cx, "known: %s", known_text(cx->arena));
    return MS_EINPUT;
}

static bool has_key(const ms_pubrun_keys *keys, int key)
{
    for (int i = 0; i < keys->num_keys; i++)
        if (keys->keys[i] == key)
            return true;
    return false;
}

/* Whether two groupings have the same keys in the same order. */
static bool same_keys(const ms_pubrun_keys *a, const ms_pubrun_keys *b)
{
    return a->num_keys == b->num_keys &&
           memcmp(a->keys, b->keys, (size_t)a->num_keys * sizeof *a->keys) == 0;
}

static ms_status parse_joined(ms_ctx *cx, const char *option, const char *text,
                              ms_pubrun_keys *out)
{
    *out = (ms_pubrun_keys){.text = text};
    for (const char *rest = text; rest != NULL;) {
        size_t length = strcspn(rest, "+");
        const char *word = ms_arena_strndup(cx->arena, rest, length);
        int key = 0;
        while (key < NUM_KNOWN_KEYS && strcmp(known_keys[key].name, word) != 0)
            key++;
        if (key == NUM_KNOWN_KEYS)
            return unknown_key(cx, option, word);
        rest = rest[length] == '+' ? rest + length + 1 : NULL;
        if (has_key(out, key))
            continue;
        if (out->num_keys == MS_MAX_JOINED_KEYS)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "%s: \"%s\" joins more than %d keys", option, text,
                           MS_MAX_JOINED_KEYS);
        out->keys[out->num_keys++] = key;
    }
    return MS_OK;
}

ms_status ms_pubrun_keys_parse(ms_ctx *cx, const char *option, const char *text,
                               ms_pubrun_keys **out, int *num)
{
    ms_status status = MS_OK;
    int capacity = 0;
    *out = NULL;
    *num = 0;
    for (const char *rest = text; rest != NULL;) {
        size_t length = strcspn(rest, ",");
        MS_MAKE_ROOM(cx->arena, *out, *num, capacity, 4);
        ms_pubrun_keys *keys = &(*out)[*num];
        ms_status parsed =
            parse_joined(cx, option, ms_arena_strndup(cx->arena, rest, length), keys);
        int same = 0;
        while (same < *num && !same_keys(&(*out)[same], keys))
            same++;
        *num += same == *num; /* a repeated key is dropped */
        /* parse the rest too, so that all errors are reported */
        status = parsed != MS_OK ? parsed : status;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return status;
}

static const char *key_value(ms_arena *arena, const known_key *key, const ms_pubrun *run)
{
    const char *text;
    long number;
    if (key->value != NULL)
        return key->value(arena, run);
    if (key->number_offset > 0) {
        memcpy(&number, (const char *)run + key->number_offset, sizeof number);
        return number_text(arena, number);
    }
    memcpy(&text, (const char *)run + key->text_offset, sizeof text);
    return ms_or_unstated(text);
}

const char *ms_pubrun_keys_value(ms_arena *arena, const ms_pubrun_keys *keys,
                                 const ms_pubrun *run)
{
    const char *text = "";
    for (int i = 0; i < keys->num_keys; i++)
        text = ms_arena_printf(arena, "%s%s%s", text, i == 0 ? "" : ", ",
                               key_value(arena, &known_keys[keys->keys[i]], run));
    return text;
}
