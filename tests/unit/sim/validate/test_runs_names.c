/* Names of models in published runs, and what happens when columns state other shapes
 * than those of the named model. */
#include "costmodel/model/model.h"
#include "sim/validate/pubrun_priv.h"

#include "tests/unit/run_rows.h"

static void models_are_known_whatever_their_spelling(void **state)
{
    (void)state;
    static const struct {
        /* `base`: the known model that `name` stands for; NULL: `name` is unknown */
        const char *name, *base;
    } known[] = {
        {"GPT-3 1.3B", "gpt3-1.3b"},
        {"GPT3-175B", "gpt3-175b"},
        {"GPT 175B", "gpt3-175b"},
        {"GPT-22B", "megatron-gpt-22b"},
        {"GPT 530B", "mt-nlg-530b"},
        {"GPT-2 1.5B", "gpt2-xl"},
        {"GPT-J 6B", "gpt-j-6b"},
        {"GPT-Neo 2.7B", "gpt-neo-2.7b"},
        {"GPT-NeoX-20B", "gpt-neox-20b"},
        {"Pythia 6.9B", "pythia-6.9b"},
        {"LLaMA-1-7B", "llama-7b"},
        {"LLaMA-v2-13B", "llama-2-13b"},
        {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
        {"Meta-Llama-3.1-8B", "llama-3.1-8b"},
        {"Llama 3 8B", "llama-3-8b"},
        {"Llama-4-Maverick-17B-128E", "llama-4-maverick"},
        {"Llama4 Maverick 400B-A17B", "llama-4-maverick"},
        {"TinyLlama 1.1B", "tinyllama-1.1b"},
        {"Vicuna-13B", "llama-13b"},
        {"Mistral NeMo 12B", "mistral-nemo-12b"},
        {"Mixtral-8x22B", "mixtral-8x22b"},
        {"DeepSeek-R1-Distill-Llama-70B", "llama-3.3-70b"},
        {"DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b"},
        {"DeepSeek-R1", "deepseek-v3"},
        {"DeepSeek-Coder-V2-Lite", "deepseek-v2-lite"},
        {"DeepSeek-MoE 16B", "deepseek-moe-16b"},
        {"Moonlight-16B-A3B", "moonlight-16b-a3b"},
        {"Qwen 72B", "qwen-72b"},
        {"Qwen1.5-MoE-A2.7B", "qwen1.5-moe-a2.7b"},
        {"Qwen2-1.5B", "qwen2.5-1.5b"},
        {"Qwen2.5-Coder-32B", "qwen2.5-32b"},
        {"Qwen3-Coder-480B-A35B", "qwen3-coder-480b-a35b"},
        {"GLM-4.5-Air", "glm-4.5-air"},
        {"GLM 4.5 355B-A32B", "glm-4.5"},
        {"GLM-4.5V", "glm-4.5-air"},
        {"Llama 405B", "llama-3.1-405b"},
        {"Command R7B", NULL},
        {"Mistral Large 3", NULL},
        {"DeepSeek-V3.2", NULL},
        {"Phi-4 multimodal", NULL},
        {"Gemma 2 9B", "gemma-2-9b"},
        {"Gemma 3 27B", "gemma-3-27b"},
        {"Gemma 7B", "gemma-7b"},
        {"Phi-3-mini-4k-instruct", "phi-3-mini"},
        {"Phi-4", "phi-4"},
        {"OLMo-2-1124-13B", "olmo-2-13b"},
        {"OLMoE 1B-7B", "olmoe-1b-7b"},
        {"MPT-3b", "mpt-3b"},
        {"BLOOM 7B", "bloom-7b1"},
        {"OPT-6.7B", "opt-6.7b"},
        {"Chinchilla 70B", "chinchilla-70b"},
        {"Command R+ 104B", "command-r-plus-104b"},
        {"Snowflake Arctic", "snowflake-arctic"},
        {"Yi 1.5 34B", "yi-34b"},
        {"Baichuan2 13B", "baichuan2-13b"},
        {"StarCoder2-7B", "starcoder2-7b"},
        {"Nemotron-22B", "nemotron-22b"},
        {"SmolLM 360M", "smollm2-360m"},
        {"SmolLM3 3B", "smollm3-3b"},
        {"Llama 70B", NULL}, /* could be Llama 2 or 3 */
        {"dense 7B", NULL},
    };
    ms_ctx *cx = test_cx();
    const ms_name_tables *names;
    ASSERT_OK(ms_name_tables_load(cx, &names), cx);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ms_known_model *model = ms_known_model_find(names, known[i].name, true);
        ASSERT_TEXT(model->model, known[i].base);
    }
}

#define ROW(name, shapes)                                                                \
    "a,Test,2025-01," name "," shapes                                                    \
    ",2048,1,16,8,H100,,,8,1,0,,1,,1,,3,none,bf16,,torchtitan,,1.5,\n"
#define SHAPES_8B "32,4096,32,8,128,14336,1,128256,0,,,,"

/* When the columns state other shapes than the model of that name has, the columns
 * count. */
static void columns_hold_before_the_name(void **state)
{
    (void)state;
    const ms_pubrun named = *row_of(ROW("DeepSeek-V3", SHAPES_8B));
    const ms_pubrun nameless = *row_of(ROW("X", SHAPES_8B));
    const ms_pubrun dbrx = *row_of(ROW("DBRX tiny", SHAPES_8B));
    const ms_pubrun maverick = *row_of(ROW("Llama 4 dense", SHAPES_8B));
    const ms_pubrun *const runs[] = {&named, &dbrx, &maverick};
    ASSERT_TEXT(nameless.reason, NULL);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        ASSERT_TEXT(runs[i]->reason, NULL);
        ASSERT_INT(runs[i]->model->moe.num_experts, 0);
        ASSERT_INT(runs[i]->model->attention, nameless.model->attention);
        ASSERT_INT(runs[i]->model->ffn_hidden, 14336);
    }
}

/* A model with the width and heads of the named one but fewer layers is the named
 * model, truncated. */
static void a_name_tells_what_columns_cannot(void **state)
{
    (void)state;
    const ms_pubrun run =
        *row_of(ROW("DeepSeek-V3 (4 layers)", "4,7168,128,128,,18432,1,129280,0,,,,"));
    ASSERT_TEXT(run.reason, NULL);
    ASSERT_INT(run.model->moe.num_experts, 256);
    ASSERT_INT(run.model->attention, MS_ATTENTION_MLA);
    ASSERT_INT(run.model->num_layers, 4);
}

static void experts_need_as_many_as_a_token_takes(void **state)
{
    (void)state;
    reason_is(ROW("X", "32,4096,32,8,128,14336,1,128256,0,8,,,"),
              "incomplete: experts of a token");
    const ms_pubrun run = *row_of(ROW("X", "32,4096,32,8,128,14336,1,128256,0,8,2,,"));
    ASSERT_TEXT(run.reason, NULL);
    ASSERT_INT(run.model->moe.ffn_hidden, 14336);
    reason_is(ROW("T5-11B", ",,,,,,,,,,,,"),
              "incomplete: architecture, with an encoder beside the decoder");
    reason_is(ROW("GPT-530", ",,,,,,,,,,,,"), "incomplete: architecture");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_known_whatever_their_spelling),
        cmocka_unit_test(columns_hold_before_the_name),
        cmocka_unit_test(a_name_tells_what_columns_cannot),
        cmocka_unit_test(experts_need_as_many_as_a_token_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
