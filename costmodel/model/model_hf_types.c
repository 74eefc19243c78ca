/* Hugging Face model types that are no families: other names, configs of several models
 * with a language model in a part, and types with layers that ms_model cannot express. */
#include "costmodel/model/model_hf_priv.h"

#include <stddef.h>

const ms_hf_alias ms_hf_aliases[] = {
    {"gemma3", "gemma3_text", "text_config", false},
    {"llama4", "llama4_text", "text_config", false},
    {"qwen2_vl", "qwen2_vl_text", "text_config", false},
    {"qwen2_5_vl", "qwen2_vl_text", "text_config", false},
    {"qwen2_5_vl_text", "qwen2_vl_text", NULL, false},
    {"qwen3_vl", "qwen3_vl_text", "text_config", true},
    {"qwen3_vl_moe", "qwen3_vl_moe_text", "text_config", true},
    {"qwen2_5_omni", "qwen2_5_omni_text", "thinker_config.text_config", false},
    {"qwen2_5_omni_thinker", "qwen2_5_omni_text", "text_config", false},
    {"qwen3_omni_moe", "qwen3_omni_moe_text", "thinker_config.text_config", false},
    {"qwen3_omni_moe_thinker", "qwen3_omni_moe_text", "text_config", false},
    {"mistral3", "mistral", "text_config", false},
    {"llava", "llama", "text_config", false},
    {"llava_next", "llama", "text_config", false},
    {"kimi_k2", "deepseek_v3", NULL, false},
    {"kimi_vl", "deepseek_v3", "text_config", false},
    {"deepseek_vl_v2", "deepseek_v2", "language_config", false},
    {0},
};

#define DELTA_NET "gated delta net"
#define SPARSE_MLA                                                                       \
    "sparse attention, whose keys an indexer chooses (DeepSeek-V3.2 report, section 2.1)"

const ms_hf_refusal ms_hf_refusals[] = {
    {"qwen3_next", DELTA_NET, "qwen3_moe"},
    {"qwen3_5", DELTA_NET, "qwen3"},
    {"qwen3_5_text", DELTA_NET, "qwen3"},
    {"qwen3_5_moe", DELTA_NET, "qwen3_moe"},
    {"qwen3_5_moe_text", DELTA_NET, "qwen3_moe"},
    {"gemma3n", "AltUp, Laurel and embeddings for each layer", "gemma3_text"},
    {"gemma3n_text", "AltUp, Laurel and embeddings for each layer", "gemma3_text"},
    {"jamba", "Mamba-1 mixer", "mixtral"},
    {"mamba", "Mamba-1 mixer", "mamba2"},
    {"minimax", "lightning attention", "mixtral"},
    {"lfm2", "short convolution", "qwen3"},
    {"lfm2_moe", "short convolution", "qwen3_moe"},
    {"falcon_h1", "attention and Mamba-2 side by side", "bamba"},
    {"deepseek_v32", SPARSE_MLA, "deepseek_v3"},
    {"glm_moe_dsa", SPARSE_MLA, "deepseek_v3"},
    {0},
};
