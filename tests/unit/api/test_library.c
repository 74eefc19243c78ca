/* The library answers what the program answers, in four threads at once, and without
 * memory. */
#include "tests/test.h"

#include "api/meshsim.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

typedef enum question {
    MODEL,
    CLUSTER,
    PLAN, /* predict, whose answer holds the plan */
    PREDICT,
    EXPLAIN,
    EXPORT,
    SIMULATE,
    SEARCH
} question;

/* A question to the library, and the arguments of the program that ask the same. */
typedef struct asked {
    question question;
    const char *plan;    /* options of the plan; name of a model or cluster */
    const char *options; /* other options */
    const char *arguments;
    meshsim_status status;
} asked;

#define PLAN_8B  "{\"model\": \"8b\", \"gpus\": 64, \"tp\": 4, \"pp\": 2, \"zero\": 1}"
#define FLAGS_8B "--model 8b --gpus 64 --tp 4 --pp 2 --zero 1"

/* The first cases are those that four threads ask at once; a search comes last of them. */
#define NUM_OF_THREADS 4
#define A_SEARCH       (NUM_OF_THREADS - 1)

static const asked cases[] = {
    {PREDICT, PLAN_8B, NULL, "predict " FLAGS_8B, MESHSIM_OK},
    {EXPLAIN, PLAN_8B, "{\"collectives\": true, \"part\": \"layer\"}",
     "explain " FLAGS_8B " --collectives --part layer", MESHSIM_OK},
    {SIMULATE, PLAN_8B, "{\"slow\": [\"rank=5:1.3\"], \"detail\": \"action\"}",
     "simulate " FLAGS_8B " --slow rank=5:1.3 --detail action", MESHSIM_OK},
    {SEARCH, NULL, "{\"model\": \"8b\", \"gpus\": 16, \"fix\": [\"pp=1\", \"tp=2\"]}",
     "search --threads 1 --model 8b --gpus 16 --fix pp=1 --fix tp=2", MESHSIM_OK},
    {MODEL, "8b", NULL, "model 8b", MESHSIM_OK},
    {MODEL, "mixtral-8x7b", "{\"seq\": \"4k\"}", "model mixtral-8x7b --seq 4k",
     MESHSIM_OK},
    {CLUSTER, "hgx-h100", NULL, "cluster hgx-h100", MESHSIM_OK},
    {PREDICT, PLAN_8B, "{\"engine\": \"event\"}", "predict " FLAGS_8B " --engine event",
     MESHSIM_OK},
    {PREDICT, PLAN_8B, "{\"tokens\": \"1T\", \"price\": 2.5}",
     "predict " FLAGS_8B " --tokens 1T --price 2.5", MESHSIM_OK},
    {PREDICT, "{\"model\": \"70b\", \"gpus\": 8}", NULL, "predict --model 70b --gpus 8",
     MESHSIM_ENOFIT},
    {PREDICT, PLAN_8B, "{\"ignore-rules\": true, \"advise\": false}",
     "predict " FLAGS_8B " --ignore-rules", MESHSIM_OK},
    {EXPLAIN, PLAN_8B, NULL, "explain " FLAGS_8B, MESHSIM_OK},
    {EXPORT, PLAN_8B, "{\"format\": \"megatron\", \"launcher\": \"srun\"}",
     "export " FLAGS_8B " --format megatron --launcher srun", MESHSIM_OK},
    {SIMULATE, PLAN_8B, "{\"engine\": \"replay\", \"jitter\": 0.05, \"seed\": 3}",
     "simulate " FLAGS_8B " --engine replay --jitter 0.05 --seed 3", MESHSIM_OK},
    {SEARCH, NULL,
     "{\"model\": \"8b\", \"gpus\": 16, \"limit\": [\"pp=1\", \"tp<=2\"], "
     "\"stack\": [\"megatron\", \"torchtitan\"]}",
     "search --threads 1 --model 8b --gpus 16 --limit pp=1,'tp<=2' "
     "--stack megatron,torchtitan",
     MESHSIM_OK},
    {SEARCH, NULL, "{\"model\": \"70b\", \"gpus\": 8, \"limit\": \"tp<=2\"}",
     "search --threads 1 --model 70b --gpus 8 --limit 'tp<=2'", MESHSIM_ENOFIT},
};
#define NUM_CASES ((int)(sizeof cases / sizeof *cases))

static meshsim_status ask_plan(meshsim_context *context, const asked *a, char **json)
{
    meshsim_plan *plan;
    *json = NULL;
    meshsim_status status = meshsim_plan_open(context, NULL, a->plan, &plan);
    if (status != MESHSIM_OK)
        return status;
    if (a->question == PREDICT)
        status = meshsim_predict(context, plan, a->options, json);
    else if (a->question == EXPLAIN)
        status = meshsim_explain(context, plan, a->options, json);
    else if (a->question == EXPORT)
        status = meshsim_export(context, plan, a->options, json);
    else
        status = meshsim_simulate(context, plan, a->options, json);
    meshsim_plan_close(plan);
    return status;
}

static meshsim_status ask(meshsim_context *context, const asked *a, char **json)
{
    if (a->question == MODEL)
        return meshsim_model(context, a->plan, a->options, json);
    if (a->question == CLUSTER)
        return meshsim_cluster(context, a->plan, json);
    if (a->question == SEARCH)
        return meshsim_search(context, NULL, a->options, NULL, NULL, json);
    return ask_plan(context, a, json);
}

/* Takes out the lines that hold the time of a search. */
static char *without_time(char *text)
{
    char *to = text;
    for (char *line = text, *end; *line != '\0'; line = end) {
        end = strchr(line, '\n');
        end = end == NULL ? line + strlen(line) : end + 1;
        char *key = strstr(line, "\"elapsed_s\"");
        size_t length = (size_t)(end - line);
        if (key == NULL || key > end) {
            memmove(to, line, length);
            to += length;
        }
    }
    *to = '\0';
    return text;
}

static char *run_program(const char *arguments)
{
    const char *program = getenv("MESHSIM");
    char command[1024];
    size_t length = 0, capacity = (size_t)1 << 22;
    snprintf(command, sizeof command, "%s %s --json 2>/dev/null",
             program == NULL ? "build/opt/meshsim" : program, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    char *text = calloc(1, capacity);
    length = fread(text, 1, capacity - 1, pipe);
    assert_true(length < capacity - 1);
    (void)pclose(pipe);
    return text;
}

static void answers_are_those_of_the_program(void **state)
{
    (void)state;
    meshsim_context *context;
    assert_int_equal(meshsim_open(&context), MESHSIM_OK);
    for (int i = 0; i < TEST_CASES(NUM_CASES, 12); i++) {
        char *json, *want = run_program(cases[i].arguments);
        meshsim_status status = ask(context, &cases[i], &json);
        if (status != cases[i].status)
            fail_msg("%s: status %d: %s", cases[i].arguments, (int)status,
                     meshsim_error(context));
        assert_non_null(json);
        if (strcmp(without_time(json), without_time(want)) != 0)
            fail_msg("%s: other JSON than the program's", cases[i].arguments);
        meshsim_free(json);
        free(want);
    }
    meshsim_close(context);
}

/* ---- threads ---- */

typedef struct caller {
    pthread_t thread;
    int first;
    char *json[NUM_OF_THREADS];
    meshsim_status status[NUM_OF_THREADS];
} caller;

static void *call_all(void *payload)
{
    caller *c = payload;
    meshsim_context *context;
    if (meshsim_open(&context) != MESHSIM_OK)
        return NULL;
    (void)meshsim_set_threads(context, 2);
    for (int i = 0; i < NUM_OF_THREADS; i++) {
        int at = (c->first + i) % NUM_OF_THREADS;
        c->status[at] = ask(context, &cases[at], &c->json[at]);
    }
    meshsim_close(context);
    return NULL;
}

static void contexts_work_side_by_side(void **state)
{
    (void)state;
    caller callers[4] = {0};
    for (int i = 0; i < 4; i++) {
        callers[i].first = i;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_all, &callers[i]),
                         0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(callers[i].thread, NULL);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < NUM_OF_THREADS; k++) {
            assert_int_equal(callers[i].status[k], cases[k].status);
            assert_non_null(callers[i].json[k]);
            if (k != A_SEARCH) /* searches count what threads look at */
                assert_string_equal(callers[i].json[k], callers[0].json[k]);
        }
    }
    for (int i = 0; i < 4 * NUM_OF_THREADS; i++)
        meshsim_free(callers[i / NUM_OF_THREADS].json[i % NUM_OF_THREADS]);
}

/* ---- plans, errors, cancelling ---- */

static void plans_go_round(void **state)
{
    (void)state;
    meshsim_context *context;
    meshsim_plan *plan, *again;
    char *json, *json_again;
    assert_int_equal(meshsim_open(&context), MESHSIM_OK);
    assert_int_equal(meshsim_plan_open(context, NULL, PLAN_8B, &plan), MESHSIM_OK);
    assert_non_null(strstr(meshsim_notes(context), "--schedule 1f1b"));
    assert_int_equal(meshsim_plan_json(context, plan, &json), MESHSIM_OK);
    assert_int_equal(meshsim_plan_open(context, json, NULL, &again), MESHSIM_OK);
    assert_int_equal(meshsim_plan_json(context, again, &json_again), MESHSIM_OK);
    assert_string_equal(json, json_again);
    meshsim_plan_close(again);
    meshsim_free(json_again);
    assert_int_equal(meshsim_plan_open(context, json, "{\"tp\": 8}", &again), MESHSIM_OK);
    assert_int_equal(meshsim_plan_json(context, again, &json_again), MESHSIM_OK);
    assert_string_not_equal(json, json_again);
    meshsim_plan_close(again);
    meshsim_plan_close(plan);
    meshsim_free(json_again);
    meshsim_free(json);
    meshsim_close(context);
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *plan, *options, *says;
    } mistakes[] = {
        {NULL, "{\"model\": \"8b\", \"tpp\": 4}", "--tpp"},
        {NULL, "{\"gpus\": 64}", "no model is given"},
        {NULL, "{\"model\": \"9x\"}", "9x"},
        {NULL, "[1]", "must be an object"},
        {NULL, "{\"model\": {}}", "must be a text"},
        {NULL, "{", "options"},
        {"{\"schema\": 1}", NULL, "plan"},
    };
    (void)state;
    meshsim_context *context;
    meshsim_plan *plan;
    char *json;
    assert_int_equal(meshsim_open(&context), MESHSIM_OK);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        meshsim_status status =
            meshsim_plan_open(context, mistakes[i].plan, mistakes[i].options, &plan);
        if (status == MESHSIM_OK) /* the name of a model is looked up when it is priced */
            status = meshsim_predict(context, plan, NULL, &json);
        assert_int_equal(status, MESHSIM_EINPUT);
        if (strstr(meshsim_error(context), mistakes[i].says) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", meshsim_error(context), mistakes[i].says);
        meshsim_plan_close(plan);
    }
    assert_int_equal(
        meshsim_search(context, NULL, "{\"save_plan\": \"x\"}", NULL, NULL, &json),
        MESHSIM_EINPUT);
    assert_null(json);
    assert_int_equal(meshsim_names(context, "verbs", &json), MESHSIM_EINPUT);
    assert_int_equal(meshsim_names(context, "models", &json), MESHSIM_OK);
    assert_string_equal(meshsim_error(context), "");
    assert_non_null(strstr(json, "\"llama-3.1-8b\""));
    meshsim_free(json);
    assert_int_equal(meshsim_set_threads(context, 0), MESHSIM_EINPUT);
    assert_int_equal(meshsim_set_data_folder(context, "/no/folder"), MESHSIM_EINPUT);
    assert_int_equal(meshsim_set_data_folder(context, "tests/data"), MESHSIM_OK);
    assert_int_equal(meshsim_set_data_folder(context, NULL), MESHSIM_OK);
    meshsim_close(context);
}

static void a_cancelled_search_says_so(void **state)
{
    (void)state;
    meshsim_context *context;
    char *json;
    const char *options = "{\"model\": \"70b\", \"gpus\": 512}";
    assert_int_equal(meshsim_open(&context), MESHSIM_OK);
    meshsim_cancel(context);
    meshsim_status status = meshsim_search(context, NULL, options, NULL, NULL, &json);
    assert_int_equal(status, MESHSIM_EINTERRUPTED);
    assert_non_null(json);
    meshsim_free(json);
    assert_int_equal(meshsim_cluster(context, "hgx-h100", &json), MESHSIM_OK);
    meshsim_free(json);
    meshsim_close(context);
}

/* ---- memory ---- */

static rlim_t bytes_mapped(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Limits the address space to 0 to 64 MiB more than there is: too little for the reserve,
 * for the work, and enough. */
static void exhausted_memory_is_a_status(void **state)
{
    (void)state;
    struct rlimit before, limit;
    meshsim_context *context;
    int num_exhausted = 0;
    if (TEST_CASES(0, 1)) /* sanitizers map more than any limit */
        skip();
    assert_int_equal(meshsim_open(&context), MESHSIM_OK);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    for (rlim_t mib = 0; mib <= 64; mib += 2) {
        char *json;
        limit = before;
        limit.rlim_cur = bytes_mapped() + (mib << 20);
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        meshsim_status status = ask(context, &cases[A_SEARCH], &json);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        if (status == MESHSIM_ENOMEM) {
            num_exhausted++;
            assert_null(json);
            assert_non_null(strstr(meshsim_error(context), "memory"));
        } else {
            assert_int_equal(status, MESHSIM_OK);
        }
        meshsim_free(json);
    }
    assert_true(num_exhausted > 0);
    meshsim_close(context);
}

/* A text that even the reserve cannot hold makes the call leave its work. */
static void a_call_leaves_work_that_is_too_large(void **state)
{
    (void)state;
    const size_t length = (size_t)60 << 20;
    struct rlimit before, limit;
    meshsim_context *context;
    meshsim_plan *plan;
    char *json;
    if (TEST_CASES(0, 1))
        skip();
    char *options = malloc(length + 1);
    assert_non_null(options);
    memset(options, ' ', length);
    memcpy(options, "{\"model\": \"8b\"", 14);
    memcpy(options + length - 1, "}", 2);
    assert_int_equal(meshsim_open(&context), MESHSIM_OK);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = bytes_mapped() + ((rlim_t)48 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    meshsim_status status = meshsim_plan_open(context, NULL, options, &plan);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(status, MESHSIM_ENOMEM);
    assert_null(plan);
    free(options);
    status = meshsim_plan_open(context, NULL, PLAN_8B, &plan);
    assert_int_equal(status, MESHSIM_OK);
    assert_int_equal(meshsim_predict(context, plan, NULL, &json), MESHSIM_OK);
    meshsim_free(json);
    meshsim_plan_close(plan);
    meshsim_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exhausted_memory_is_a_status), /* before threads have heaps */
        cmocka_unit_test(a_call_leaves_work_that_is_too_large),
        cmocka_unit_test(answers_are_those_of_the_program),
        cmocka_unit_test(contexts_work_side_by_side),
        cmocka_unit_test(plans_go_round),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_cancelled_search_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
