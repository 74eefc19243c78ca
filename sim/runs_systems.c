/* Names that publications use for frameworks and precisions, as tables of substrings; the
 * first rule that matches holds. Texts are compared in lower case without ' ', '-' and
 * '_'. */
#include "sim/runs_priv.h"

#include <ctype.h>
#include <math.h>
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

/* A stack by parts of the framework's name, of the framework's and the source's name, the
 * flags or the precision, and by the first month that is too late; NULL and 0 match
 * everything. */
typedef struct stack_rule {
    const char *part, *flag;
    long before;       /* year and month, 202301 */
    const char *name;  /* NULL: unknown */
    long global_batch; /* that its published configurations have; 0: none */
} stack_rule;

/* Frameworks without a file of their own run what they are built on: GPT-NeoX is Megatron
 * with DeepSpeed (EleutherAI/gpt-neox README), metaseq is FairScale's FSDP with
 * Megatron's layers (OPT, arXiv 2205.01068 section 2.3), which moves weights on streams
 * of its own and runs checkpointed layers to their end, as FSDP of 2023; OLMo's first
 * trainer and lit-gpt are FSDP1, torchtune, Accelerate, axolotl and veScale are FSDP2 or
 * eager FSDP, OLMo-core is FSDP2 compiled, Pax, T5X, Levanter and Alpa are XLA as MaxText
 * is, AMD's Primus and Ascend's MindSpeed are Megatron-LM, NVIDIA's Megatron-MoE-ModelZoo
 * has the dispatcher and the recipes of Megatron-Bridge (from memory of its
 * configurations). 2048 sequences: NeMo-Megatron-Launcher
 * launcher_scripts/conf/training/gpt3/175b.yaml. Megatron-LM by its time: FlashAttention
 * came in January 2023 (--use-flash-attn), the overlap of gradients, parameters and
 * interleaved messages in the second half of that year, Transformer Engine became its
 * default in January 2024 (Megatron-Core 0.5). The baseline of MegaScale is Megatron-LM
 * when that work began (arXiv 2402.15627 section 6.1). DeepSpeed trains bf16 by an
 * optimizer of its own (deepspeed/runtime/bf16_optimizer.py). Names that came later are
 * mapped from memory; docs/names.md has them all. */
static const stack_rule stack_rules[] = {
    {"torchtitan", "compile", 202501, "torchtitan-2024", 0},
    {"torchtitan", "compile", 0, "torchtitan", 0},
    {"torchtitan", NULL, 0, "torchtitan-eager", 0},
    {"metaseq", NULL, 0, "llm-foundry-2023", 0},
    {"fairscale", NULL, 0, "llm-foundry-2023", 0},
    {"fairseq2", NULL, 0, "torchtitan-eager", 0},
    {"fairseq", NULL, 0, "llm-foundry-2023", 0},
    {"metalingua", NULL, 0, "torchtitan", 0},
    {"lingua", NULL, 0, "torchtitan", 0},
    {"llamarecipes", NULL, 0, "torchtitan-eager", 0},
    {"llamacookbook", NULL, 0, "torchtitan-eager", 0},
    {"metax", "megatron", 0, "megatron", 0}, /* a vendor of GPUs */
    {"metax", NULL, 0, NULL, 0},
    {"meta", NULL, 0, "meta-llama3", 0},
    {"llama3", "training", 0, "meta-llama3", 0},
    {"herdofmodels", NULL, 0, "meta-llama3", 0},
    {"automodel", NULL, 0, "automodel", 0},
    {"nanotron", NULL, 0, "nanotron", 0},
    {"llmfoundry", NULL, 202310, "llm-foundry-2023", 0},
    {"llmfoundry", NULL, 0, "llm-foundry", 0},
    {"composer", NULL, 202310, "llm-foundry-2023", 0},
    {"composer", NULL, 0, "llm-foundry", 0},
    {"mosaic", NULL, 202310, "llm-foundry-2023", 0},
    {"mosaic", NULL, 0, "llm-foundry", 0},
    {"fmsfsdp", NULL, 0, "fms-fsdp", 0},
    {"fsdp1", NULL, 0, "fms-fsdp", 0},
    {"fsdp2", NULL, 0, "torchtitan", 0},
    {"olmocore", NULL, 0, "torchtitan", 0},
    {"olmo", NULL, 0, "fms-fsdp", 0},
    {"maxtext", NULL, 0, "maxtext", 0},
    {"paxml", NULL, 0, "maxtext", 0},
    {"pax", NULL, 0, "maxtext", 0},
    {"praxis", NULL, 0, "maxtext", 0},
    {"axlearn", NULL, 0, "maxtext", 0},
    {"flax", NULL, 0, "maxtext", 0},
    {"haiku", NULL, 0, "maxtext", 0},
    {"pjit", NULL, 0, "maxtext", 0},
    {"gshard", NULL, 0, "maxtext", 0},
    {"meshtensorflow", NULL, 0, "maxtext", 0},
    {"tensorflow", NULL, 0, "maxtext", 0},
    {"neuron", NULL, 0, "maxtext", 0},
    {"t5x", NULL, 0, "maxtext", 0},
    {"levanter", NULL, 0, "maxtext", 0},
    {"easylm", NULL, 0, "maxtext", 0},
    {"alpa", NULL, 0, "maxtext", 0},
    {"jax", NULL, 0, "maxtext", 0},
    {"gspmd", NULL, 0, "maxtext", 0},
    {"xla", NULL, 0, "maxtext", 0},
    {"simumax", NULL, 0, "simumax", 0},
    {"23e00ed", NULL, 0, "simumax", 0},
    {"internevo", NULL, 0, "internevo", 0},
    {"internlm", NULL, 0, "internevo", 0},
    {"nemomegatron", NULL, 202401, "megatron-2022", 2048},
    {"nemo", NULL, 0, "nemo", 0},
    {"neox", "bf16", 0, "megatron-deepspeed-bf16", 0},
    {"neox", NULL, 0, "megatron-deepspeed", 0},
    {"megatrondeepspeed", "bf16", 0, "megatron-deepspeed-bf16", 0},
    {"megatrondeepspeed", NULL, 0, "megatron-deepspeed", 0},
    {"deepspeedmegatron", "bf16", 0, "megatron-deepspeed-bf16", 0},
    {"deepspeed", "megatron", 0, "megatron-deepspeed", 0},
    {"megatronturing", NULL, 0, "megatron-deepspeed", 0},
    {"deepspeed", NULL, 0, "deepspeed", 0},
    {"colossal", NULL, 0, "deepspeed", 0},
    {"bmtrain", NULL, 0, "deepspeed", 0},
    {"zerobubble", NULL, 0, "megatron-2021", 0},
    {"zero", NULL, 0, "deepspeed", 0},
    {"primus", NULL, 0, "megatron", 0},
    {"mindspeed", NULL, 0, "megatron", 0},
    {"mindspore", NULL, 0, "megatron", 0},
    {"paddle", NULL, 0, "megatron", 0},
    {"flagscale", NULL, 0, "megatron", 0},
    {"galvatron", NULL, 0, "megatron", 0},
    {"paimegatron", NULL, 0, "megatron", 0},
    {"megablocks", NULL, 0, "megatron", 0},
    {"megatronbridge", NULL, 202511, "megatron-bridge-2025", 0},
    {"megatronbridge", NULL, 202606, "megatron-bridge", 0},
    {"megatronbridge", NULL, 0, "megatron-bridge-2026", 0},
    {"megatron", "modelzoo", 0, "megatron-bridge", 0},
    {"megatron", "deepep", 0, "megatron-bridge", 0},
    {"megatron", "(2021)", 0, "megatron-2021", 0},
    {"megatron", "(2022)", 0, "megatron-2022", 0},
    {"megatronlmv1", NULL, 0, "megatron-2021", 0},
    {"megatronlmv2", NULL, 0, "megatron-2021", 0},
    {"megatronlmv3", NULL, 0, "megatron-2022", 0},
    {"megatron", NULL, 202202, "megatron-2021", 0},
    {"megatron", NULL, 202301, "megatron-2022", 0},
    {"megatron", "(2023)", 0, "megatron-2023", 0},
    {"megatron", "megascale", 0, "megatron-2023", 0},
    {"megatron", NULL, 202401, "megatron-2023", 0},
    {"megatron", NULL, 0, "megatron", 0},
    {"megascale", NULL, 0, "megatron", 0},
    {"mcore", NULL, 0, "megatron", 0},
    {"torchtune", "compile", 0, "torchtitan", 0},
    {"torchtune", NULL, 0, "torchtitan-eager", 0},
    {"accelerate", NULL, 0, "torchtitan-eager", 0},
    {"transformers", NULL, 0, "torchtitan-eager", 0},
    {"hftrainer", NULL, 0, "torchtitan-eager", 0},
    {"huggingface", NULL, 0, "torchtitan-eager", 0},
    {"trl", NULL, 0, "torchtitan-eager", 0},
    {"axolotl", NULL, 0, "torchtitan-eager", 0},
    {"llamafactory", NULL, 0, "torchtitan-eager", 0},
    {"msswift", NULL, 0, "torchtitan-eager", 0},
    {"xtuner", NULL, 0, "torchtitan-eager", 0},
    {"optimumhabana", NULL, 0, "torchtitan-eager", 0},
    {"picotron", NULL, 0, "torchtitan-eager", 0},
    {"modalities", NULL, 0, "torchtitan-eager", 0},
    {"sagemaker", NULL, 0, "torchtitan-eager", 0},
    {"yafsdp", NULL, 0, "torchtitan-eager", 0},
    {"hsdp", NULL, 0, "torchtitan-eager", 0},
    {"ddp", NULL, 0, "torchtitan-eager", 0},
    {"nanogpt", NULL, 0, "torchtitan", 0},
    {"simplefsdp", NULL, 0, "torchtitan", 0},
    {"foundationmodelstack", NULL, 0, "fms-fsdp", 0},
    {"litgpt", NULL, 0, "fms-fsdp", 0},
    {"lightning", NULL, 0, "torchtitan-eager", 0},
    {"vescale", NULL, 0, "torchtitan-eager", 0},
    {"fsdp", "compile", 0, "torchtitan", 0},
    {"fsdp", NULL, 0, "torchtitan-eager", 0},
    {"pytorch", "compile", 0, "torchtitan", 0},
    {"pytorch", NULL, 0, "torchtitan-eager", 0},
    {"haillm", NULL, 0, "hai-llm", 0},
    {"deepseek", "report", 0, "hai-llm", 0},
    {"deepseek", "deepseek", 0, "hai-llm", 0},
    {NULL, NULL, 0, NULL, 0},
};

/* Year and month of "2023-08", "2023/08/01", "2023"; 0: none, and what is no year, as in
 * "08-2023". */
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

bool ms_run_is_before(const ms_run_cells *cells, long month)
{
    long own = month_of(cells->date);
    return own > 0 && own < month;
}

/* Whether the text's ms_plain_text begins with the plain name. */
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
            continue; /* no word begins in a gap */
        if ((!inside || !isalnum((unsigned char)*name)) && begins_plainly(at, name))
            return true;
    }
    return false;
}

/* What a row says of its framework: in its own cells, or, where it is the name of a work,
 * in the source's. */
static bool has_flag(ms_arena *arena, const ms_run_cells *cells, const char *flag)
{
    static const char *const works[] = {"modelzoo", "deepep", "megascale", "report"};
    const char *const own[] = {cells->framework, cells->compile, cells->precision};
    if (flag == NULL)
        return true;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (has_part(ms_plain_text(arena, own[i]), flag))
            return true;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(flag, works[i]) == 0)
            return ms_begins_word(cells->source, flag);
    return false;
}

static const stack_rule *match_stack(ms_arena *arena, const ms_run_cells *cells,
                                     const char *name)
{
    for (const stack_rule *rule = stack_rules; rule->part != NULL; rule++) {
        bool in_time = rule->before == 0 || ms_run_is_before(cells, rule->before);
        if (in_time && ms_begins_word(name, rule->part) &&
            has_flag(arena, cells, rule->flag))
            return rule;
    }
    return NULL;
}

/* By the framework's name; where that says nothing, by the source's. */
static const stack_rule *find_stack(ms_arena *arena, const ms_run_cells *cells)
{
    const stack_rule *rule = match_stack(arena, cells, cells->framework);
    return rule != NULL ? rule : match_stack(arena, cells, cells->source);
}

const char *ms_run_stack_name(ms_arena *arena, const ms_run_cells *cells)
{
    const stack_rule *rule = find_stack(arena, cells);
    return rule == NULL ? NULL : rule->name;
}

bool ms_run_stack_is_of_source(ms_arena *arena, const ms_run_cells *cells)
{
    return match_stack(arena, cells, cells->framework) == NULL &&
           match_stack(arena, cells, cells->source) != NULL;
}

long ms_run_default_batch(ms_arena *arena, const ms_run_cells *cells)
{
    const stack_rule *rule = find_stack(arena, cells);
    return rule == NULL ? 0 : rule->global_batch;
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
    static const char *const names[] = {"megatron",
                                        "megatron-2021",
                                        "megatron-2022",
                                        "megatron-2023",
                                        "megatron-bridge",
                                        "megatron-bridge-2025",
                                        "megatron-bridge-2026",
                                        "megatron-deepspeed",
                                        "megatron-deepspeed-bf16",
                                        "nemo",
                                        "simumax",
                                        NULL};
    return is_one_of(stack, names);
}

bool ms_stack_uses_dropout(const char *stack)
{
    static const char *const names[] = {"megatron-2021", "megatron-2022",
                                        "megatron-deepspeed", "megatron-deepspeed-bf16",
                                        NULL};
    return is_one_of(stack, names);
}

/* nanotron's benchmark logs rank 0's max_memory_allocated (src/nanotron/trainer.py). */
bool ms_stack_reports_first_rank(const char *stack)
{
    return strcmp(stack, "nanotron") == 0;
}

/* Qi et al. 2023 print "GB" without saying which. Read as 1e9 bytes, 16 bytes a parameter
 * and whole layers kept are right for models of 1.5 and 28.3 billion parameters at once
 * (-4 to +1 %); read as GiB, what fits the one is 7 to 10 % off the other. */
bool ms_run_memory_is_decimal(ms_arena *arena, const ms_run_cells *cells)
{
    return has_part(ms_plain_text(arena, cells->framework), "zerobubble");
}

/* MegaScale (arXiv 2402.15627) section 3.1: parallel blocks, sliding windows. Its
 * Megatron-LM rows do not. */
bool ms_run_changes_mathematics(ms_arena *arena, const ms_run_cells *cells)
{
    const char *framework = ms_plain_text(arena, cells->framework);
    return has_part(framework, "megascale") && !has_part(framework, "megatron") &&
           !has_part(framework, "megascalemoe");
}

/* ---- precision ---- */

typedef struct dtype_rule {
    const char *part;
    ms_dtype dtype;
} dtype_rule;

/* The compute type of most products comes first in such texts' order here: "bf16 with fp8
 * GEMMs" is fp8. Mixed precision is that of the device's 16 bits: a plan in fp16 is one
 * in bf16 where the device has it. */
static const dtype_rule dtype_rules[] = {
    {"nofp8", MS_BF16},    {"fp8comm", MS_BF16}, {"fp8allgather", MS_BF16},
    {"fp8optim", MS_BF16}, {"fp8", MS_FP8},      {"float8", MS_FP8},
    {"e4m3", MS_FP8},      {"fp4", MS_FP4},      {"bf16", MS_BF16},
    {"bfloat16", MS_BF16}, {"fp16", MS_FP16},    {"float16", MS_FP16},
    {"half", MS_FP16},     {"amp", MS_FP16},     {"mixed", MS_FP16},
    {"16bit", MS_FP16},    {"tf32", MS_TF32},    {"fp32", MS_FP32},
    {"float32", MS_FP32},  {"single", MS_FP32},
};

bool ms_run_dtype(ms_arena *arena, const char *precision, ms_dtype *out)
{
    *out = MS_BF16;
    if (precision == NULL)
        return true;
    const char *text = ms_plain_text(arena, precision);
    for (size_t i = 0; i < sizeof dtype_rules / sizeof *dtype_rules; i++) {
        if (has_part(text, dtype_rules[i].part)) {
            *out = dtype_rules[i].dtype;
            return true;
        }
    }
    return false;
}
