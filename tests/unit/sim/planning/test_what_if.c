/* Sensitivity studies against cluster files changed by hand, and values reckoned apart. */
#include "sim/planning/what_if.h"
#include "tests/test.h"

#define CHANGED_FILE "test_what_if.cluster.json"
#define MAX_TEXT     8192

typedef struct studied {
    ms_plan_limits limits;
    ms_campaign_question campaign;
    ms_what_if_question question;
    ms_what_if w;
} studied;

/* A job of llama-3.2-1b on 16 GPUs of hgx-h100, with a campaign, not yet answered. */
static studied *job(ms_ctx *cx)
{
    studied *s = MS_NEW(cx->arena, studied);
    ms_plan base = ms_plan_default(16);
    base.model = "llama-3.2-1b";
    base.cluster = "hgx-h100";
    base.stack = "megatron";
    base.sequence_length = 4096;
    base.global_batch = 64;
    s->campaign = ms_campaign_question_empty();
    s->campaign.given.tokens = 1e12;
    s->campaign.given.gpu_hour_price = 2.5;
    s->question = (ms_what_if_question){.job = {.base = base, .limits = &s->limits},
                                        .change_frac = 0.2,
                                        .gpu_hour_price = 2.5,
                                        .num_threads = 2};
    return s;
}

static const ms_what_if_number *number_of(const ms_what_if *w, const char *key)
{
    for (int i = 0; i < w->num_numbers; i++)
        if (strcmp(w->numbers[i].key, key) == 0)
            return &w->numbers[i];
    fail_msg("no number %s", key);
    return NULL;
}

static const ms_what_if_hardware *hardware_of(const ms_what_if *w, const char *name)
{
    for (int i = 0; i < w->num_hardware; i++)
        if (strcmp(w->hardware[i].name, name) == 0)
            return &w->hardware[i];
    fail_msg("no hardware %s", name);
    return NULL;
}

/* Writes hgx-h100 with one text in place of another, once. */
static void write_changed(const char *from, const char *to)
{
    char text[MAX_TEXT];
    FILE *in = fopen("configs/clusters/hgx-h100.json", "r");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    char *at = strstr(text, from);
    assert_non_null(at);
    FILE *out = fopen(CHANGED_FILE, "w");
    assert_non_null(out);
    fprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    fclose(out);
}

/* The step of a plan, and that of the fastest plan, on the changed cluster. */
static void steps_with_file(ms_ctx *cx, const studied *s, double *kept_s, double *best_s)
{
    ms_best_question question = s->question.job;
    question.base.cluster = CHANGED_FILE;
    ms_plan kept = s->w.kept.plan;
    kept.cluster = CHANGED_FILE;
    ms_best_plan again, best;
    ASSERT_OK(ms_best_plan_again(cx, &question, &kept, &again), cx);
    ms_search_options options = {.num_threads = 1};
    ASSERT_OK(ms_best_plan_find(cx, &question, &options, &best), cx);
    *kept_s = again.prediction.step_s;
    *best_s = fmin(best.prediction.step_s, *kept_s);
    remove(CHANGED_FILE);
}

static void a_number_is_as_in_a_changed_file(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    const ms_what_if_number *hbm = number_of(&s->w, "device.hbm");
    const struct {
        const char *to;
        ms_what_if_side side;
    } cases[] = {{"\"hbm\": \"2.68 TB/s\"", MS_WHAT_IF_LOW},
                 {"\"hbm\": \"4.02 TB/s\"", MS_WHAT_IF_HIGH}};
    for (int i = 0; i < 2; i++) {
        const ms_what_if_outcome *outcome = &hbm->sides[cases[i].side];
        double kept_s, best_s;
        write_changed("\"hbm\": \"3.35 TB/s\"", cases[i].to);
        steps_with_file(cx, s, &kept_s, &best_s);
        assert_true(outcome->searched);
        ASSERT_NEAR(outcome->kept.prediction.step_s, kept_s, 1e-12);
        ASSERT_NEAR(outcome->best.prediction.step_s, best_s, 1e-12);
        assert_true(kept_s != s->w.kept.prediction.step_s);
    }
    double low_s = hbm->sides[0].kept.prediction.step_s,
           high_s = hbm->sides[1].kept.prediction.step_s;
    ASSERT_NEAR(hbm->swing_frac, (low_s - high_s) / s->w.kept.prediction.step_s, 1e-12);
}

#define MIXED_FILE "test_what_if.mixed.json"

/* Writes a cluster of a node like `h100` and one of A100. */
static void write_mixed(const char *h100)
{
    FILE *out = fopen(MIXED_FILE, "w");
    assert_non_null(out);
    fprintf(out,
            "{\"name\": \"two\", \"source\": \"test\", \"network\": \"infiniband\",\n"
            "\"device_groups\": [{\"cluster\": \"%s\", \"nodes\": 1},\n"
            "{\"cluster\": \"hgx-a100-80g\", \"nodes\": 1}],\n"
            "\"levels\": [{\"name\": \"between\", \"bandwidth\": \"25 GB/s\",\n"
            "\"latency\": \"2 us\", \"nics_per_gpu\": 1}]}\n",
            h100);
    fclose(out);
}

/* A number of one group changes the file of that group alone; hardware changes all. */
static void a_group_of_a_mixed_cluster_changes_alone(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    s->question.job.base.cluster = MIXED_FILE;
    write_mixed("hgx-h100");
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    ASSERT_TEXT(s->w.profile, "h100-sxm + a100-sxm");
    const ms_what_if_number *hbm[2] = {NULL, NULL}, *between = NULL;
    for (int i = 0; i < s->w.num_numbers; i++) {
        const ms_what_if_number *number = &s->w.numbers[i];
        if (strcmp(number->key, "device.hbm") == 0)
            hbm[strcmp(number->file, "cluster hgx-h100") == 0] = number;
        if (strcmp(number->key, "levels.between.bandwidth") == 0)
            between = number;
    }
    assert_non_null(hbm[0]);
    assert_non_null(hbm[1]);
    assert_non_null(between);
    ASSERT_TEXT(hbm[0]->file, "cluster hgx-a100-80g");
    ASSERT_TEXT(between->file, "cluster two");
    ASSERT_NEAR(between->value, 25e9, 1e-12);
    write_changed("\"hbm\": \"3.35 TB/s\"", "\"hbm\": \"2.68 TB/s\"");
    write_mixed(CHANGED_FILE);
    ms_best_plan again;
    ASSERT_OK(ms_best_plan_again(cx, &s->question.job, &s->w.kept.plan, &again), cx);
    remove(CHANGED_FILE);
    remove(MIXED_FILE);
    ASSERT_NEAR(hbm[1]->sides[MS_WHAT_IF_LOW].kept.prediction.step_s,
                again.prediction.step_s, 1e-12);
    assert_true(again.prediction.step_s > s->w.kept.prediction.step_s);
    const ms_what_if_hardware *memory = hardware_of(&s->w, "HBM capacity x1.5");
    ASSERT_INT(memory->num_edits, 2);
    ASSERT_TEXT(memory->edits[1].key, "cluster hgx-a100-80g device.memory");
    ASSERT_INT(hardware_of(&s->w, "network x2")->num_edits, 4);
}

static void a_domain_is_as_in_a_changed_file(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    const ms_what_if_hardware *domain = hardware_of(&s->w, "fast domain of 72 GPUs");
    double kept_s, best_s;
    write_changed("\"gpus_per_domain\": 8", "\"gpus_per_domain\": 72");
    char text[MAX_TEXT];
    FILE *file = fopen(CHANGED_FILE, "r+");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    char *leaf = strstr(text, "\"gpus_per_domain\": 256");
    assert_non_null(leaf);
    memcpy(leaf, "\"gpus_per_domain\": 216", strlen("\"gpus_per_domain\": 216"));
    rewind(file);
    fputs(text, file);
    fclose(file);
    steps_with_file(cx, s, &kept_s, &best_s);
    assert_null(domain->reason);
    ASSERT_INT(domain->num_edits, 2);
    ASSERT_NEAR(domain->outcome.kept.prediction.step_s, kept_s, 1e-12);
    ASSERT_NEAR(domain->outcome.best.prediction.step_s, best_s, 1e-12);
    ASSERT_NEAR(domain->gain_frac, s->w.best.prediction.step_s / best_s - 1.0, 1e-12);
    ASSERT_TEXT(hardware_of(&s->w, "fast domain of 8 GPUs")->reason, "that is its size");
    ASSERT_TEXT(hardware_of(&s->w, "no oversubscription")->reason,
                "no level is oversubscribed");
}

static void values_are_reckoned_by_hand(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    const ms_what_if_value *gpu = &s->w.values[MS_WHAT_IF_GPU];
    double base_s = s->w.best.prediction.step_s, faster_s = base_s;
    ms_search_options options = {.num_threads = 1};
    long gpus = 16;
    while (
        !(faster_s < base_s)) { /* 24, 32 ... GPUs: the first with which it is faster */
        ms_best_question question = s->question.job;
        ms_best_plan best;
        question.base.gpus = gpus += 8;
        ASSERT_OK(ms_best_plan_find(cx, &question, &options, &best), cx);
        faster_s = best.found ? best.prediction.step_s : base_s;
    }
    assert_true(gpu->found);
    ASSERT_NEAR(gpu->step, (double)(gpus - 16), 0.0);
    double gain = base_s / faster_s - 1.0;
    ASSERT_NEAR(gpu->gain_frac, gain, 1e-12);
    ASSERT_NEAR(gpu->gpu_hours_per_day, 24.0 * 16.0 * gain, 1e-12);
    ASSERT_NEAR(gpu->money_per_day, 2.5 * 24.0 * 16.0 * gain, 1e-12);
    ASSERT_NEAR(gpu->net_money_per_day, 2.5 * 24.0 * (16.0 * gain - (double)(gpus - 16)),
                1e-9);
    s->question.gpu_hour_price = NAN; /* that of the file, unknown */
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    assert_true(isnan(s->w.values[MS_WHAT_IF_GPU].money_per_day));
    ASSERT_NEAR(gpu->gpu_hours_per_day, 24.0 * 16.0 * gain, 1e-12);
}

/* The next step of memory is the least with which a search finds a faster plan. */
static void memory_is_a_staircase(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    const ms_what_if_value *gib = &s->w.values[MS_WHAT_IF_GIB];
    if (!gib->found) {
        assert_non_null(gib->reason);
        return;
    }
    double steps_s[2]; /* seconds with one GiB less than the step, and with the step */
    for (int i = 0; i < 2; i++) {
        char memory[64];
        double kept_s;
        snprintf(memory, sizeof memory, "\"memory\": \"%.1f GiB\"",
                 79.1 + gib->step - 1.0 + i);
        write_changed("\"memory\": \"79.1 GiB\"", memory);
        steps_with_file(cx, s, &kept_s, &steps_s[i]);
    }
    ASSERT_NEAR(steps_s[0], s->w.best.prediction.step_s, 1e-12);
    assert_true(steps_s[1] < steps_s[0]);
}

static void a_price_moves_the_cost_alone(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    s->question.job.campaign = &s->campaign;
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    ASSERT_INT(s->w.measure, MS_WHAT_IF_COST);
    const ms_what_if_number *price = number_of(&s->w, "price");
    double cost = s->w.kept.campaign.campaign.cost;
    ASSERT_NEAR(price->sides[0].kept.campaign.campaign.cost, 0.8 * cost, 1e-12);
    ASSERT_NEAR(price->sides[1].best.campaign.campaign.cost, 1.2 * cost, 1e-12);
    ASSERT_NEAR(price->sides[1].kept.prediction.step_s, s->w.kept.prediction.step_s, 0.0);
    ASSERT_NEAR(price->swing_frac, 0.4, 1e-12);
    for (int i = 1; i < s->w.num_numbers; i++)
        assert_true(s->w.numbers[i].swing_frac <= s->w.numbers[i - 1].swing_frac);
}

/* Efficiencies stay legal, and say so. */
static void shares_are_at_most_1(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    ASSERT_OK(ms_what_if_find(cx, &s->question, &s->w), cx);
    const ms_what_if_number *share = number_of(&s->w, "attention.cudnn.sustained");
    ASSERT_NEAR(share->changed[MS_WHAT_IF_LOW], 0.8 * share->value, 1e-12);
    assert_false(share->limited[MS_WHAT_IF_LOW]);
    ASSERT_NEAR(share->changed[MS_WHAT_IF_HIGH], 1.0, 0.0);
    assert_true(share->limited[MS_WHAT_IF_HIGH]);
}

static void nothing_fits(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    s->question.job.base.model = "405b";
    ASSERT_INT(ms_what_if_find(cx, &s->question, &s->w), MS_ENOFIT);
    assert_false(s->w.kept.found);
    assert_non_null(s->w.kept.reason);
    ASSERT_INT(s->w.num_numbers, 0);
}

static void an_interrupted_study_has_gaps(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    studied *s = job(cx);
    volatile int stop = 1;
    s->question.interrupted = &stop;
    ASSERT_INT(ms_what_if_find(cx, &s->question, &s->w), MS_EINTERRUPTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_as_in_a_changed_file),
        cmocka_unit_test(a_domain_is_as_in_a_changed_file),
        cmocka_unit_test(a_group_of_a_mixed_cluster_changes_alone),
        cmocka_unit_test(values_are_reckoned_by_hand),
        cmocka_unit_test(memory_is_a_staircase),
        cmocka_unit_test(a_price_moves_the_cost_alone),
        cmocka_unit_test(shares_are_at_most_1),
        cmocka_unit_test(nothing_fits),
        cmocka_unit_test(an_interrupted_study_has_gaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
