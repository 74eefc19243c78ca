/* Names that publications use for models, as a table of substrings; the first row that matches holds. */
#include "sim/runs_priv.h"

#include <string.h>

/* ---- models ---- */

/* Neither stated by their rows nor known here: with "incomplete" such a row does not count as complete. */
#define MAMBA "incomplete: architecture, with Mamba layers, which are not modelled"

#define SHAPES(text, file)                                                               \
    {                                                                                    \
        .pattern = (text), .base = (file), .has_shapes = true                            \
    }

/* Shapes that a row states replace those of the base. Vocabularies: Grok-1 from xai-org/grok-1 run.py, Nemotron-4
 * from arXiv 2402.16819 section 2, GPT from GPT-2's tokenizer. */
static const ms_known_model known_models[] = {
    {.pattern = "nemotron340b",
     .base = "gpt3-175b",
     .vocab = 256000,
     .style = MS_STYLE_NEMOTRON},
    {.pattern = "nemotron3", .unsupported = MAMBA},
    {.pattern = "nemotronv3", .unsupported = MAMBA},
    {.pattern = "nemotronh", .unsupported = MAMBA},
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

const ms_known_model *ms_known_model_find(ms_arena *arena, const char *name, bool gated)
{
    const char *plain = ms_plain_text(arena, name);
    for (const ms_known_model *model = known_models; model->pattern != NULL; model++)
        if (strstr(plain, model->pattern) != NULL)
            return model;
    return gated ? &gated_model : &plain_model;
}
