/* Names that publications use for models, as a table of substrings; the first row that matches holds. */
#include "sim/runs_priv.h"

#include <string.h>

/* ---- models ---- */

/* Neither stated by their rows nor known here: with "incomplete" such a row does not count as complete. */
#define UNKNOWN "incomplete: architecture of a model that is not known here"
#define OTHER_STATES                                                                     \
    "incomplete: architecture, with state-space or linear-attention layers other than "  \
    "Mamba-2"

#define SHAPES(text, file)                                                               \
    {                                                                                    \
        .pattern = (text), .base = (file), .has_shapes = true                            \
    }

/* Shapes that a row states replace those of the base. Vocabularies: Nemotron-4 from arXiv 2402.16819 section 2, GPT from GPT-2's tokenizer. "Qwen2 57B" is the mixture:
 * "qwen257b" alone would be "Qwen2.5 7B" without its point. */
static const ms_known_model known_models[] = {
    SHAPES("nemotron4340b", "nemotron-4-340b"),
    SHAPES("nemotron340b", "nemotron-4-340b"),
    SHAPES("nemotron415b", "nemotron-4-15b"),
    SHAPES("nemotron15b", "nemotron-4-15b"),
    SHAPES("nemotron38b", "nemotron-3-8b"),
    SHAPES("nemotron8b", "nemotron-3-8b"),
    SHAPES("llama3.1nemotron70b", "llama-3.1-70b"),
    SHAPES("nemotron3nano", "nemotron-3-nano-30b-a3b"),
    SHAPES("nemotronv3nano", "nemotron-3-nano-30b-a3b"),
    SHAPES("nemotronh8b", "nemotron-h-8b"),
    SHAPES("nemotronh56b", "nemotron-h-56b"),
    {.pattern = "nemotron3", .unsupported = UNKNOWN},
    {.pattern = "nemotronv3", .unsupported = UNKNOWN},
    {.pattern = "nemotronh", .unsupported = UNKNOWN},
    {.pattern = "nemotronnano", .unsupported = UNKNOWN},
    {.pattern = "mamba", .unsupported = OTHER_STATES},
    {.pattern = "jamba", .unsupported = OTHER_STATES},
    {.pattern = "zamba", .unsupported = OTHER_STATES},
    {.pattern = "qwen3next", .unsupported = OTHER_STATES},
    {.pattern = "nemotron", .base = "nemotron-4-15b", .vocab = 256000},
    SHAPES("gptoss20b", "gpt-oss-20b"),
    SHAPES("gptoss120b", "gpt-oss-120b"),
    {.pattern = "gptoss", .base = "gpt-oss-120b"},
    SHAPES("llama4scout", "llama-4-scout"),
    {.pattern = "llama4", .base = "mixtral-8x7b", .style = MS_STYLE_LLAMA4},
    SHAPES("grok1", "grok-1"),
    SHAPES("mixtral8x22b", "mixtral-8x22b"),
    SHAPES("mixtral8x7b", "mixtral-8x7b"),
    SHAPES("mistral7b", "mistral-7b"),
    SHAPES("dbrx", "dbrx"),
    SHAPES("kimik2", "kimi-k2"),
    SHAPES("qwen3235b", "qwen3-235b-a22b"),
    SHAPES("qwen3moe235b", "qwen3-235b-a22b"),
    SHAPES("qwen330b", "qwen3-30b-a3b"),
    SHAPES("qwen3moe30b", "qwen3-30b-a3b"),
    SHAPES("qwen332b", "qwen3-32b"),
    SHAPES("qwen314b", "qwen3-14b"),
    SHAPES("qwen38b", "qwen3-8b"),
    SHAPES("qwen34b", "qwen3-4b"),
    SHAPES("qwen31.7b", "qwen3-1.7b"),
    SHAPES("qwen30.6b", "qwen3-0.6b"),
    SHAPES("qwen2.572b", "qwen2.5-72b"),
    SHAPES("qwen2.532b", "qwen2.5-32b"),
    SHAPES("qwen2.514b", "qwen2.5-14b"),
    SHAPES("qwen2.57b", "qwen2.5-7b"),
    SHAPES("qwen2.53b", "qwen2.5-3b"),
    SHAPES("qwen2.51.5b", "qwen2.5-1.5b"),
    SHAPES("qwen2.50.5b", "qwen2.5-0.5b"),
    SHAPES("qwen257ba14b", "qwen2-57b-a14b"),
    SHAPES("qwen257bmoe", "qwen2-57b-a14b"),
    SHAPES("qwen272b", "qwen2-72b"),
    SHAPES("qwen27b", "qwen2-7b"),
    SHAPES("deepseekv3", "deepseek-v3"),
    SHAPES("deepseekr1", "deepseek-v3"),
    SHAPES("deepseekv2lite", "deepseek-v2-lite"),
    SHAPES("deepseekv2", "deepseek-v2"),
    SHAPES("deepseek67b", "deepseek-llm-67b"),
    SHAPES("deepseekllm67b", "deepseek-llm-67b"),
    SHAPES("deepseekllm7b", "deepseek-llm-7b"),
    SHAPES("llama3.1405b", "llama-3.1-405b"),
    SHAPES("llama31405b", "llama-3.1-405b"),
    SHAPES("llama3405b", "llama-3.1-405b"),
    SHAPES("llama405b", "llama-3.1-405b"),
    SHAPES("llama3.370b", "llama-3.3-70b"),
    SHAPES("llama3.170b", "llama-3.1-70b"),
    SHAPES("llama3170b", "llama-3.1-70b"),
    SHAPES("llama370b", "llama-3-70b"),
    SHAPES("llama3.18b", "llama-3.1-8b"),
    SHAPES("llama318b", "llama-3.1-8b"),
    SHAPES("llama38b", "llama-3-8b"),
    SHAPES("llama3.23b", "llama-3.2-3b"),
    SHAPES("llama3.21b", "llama-3.2-1b"),
    SHAPES("llama270b", "llama-2-70b"),
    SHAPES("llama234b", "llama-2-34b"),
    SHAPES("llama213b", "llama-2-13b"),
    SHAPES("llama27b", "llama-2-7b"),
    SHAPES("codellama34b", "llama-2-34b"),
    SHAPES("llama65b", "llama-65b"),
    SHAPES("llama33b", "llama-30b"),
    SHAPES("llama30b", "llama-30b"),
    SHAPES("llama13b", "llama-13b"),
    SHAPES("llama7b", "llama-7b"),
    SHAPES("gemma227b", "gemma-2-27b"),
    SHAPES("gemma29b", "gemma-2-9b"),
    SHAPES("gemma22b", "gemma-2-2b"),
    SHAPES("bloom176b", "bloom-176b"),
    SHAPES("bloom7b1", "bloom-7b1"),
    SHAPES("bloom7.1b", "bloom-7b1"),
    SHAPES("bloom3b", "bloom-3b"),
    SHAPES("bloom1b7", "bloom-1b7"),
    SHAPES("bloom1b1", "bloom-1b1"),
    SHAPES("bloom560m", "bloom-560m"),
    SHAPES("opt175b", "opt-175b"),
    SHAPES("opt66b", "opt-66b"),
    SHAPES("opt30b", "opt-30b"),
    SHAPES("opt13b", "opt-13b"),
    SHAPES("opt6.7b", "opt-6.7b"),
    SHAPES("opt2.7b", "opt-2.7b"),
    SHAPES("opt1.3b", "opt-1.3b"),
    SHAPES("opt125m", "opt-125m"),
    SHAPES("gptneox20b", "gpt-neox-20b"),
    SHAPES("neox20b", "gpt-neox-20b"),
    SHAPES("falcon180b", "falcon-180b"),
    SHAPES("falcon40b", "falcon-40b"),
    SHAPES("falcon7b", "falcon-7b"),
    SHAPES("internlm220b", "internlm2-20b"),
    SHAPES("internlm27b", "internlm2-7b"),
    SHAPES("internlm20b", "internlm-20b"),
    SHAPES("internlm7b", "internlm-7b"),
    SHAPES("palm540b", "palm-540b"),
    SHAPES("palm62b", "palm-62b"),
    SHAPES("palm8b", "palm-8b"),
    SHAPES("yi34b", "yi-34b"),
    SHAPES("yi6b", "yi-6b"),
    SHAPES("phi3mini", "phi-3-mini"),
    SHAPES("phi3medium", "phi-3-medium"),
    SHAPES("phi2", "phi-2"),
    SHAPES("olmo7b", "olmo-7b"),
    SHAPES("mtnlg", "mt-nlg-530b"),
    SHAPES("megatronturing", "mt-nlg-530b"),
    SHAPES("mpt7b", "mpt-7b"),
    SHAPES("mpt30b", "mpt-30b"),
    SHAPES("gpt2xl", "gpt2-xl"),
    SHAPES("gpt3175b", "gpt3-175b"),
    {.pattern = "bloom", .base = "bloom-176b", .four_hidden = true, .vocab = 250880},
    {.pattern = "opt", .base = "opt-66b", .four_hidden = true, .vocab = 50272},
    {.pattern = "mpt", .base = "mpt-7b", .four_hidden = true, .vocab = 50368},
    {.pattern = "neox", .base = "gpt-neox-20b", .four_hidden = true, .vocab = 50432},
    {.pattern = "palm", .base = "palm-540b", .four_hidden = true, .vocab = 256000},
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
