/* Names that publications use for models, devices, frameworks and precisions, as tables of substrings; the
 * first row that matches holds. */
#include "sim/runs_priv.h"

#include <string.h>
#include <strings.h>

/* ---- models ---- */

#define SHAPES(text, file)                                                               \
    {                                                                                    \
        .pattern = (text), .base = (file), .has_shapes = true                            \
    }

/* Shapes that a row states replace those of the base. Vocabularies: Grok-1 from xai-org/grok-1 run.py, Nemotron-4
 * from arXiv 2402.16819 section 2, GPT from GPT-2's tokenizer. */
static const ms_known_model known_models[] = {
    {.pattern = "nemotron3", .unsupported = "model: Mamba layers are not modelled"},
    {.pattern = "nemotronv3", .unsupported = "model: Mamba layers are not modelled"},
    {.pattern = "nemotronh", .unsupported = "model: Mamba layers are not modelled"},
    {.pattern = "nemotron",
     .base = "gpt3-175b",
     .vocab = 256000,
     .style = MS_STYLE_NEMOTRON},
    {.pattern = "gptoss", .base = "qwen3-30b-a3b", .style = MS_STYLE_GPT_OSS},
    {.pattern = "llama4", .base = "mixtral-8x7b", .style = MS_STYLE_LLAMA4},
    {.pattern = "grok1", .base = "mixtral-8x7b", .vocab = 131072},
    SHAPES("mixtral8x22b", "mixtral-8x22b"),
    SHAPES("mixtral8x7b", "mixtral-8x7b"),
    SHAPES("mistral7b", "mistral-7b"),
    SHAPES("qwen3235b", "qwen3-235b-a22b"),
    SHAPES("qwen330b", "qwen3-30b-a3b"),
    SHAPES("qwen3moe30b", "qwen3-30b-a3b"),
    SHAPES("deepseekv3", "deepseek-v3"),
    SHAPES("deepseekv2lite", "deepseek-v2-lite"),
    SHAPES("deepseekv2", "deepseek-v2"),
    SHAPES("llama3.1405b", "llama-3.1-405b"),
    SHAPES("llama3405b", "llama-3.1-405b"),
    SHAPES("llama3.170b", "llama-3.1-70b"),
    SHAPES("llama370b", "llama-3-70b"),
    SHAPES("llama3.18b", "llama-3.1-8b"),
    SHAPES("llama38b", "llama-3-8b"),
    SHAPES("llama270b", "llama-2-70b"),
    SHAPES("llama213b", "llama-2-13b"),
    SHAPES("llama27b", "llama-2-7b"),
    SHAPES("bloom176b", "bloom-176b"),
    SHAPES("gpt3175b", "gpt3-175b"),
    {.pattern = "bloom", .base = "bloom-176b", .four_hidden = true, .vocab = 250880},
    {.pattern = "mpt", .base = "mpt-7b", .four_hidden = true, .vocab = 50368},
    {.pattern = "gpt", .base = "gpt3-175b", .four_hidden = true, .vocab = 50257},
    {0},
};

/* Kinds of models by their MLP alone. */
static const ms_known_model gated_model = {.pattern = "gated", .base = "llama-2-7b"};
static const ms_known_model plain_model = {
    .pattern = "plain", .base = "gpt3-175b", .four_hidden = true, .vocab = 50257};

static const char *plain_name(ms_arena *arena, const char *name)
{
    char *out = ms_arena_strdup(arena, name);
    char *end = out;
    for (const char *at = name; *at != '\0'; at++) {
        if (*at == ' ' || *at == '-' || *at == '_')
            continue;
        *end++ = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    }
    *end = '\0';
    return out;
}

const ms_known_model *ms_known_model_find(ms_arena *arena, const char *name, bool gated)
{
    const char *plain = plain_name(arena, name);
    for (const ms_known_model *model = known_models; model->pattern != NULL; model++)
        if (strstr(plain, model->pattern) != NULL)
            return model;
    return gated ? &gated_model : &plain_model;
}

/* ---- devices and frameworks ---- */

/* A configuration by parts of the row's text; NULL parts match everything. */
typedef struct name_rule {
    const char *part;
    const char *other_part;
    const char *date;
    const char *name;
} name_rule;

static const name_rule gpu_rules[] = {
    {"TPU", NULL, NULL, NULL},
    {"GB300", NULL, NULL, "gb300-nvl72"},
    {"GB200", NULL, NULL, "gb200-nvl72"},
    {"B300", NULL, NULL, "hgx-b300"},
    {"B200", NULL, NULL, "hgx-b200"},
    {"H200", NULL, NULL, "hgx-h200"},
    {"H800", NULL, NULL, "hgx-h800"},
    {"H100", "96GB", NULL, "h100-96g-500w"},
    {"H100", "EFA", NULL, "h100-efa"},
    {"H100", NULL, NULL, "hgx-h100"},
    {"A100", "40GB", NULL, "hgx-a100-40g"},
    {"A100", NULL, NULL, "hgx-a100-80g"},
    {"4090", NULL, NULL, "workstation-rtx4090"},
    {NULL, NULL, NULL, NULL},
};

/* The other part is searched in compiler flags. */
static const name_rule framework_rules[] = {
    {"torchtitan", "torch.compile", "2024-", "torchtitan-2024"},
    {"torchtitan", "torch.compile", NULL, "torchtitan"},
    {"torchtitan", NULL, NULL, "torchtitan-eager"},
    {"AutoModel", NULL, NULL, "automodel"},
    {"nanotron", NULL, NULL, "nanotron"},
    {"llm-foundry", NULL, NULL, "llm-foundry"},
    {"Composer", NULL, NULL, "llm-foundry"},
    {"fms-fsdp", NULL, NULL, "fms-fsdp"},
    {"FSDP1", NULL, NULL, "fms-fsdp"},
    {"FSDP2", NULL, NULL, "torchtitan"},
    {"MaxText", NULL, NULL, "maxtext"},
    {"SimuMax", NULL, NULL, "simumax"},
    {"23e00ed", NULL, NULL, "simumax"},
    {"NeMo Megatron", NULL, NULL, "megatron-2021"},
    {"NeMo", NULL, NULL, "nemo"},
    {"Megatron-DeepSpeed", NULL, NULL, "megatron-deepspeed"},
    {"DeepSpeed", NULL, NULL, "megatron-deepspeed"},
    {"zero-bubble", NULL, NULL, "megatron-2021"},
    {"Megatron", NULL, "2021-", "megatron-2021"},
    {"Megatron", NULL, "2022-", "megatron-2021"},
    {"Megatron", NULL, NULL, "megatron"},
    {NULL, NULL, NULL, NULL},
};

static bool has_part(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

/* The other part of a rule may stand in either of the other two cells. */
static const char *first_name(const name_rule *rules, const char *text, const char *other,
                              const char *another, const char *date)
{
    for (const name_rule *rule = rules; rule->part != NULL; rule++) {
        if (has_part(text, rule->part) &&
            (rule->other_part == NULL || has_part(other, rule->other_part) ||
             has_part(another, rule->other_part)) &&
            (rule->date == NULL || has_part(date, rule->date)))
            return rule->name;
    }
    return NULL;
}

const char *ms_run_cluster_name(const ms_run_cells *cells)
{
    return first_name(gpu_rules, cells->gpu_type, cells->gpu_type, cells->network, NULL);
}

const char *ms_run_stack_name(const ms_run_cells *cells)
{
    return first_name(framework_rules, cells->framework, cells->compile, NULL,
                      cells->date);
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* --make-vocab-size-divisible-by is 128 in every Megatron. */
bool ms_stack_pads_vocab(const char *stack)
{
    static const char *const names[] = {"megatron", "megatron-2021", "megatron-deepspeed",
                                        "nemo",     "simumax",       NULL};
    return is_one_of(stack, names);
}

bool ms_stack_uses_dropout(const char *stack)
{
    static const char *const names[] = {"megatron-2021", "megatron-deepspeed", NULL};
    return is_one_of(stack, names);
}

/* nanotron's benchmark logs rank 0's max_memory_allocated (src/nanotron/trainer.py). */
bool ms_stack_reports_first_rank(const char *stack)
{
    return strcmp(stack, "nanotron") == 0;
}

/* Qi et al. 2023 print "GB" without saying which. Read as 1e9 bytes, 16 bytes a parameter and whole layers kept are right for models of 1.5 and 28.3
 * billion parameters at once (-4 to +1 %); read as GiB, what fits the one is 7 to 10 % off the other. */
bool ms_run_memory_is_decimal(const ms_run_cells *cells)
{
    return has_part(cells->framework, "zero-bubble");
}

/* MegaScale (arXiv 2402.15627) section 3.1: parallel blocks, sliding windows. Its Megatron-LM rows do not. */
bool ms_run_changes_mathematics(const ms_run_cells *cells)
{
    return has_part(cells->framework, "MegaScale") &&
           !has_part(cells->framework, "Megatron");
}

/* ---- precision ---- */

bool ms_run_dtype(const char *precision, ms_dtype *out, const char **reason)
{
    *out = MS_BF16; /* fp16 runs at the same rates and sizes */
    if (precision == NULL || strncasecmp(precision, "bf16", 4) == 0 ||
        strcasecmp(precision, "fp16") == 0)
        return true;
    *out = MS_FP8;
    if (strncasecmp(precision, "fp8", 3) == 0 || strncasecmp(precision, "mxfp8", 5) == 0)
        return true;
    *reason = "precision: neither bf16, fp16 nor fp8";
    return false;
}
