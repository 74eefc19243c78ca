/* Models by their names on the Hugging Face hub: the shipped list, the local cache, and
 * the index of a checkpoint beside a config. */
#include "costmodel/model/model_hub.h"

#include "base/paths.h"
#include "tests/unit/model_text.h"

#include <sys/stat.h>
#include <unistd.h>

#define COMMIT "0e9e39f249a16976918f6564b8830bc894c89659"

static char folder[] = "/tmp/meshsim-hub-XXXXXX";

/* A file of the test's folder; `text` NULL: a folder. */
static const char *put(const char *name, const char *text)
{
    const char *path = ms_arena_printf(test_cx()->arena, "%s/%s", folder, name);
    if (text == NULL) {
        ASSERT_INT(mkdir(path, 0700), 0);
        return path;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static int open_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return system(ms_arena_printf(test_cx()->arena, "rm -r '%s'", folder));
}

/* The environment of huggingface_hub; NULL: not set. */
static void set_environment(const char *cache, const char *hf_home, const char *home)
{
    const char *const names[] = {"HF_HUB_CACHE", "HF_HOME", "HOME"};
    const char *const values[] = {cache, hf_home, home};
    unsetenv("HUGGINGFACE_HUB_CACHE");
    unsetenv("XDG_CACHE_HOME");
    for (int i = 0; i < 3; i++) {
        unsetenv(names[i]);
        if (values[i] != NULL)
            setenv(names[i], values[i], 1);
    }
}

static double total_of(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return ms_model_params(model).total;
}

static void expect_unfound(const char *name, const char *message)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_INT(ms_model_load(cx, name, &model), MS_EINPUT);
    expect_message(cx, message);
}

/* ---- shipped names ---- */

static void words_with_one_slash_are_names(void **state)
{
    (void)state;
    static const char *const names[] = {"Qwen/Qwen3-8B", "01-ai/Yi-6B", "a/b.json.x",
                                        "deepseek-ai/DeepSeek-R1-0528", "_a/_b"};
    static const char *const paths[] = {
        "llama-3.1-8b", "/etc/passwd", "./a",  "../a", "a/b/c",      "a/b.json",
        "a/",           "/b",          "a/.b", "-/b",  "tests/data", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!ms_model_is_hub_name(names[i]))
            fail_msg("%s is a name", names[i]);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (ms_model_is_hub_name(paths[i]))
            fail_msg("%s is no name", paths[i]);
}

/* Published configs of tests/data/hf by their names: counts of both are equal. */
static void shipped_names_have_the_shapes_of_their_configs(void **state)
{
    (void)state;
    static const struct {
        const char *name, *config;
    } known[] = {
        {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
        {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
        {"meta-llama/llama-3.1-70b", "llama-3.1-70b"},
        {"meta-llama/Llama-3.1-405B", "llama-3.1-405b"},
        {"meta-llama/Llama-3.2-1B", "llama-3.2-1b"},
        {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
        {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
        {"Qwen/Qwen2.5-7B", "qwen2.5-7b"},
        {"Qwen/Qwen3-8B", "qwen3-8b"},
        {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"},
        {"Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"},
        {"Qwen/Qwen1.5-MoE-A2.7B", "qwen1.5-moe-a2.7b"},
        {"deepseek-ai/DeepSeek-V2-Lite", "deepseek-v2-lite"},
        {"moonshotai/Kimi-K2-Instruct", "kimi-k2"},
        {"google/gemma-2-9b", "gemma-2-9b"},
        {"google/gemma-3-1b-pt", "gemma-3-1b"},
        {"google/gemma-3-4b-it", "gemma-3-4b"},
        {"openai/gpt-oss-20b", "gpt-oss-20b"},
        {"openai-community/gpt2-xl", "gpt2-xl"},
        {"EleutherAI/gpt-neox-20b", "gpt-neox-20b"},
        {"EleutherAI/gpt-j-6b", "gpt-j-6b"},
        {"tiiuae/falcon-40b", "falcon-40b"},
        {"zai-org/GLM-4.5-Air", "glm-4.5-air"},
        {"databricks/dbrx-base", "dbrx-132b"},
        {"allenai/OLMo-2-1124-13B", "olmo-2-13b"},
        {"allenai/OLMoE-1B-7B-0924", "olmoe-1b-7b"},
        {"facebook/opt-125m", "opt-125m"},
        {"nvidia/Nemotron-H-8B-Base-8K", "nemotron-h-8b"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *path = ms_arena_printf(
            test_cx()->arena, "tests/data/hf/%s/config.json", known[i].config);
        double named = total_of(known[i].name), published = total_of(path);
        if (fabs(named - published) > 0.0)
            fail_msg("%s has %.0f parameters, its config %.0f", known[i].name, named,
                     published);
    }
}

/* Each listed model is shipped, and no name is of two. */
static void each_listed_name_finds_its_model(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc = NULL;
    ms_jval root, models;
    set_environment("/nonexistent", NULL, NULL);
    ASSERT_OK(ms_json_load(cx, ms_config_file(cx, "names", "hub"), &doc, &root), cx);
    assert_true(ms_json_member(cx, root, "models", &models));
    int num_names = 0;
    for (int i = 0; i < ms_json_length(models); i++) {
        const char *model, *name, *found;
        ms_jval list = ms_json_entry(cx, models, i, &model);
        const char *file = ms_config_file(cx, "models", model);
        if (file == NULL)
            fail_msg("no model %s is shipped", model);
        for (int k = 0; k < ms_json_length(list); k++, num_names++) {
            ASSERT_OK(ms_json_text(cx, ms_json_element(cx, list, k), &name), cx);
            assert_true(ms_model_is_hub_name(name));
            ASSERT_OK(ms_model_hub_find(cx, name, true, &found), cx);
            ASSERT_TEXT(found, file);
        }
    }
    ms_json_close(doc);
    assert_true(num_names >= 100);
}

/* ---- the cache ---- */

#define SMALL_CONFIG                                                                     \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, "      \
    "\"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"vocab_size\": 100, "        \
    "\"max_position_embeddings\": 128, \"tie_word_embeddings\": true%s}"
/* Counted by hand: 100*64 + 2*(4*64*64 + 3*64*128 + 2*64) + 64 */
#define SMALL_PARAMS 88640.0

static const char *small_config(const char *more)
{
    return ms_arena_printf(test_cx()->arena, SMALL_CONFIG, more);
}

/* A repository in the hub folder `hub` of the test's folder. */
static void put_repository(const char *hub, const char *name, const char *commit)
{
    ms_arena *arena = test_cx()->arena;
    const char *root = ms_arena_printf(arena, "%s/models--lab--%s", hub, name);
    put(root, NULL);
    put(ms_arena_printf(arena, "%s/refs", root), NULL);
    put(ms_arena_printf(arena, "%s/snapshots", root), NULL);
    put(ms_arena_printf(arena, "%s/snapshots/" COMMIT, root), NULL);
    if (commit != NULL)
        put(ms_arena_printf(arena, "%s/refs/main", root), commit);
    put(ms_arena_printf(arena, "%s/snapshots/" COMMIT "/config.json", root),
        small_config(""));
}

static const char *below(const char *name)
{
    return ms_arena_printf(test_cx()->arena, "%s/%s", folder, name);
}

static void the_cache_is_where_huggingface_hub_keeps_it(void **state)
{
    (void)state;
    put("first", NULL);
    put("second", NULL);
    put("second/hub", NULL);
    put("third", NULL);
    put("third/.cache", NULL);
    put("third/.cache/huggingface", NULL);
    put("third/.cache/huggingface/hub", NULL);
    put_repository("first", "one", COMMIT "\n");
    put_repository("second/hub", "two", COMMIT);
    put_repository("third/.cache/huggingface/hub", "three", COMMIT "\r\n");
    set_environment(below("first"), below("second"), below("third"));
    ASSERT_NEAR(total_of("lab/one"), SMALL_PARAMS, 0.0);
    expect_unfound("lab/two", "is not in Hugging Face's cache");
    set_environment("", below("second"), below("third"));
    ASSERT_NEAR(total_of("lab/two"), SMALL_PARAMS, 0.0);
    expect_unfound("lab/three", below("second/hub"));
    set_environment(NULL, NULL, below("third"));
    ASSERT_NEAR(total_of("lab/three"), SMALL_PARAMS, 0.0);
    expect_unfound("lab/one", "hf download lab/one config.json");
}

static void the_name_is_that_of_the_repository(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    set_environment(below("first"), NULL, NULL);
    ASSERT_OK(ms_model_load(cx, "lab/one", &model), cx);
    ASSERT_TEXT(model->name, "one");
}

static void broken_caches_say_what_is_missing(void **state)
{
    (void)state;
    set_environment(below("first"), NULL, NULL);
    put_repository("first", "no-ref", NULL);
    put_repository("first", "bad-ref", "../../other\n");
    put_repository("first", "empty-ref", "\n");
    put_repository("first", "long-ref", COMMIT COMMIT);
    put_repository("first", "other-ref", "aaaa");
    expect_unfound("lab/no-ref", "refs/main: error: cannot be read");
    expect_unfound("lab/bad-ref", "refs/main: error: this is no commit");
    expect_unfound("lab/empty-ref", "refs/main: error: this is no commit");
    expect_unfound("lab/long-ref", "refs/main: error: this is no commit");
    expect_unfound("lab/other-ref", "snapshots/aaaa/config.json");
}

static void without_a_home_only_shipped_names_are_known(void **state)
{
    (void)state;
    set_environment(NULL, NULL, NULL);
    ASSERT_NEAR(total_of("openai-community/gpt2"), 124439808.0, 0.0);
    expect_unfound("lab/one", "\"lab/one\" is no file");
    expect_unfound("mirror/Llama-3.1-8B", "of this name is \"llama-3.1-8b\"");
}

/* ---- the index of a checkpoint ---- */

/* The note about an index beside SMALL_CONFIG with further keys; NULL: none. */
static const char *index_note(const char *more, const char *index)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    put("model.safetensors.index.json", index);
    ASSERT_OK(ms_model_load(cx, put("config.json", small_config(more)), &model), cx);
    return model->checkpoint_note;
}

static void expect_note(const char *index, const char *part)
{
    const char *note = index_note(", \"dtype\": \"bfloat16\"", index);
    if (note == NULL || strstr(note, part) == NULL)
        fail_msg("no \"%s\" in \"%s\"", part, note == NULL ? "(null)" : note);
}

static void equal_counts_need_no_note(void **state)
{
    (void)state;
    static const char two_bytes[] = "{\"metadata\": {\"total_size\": 177280}}";
    assert_null(index_note(", \"dtype\": \"bfloat16\"", two_bytes));
    assert_null(index_note(", \"torch_dtype\": \"float16\"", two_bytes));
    assert_null(index_note(", \"dtype\": \"float32\"",
                           "{\"metadata\": {\"total_size\": 354560}}"));
    assert_null(index_note("", "{\"metadata\": {\"total_parameters\": 88640}}"));
    assert_null(index_note(", \"dtype\": \"bfloat16\"",
                           "{\"metadata\": {\"total_size\": 177440}}"));
}

static void other_counts_are_noted_with_both(void **state)
{
    (void)state;
    expect_note("{\"metadata\": {\"total_size\": 177500}}",
                "the checkpoint has 88750 parameters, the model 88640");
    expect_note("{\"metadata\": {\"total_size\": 200000}}", "as of images");
    expect_note("{\"metadata\": {\"total_size\": 354560}}", "another type");
    expect_note("{\"metadata\": {\"total_size\": 88640}}", "another type");
    expect_note("{\"metadata\": {\"total_size\": 1000000}}", "of another model");
}

static void what_does_not_tell_is_not_compared(void **state)
{
    (void)state;
    static const char other[] = "{\"metadata\": {\"total_size\": 200000}}";
    assert_null(index_note("", other));
    assert_null(index_note(", \"dtype\": \"float8_e4m3fn\"", other));
    assert_null(
        index_note(", \"dtype\": \"bfloat16\", \"quantization_config\": {}", other));
    assert_null(index_note(", \"dtype\": \"bfloat16\"", "{\"metadata\": {}}"));
    assert_null(index_note(", \"dtype\": \"bfloat16\"", "{\"weight_map\": {}}"));
}

static void an_index_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *index, *message;
    } cases[] = {
        {"{\"metadata\": {\"total_size\": \"177280\"}}", "index.json:1:29"},
        {"{\"metadata\": {\"total_size\": -1}}", "index.json:1:29"},
        {"[]", "the index of a checkpoint is an object"},
        {"{\"metadata\": ", "index.json:1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("model.safetensors.index.json", cases[i].index);
        expect_unfound(put("config.json", small_config(", \"dtype\": \"bfloat16\"")),
                       cases[i].message);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_with_one_slash_are_names),
        cmocka_unit_test(shipped_names_have_the_shapes_of_their_configs),
        cmocka_unit_test(each_listed_name_finds_its_model),
        cmocka_unit_test(the_cache_is_where_huggingface_hub_keeps_it),
        cmocka_unit_test(the_name_is_that_of_the_repository),
        cmocka_unit_test(broken_caches_say_what_is_missing),
        cmocka_unit_test(without_a_home_only_shipped_names_are_known),
        cmocka_unit_test(equal_counts_need_no_note),
        cmocka_unit_test(other_counts_are_noted_with_both),
        cmocka_unit_test(what_does_not_tell_is_not_compared),
        cmocka_unit_test(an_index_that_cannot_be_read_is_an_error),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
