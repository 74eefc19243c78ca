/* Pipeline schedules against the lists of actions that PyTorch
 * (torch/distributed/pipelining/schedules.py) and Megatron-LM
 * (core/pipeline_parallel/schedules.py) produce, and numbers of micro-batches in
 * flight against closed forms. */
#include "costmodel/schedule/schedule.h"

#include "tests/test.h"

static ms_schedule *make(ms_schedule_shape shape)
{
    return ms_schedule_make(test_cx()->arena, &shape);
}

/* A rank's actions as text in the form of PyTorch's CSV files, "0F0 0F1 0B0": stage,
 * pass, micro-batch. */
static const char *rank_text(const ms_schedule *schedule, int rank)
{
    ms_arena *arena = test_cx()->arena;
    const char *text = "";
    int first = schedule->first_action[rank];
    for (int i = first; i < schedule->first_action[rank + 1]; i++)
        text = ms_arena_printf(arena, "%s%s%s", text, i == first ? "" : " ",
                               ms_action_text(arena, &schedule->actions[i]));
    return text;
}

static void expect_lists(const ms_schedule *schedule, const char *const *lists)
{
    ASSERT_INT(ms_schedule_check(test_cx(), schedule, MS_NOWHERE), MS_OK);
    for (int r = 0; r < schedule->shape.num_ranks; r++)
        ASSERT_TEXT(rank_text(schedule, r), lists[r]);
}

static void gpipe_runs_all_forwards_then_all_backwards_ascending(void **state)
{
    (void)state;
    const char *const lists[] = {
        "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7",
        "1F0 1F1 1F2 1F3 1F4 1F5 1F6 1F7 1B0 1B1 1B2 1B3 1B4 1B5 1B6 1B7",
        "2F0 2F1 2F2 2F3 2F4 2F5 2F6 2F7 2B0 2B1 2B2 2B3 2B4 2B5 2B6 2B7",
        "3F0 3F1 3F2 3F3 3F4 3F5 3F6 3F7 3B0 3B1 3B2 3B3 3B4 3B5 3B6 3B7",
    };
    expect_lists(make((ms_schedule_shape){.kind = MS_GPIPE,
                                          .num_ranks = 4,
                                          .num_microbatches = 8,
                                          .virtual_stages = 1,
                                          .group = 0}),
                 lists);
}

static void one_f_one_b_equals_megatrons_lists(void **state)
{
    (void)state;
    const char *const lists[] = {
        "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7",
        "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7",
        "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7",
        "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7",
    };
    expect_lists(make((ms_schedule_shape){.kind = MS_1F1B,
                                          .num_ranks = 4,
                                          .num_microbatches = 8,
                                          .virtual_stages = 1,
                                          .group = 0}),
                 lists);
}

static void interleaved_equals_pytorchs_and_megatrons_lists(void **state)
{
    (void)state;
    const char *const lists[] = {
        "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 "
        "0B1 0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7",
        "1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3 1F4 5B0 1F5 5B1 1F6 5B2 1F7 5B3 5F4 1B0 5F5 1B1 5F6 "
        "1B2 5F7 1B3 5B4 5B5 5B6 5B7 1B4 1B5 1B6 1B7",
        "2F0 2F1 2F2 2F3 6F0 6F1 6F2 6B0 6F3 6B1 2F4 6B2 2F5 6B3 2F6 2B0 2F7 2B1 6F4 2B2 6F5 "
        "2B3 6F6 6B4 6F7 6B5 6B6 6B7 2B4 2B5 2B6 2B7",
        "3F0 3F1 3F2 3F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3F4 3B0 3F5 3B1 3F6 3B2 3F7 3B3 7F4 "
        "7B4 7F5 7B5 7F6 7B6 7F7 7B7 3B4 3B5 3B6 3B7",
    };
    expect_lists(make((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                          .num_ranks = 4,
                                          .num_microbatches = 8,
                                          .virtual_stages = 2,
                                          .group = 4}),
                 lists);
    expect_lists(make((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                          .num_ranks = 4,
                                          .num_microbatches = 8,
                                          .virtual_stages = 2,
                                          .group = 0}),
                 lists);
}

/* Groups of micro-batches in the interleaved schedule may be larger than the number of
 * ranks, as in Llama 3 (arXiv 2407.21783, section 3.3.2). */
static void ten_microbatches_on_four_ranks_go_in_groups_of_five(void **state)
{
    (void)state;
    const char *const lists[] = {
        "0F0 0F1 0F2 0F3 0F4 4F0 4F1 4F2 4F3 4F4 0F5 0F6 4B0 0F7 4B1 0F8 4B2 0F9 4B3 4F5 4B4 4F6 "
        "0B0 4F7 0B1 4F8 0B2 4F9 0B3 0B4 4B5 4B6 4B7 4B8 4B9 0B5 0B6 0B7 0B8 0B9",
        "1F0 1F1 1F2 1F3 1F4 5F0 5F1 5F2 5F3 5F4 5B0 1F5 5B1 1F6 5B2 1F7 5B3 1F8 5B4 1F9 1B0 5F5 "
        "1B1 5F6 1B2 5F7 1B3 5F8 1B4 5F9 5B5 5B6 5B7 5B8 5B9 1B5 1B6 1B7 1B8 1B9",
        "2F0 2F1 2F2 2F3 2F4 6F0 6F1 6F2 6B0 6F3 6B1 6F4 6B2 2F5 6B3 2F6 6B4 2F7 2B0 2F8 2B1 2F9 "
        "2B2 6F5 2B3 6F6 2B4 6F7 6B5 6F8 6B6 6F9 6B7 6B8 6B9 2B5 2B6 2B7 2B8 2B9",
        "3F0 3F1 3F2 3F3 3F4 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 7F4 7B4 3F5 3B0 3F6 3B1 3F7 3B2 3F8 "
        "3B3 3F9 3B4 7F5 7B5 7F6 7B6 7F7 7B7 7F8 7B8 7F9 7B9 3B5 3B6 3B7 3B8 3B9",
    };
    expect_lists(make((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                          .num_ranks = 4,
                                          .num_microbatches = 10,
                                          .virtual_stages = 2,
                                          .group = 0}),
                 lists);
}

static void fewer_microbatches_than_ranks_form_one_group(void **state)
{
    (void)state;
    const char *const lists[] = {
        "0F0 0F1 0F2 4F0 4F1 4F2 4B0 4B1 4B2 0B0 0B1 0B2",
        "1F0 1F1 1F2 5F0 5F1 5F2 5B0 5B1 5B2 1B0 1B1 1B2",
        "2F0 2F1 2F2 6F0 6F1 6F2 6B0 6B1 6B2 2B0 2B1 2B2",
        "3F0 3F1 3F2 7F0 7B0 7F1 7B1 7F2 7B2 3B0 3B1 3B2",
    };
    expect_lists(make((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                          .num_ranks = 4,
                                          .num_microbatches = 3,
                                          .virtual_stages = 2,
                                          .group = 0}),
                 lists);
}

static void the_default_group_is_pytorchs(void **state)
{
    (void)state;
    const struct {
        int num_ranks, num_microbatches, group;
    } cases[] = {{4, 8, 4}, {4, 10, 5}, {4, 3, 3}, {4, 12, 4}, {8, 24, 8}, {2, 7, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ms_schedule_shape shape = {.kind = MS_INTERLEAVED,
                                   .num_ranks = cases[i].num_ranks,
                                   .num_microbatches = cases[i].num_microbatches,
                                   .virtual_stages = 2};
        ASSERT_INT(ms_schedule_group(&shape), cases[i].group);
    }
}

/* ---- in flight ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The rows of a rank, chunk by chunk. */
static ms_live_rows live_rows(const ms_schedule *schedule, int rank)
{
    const int class_of[] = {0, 1, 2};
    ms_live_ranks ranks = {rank, 1, schedule->num_chunks, class_of};
    return ms_schedule_live_rows(test_cx()->arena, schedule, &ranks);
}

static void plain_schedules_hold_what_their_formulas_say(void **state)
{
    (void)state;
    for (int p = 1; p <= 12; p++) {
        for (int m = 1; m <= 30; m++) {
            ms_arena *arena = ms_arena_open();
            ms_schedule_shape gpipe = {.kind = MS_GPIPE,
                                       .num_ranks = p,
                                       .num_microbatches = m,
                                       .virtual_stages = 1,
                                       .group = 0},
                              f1b = {.kind = MS_1F1B,
                                     .num_ranks = p,
                                     .num_microbatches = m,
                                     .virtual_stages = 1,
                                     .group = 0};
            ms_schedule *a = ms_schedule_make(arena, &gpipe),
                        *b = ms_schedule_make(arena, &f1b);
            for (int r = 0; r < p; r++) {
                ASSERT_INT(live_rows(a, r).num, 1);
                ASSERT_INT(live_rows(b, r).num, 1);
                ASSERT_INT(ms_schedule_in_flight(a, r), m);
                ASSERT_INT(ms_schedule_in_flight(b, r), least(m, p - r));
            }
            ms_arena_close(arena);
        }
    }
}

static void interleaved_holds_its_warm_up_and_one_more(void **state)
{
    (void)state;
    int num_cases = 0;
    for (int p = 2; p <= 7; p++) {
        for (int v = 2; v <= 4; v++) {
            for (int m = 1; m <= 20; m++) {
                for (int group = 1; group <= m; group++) {
                    ms_schedule_shape shape = {.kind = MS_INTERLEAVED,
                                               .num_ranks = p,
                                               .num_microbatches = m,
                                               .virtual_stages = v,
                                               .group = group};
                    if (!ms_schedule_allows(&shape, NULL))
                        continue;
                    ms_arena *arena = ms_arena_open();
                    ms_schedule *schedule = ms_schedule_make(arena, &shape);
                    for (int r = 0; r < p; r++)
                        ASSERT_INT(ms_schedule_in_flight(schedule, r),
                                   least(m * v, 2 * (p - 1 - r) + (v - 1) * group + 1));
                    ms_arena_close(arena);
                    num_cases++;
                }
            }
        }
    }
    assert_true(num_cases > 1000);
}

static void interleaved_4_8_2_holds_11_9_7_5(void **state)
{
    (void)state;
    ms_schedule *schedule = make((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                                     .num_ranks = 4,
                                                     .num_microbatches = 8,
                                                     .virtual_stages = 2,
                                                     .group = 4});
    const int want[4] = {11, 9, 7, 5};
    for (int r = 0; r < 4; r++)
        ASSERT_INT(ms_schedule_in_flight(schedule, r), want[r]);
}

/* Chunks differ in memory, so vectors count the micro-batches alive per chunk: (2p -
 * 1, p) on rank 0 and (p, 1) on the last of p ranks. */
static void live_vectors_tell_the_chunks_apart(void **state)
{
    (void)state;
    ms_schedule *schedule = make((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                                     .num_ranks = 4,
                                                     .num_microbatches = 16,
                                                     .virtual_stages = 2,
                                                     .group = 4});
    bool has_first = false, has_last = false;
    ms_live_rows first = live_rows(schedule, 0), last = live_rows(schedule, 3);
    for (int i = 0; i < first.num; i++)
        has_first |= first.counts[4 * i] == 7 && first.counts[4 * i + 1] == 4;
    for (int i = 0; i < last.num; i++)
        has_last |= last.counts[4 * i] == 4 && last.counts[4 * i + 1] == 1;
    assert_true(has_first);
    assert_true(has_last);
}

/* For any bytes per chunk, the largest weighted vector of micro-batches alive is the
 * peak over the whole list of actions. */
static void live_vectors_give_the_exact_peak_for_any_weights(void **state)
{
    (void)state;
    ms_schedule *schedule = make((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                                     .num_ranks = 5,
                                                     .num_microbatches = 17,
                                                     .virtual_stages = 3,
                                                     .group = 6});
    const double weights[][3] = {{1, 1, 1}, {1, 7, 2}, {9, 1, 1}, {1, 1, 30}, {5, 4, 3}};
    for (size_t w = 0; w < 5; w++) {
        for (int r = 0; r < 5; r++) {
            double held = 0.0, most = 0.0, by_vectors = 0.0;
            for (int i = schedule->first_action[r]; i < schedule->first_action[r + 1];
                 i++) {
                const ms_action *a = &schedule->actions[i];
                held += (a->kind == MS_FORWARD ? 1 : -1) * weights[w][a->stage / 5];
                most = fmax(most, held);
            }
            ms_live_rows rows = live_rows(schedule, r);
            for (int i = 0; i < rows.num; i++) {
                const int *row = rows.counts + 6 * i;
                by_vectors =
                    fmax(by_vectors, row[0] * weights[w][0] + row[1] * weights[w][1] +
                                         row[2] * weights[w][2]);
            }
            ASSERT_NEAR(by_vectors, most, 0.0);
        }
    }
}

/* ---- refusals and checks ---- */

static void shapes_that_cannot_run_are_refused_with_a_reason(void **state)
{
    (void)state;
    const struct {
        ms_schedule_kind kind;
        int p, m, v, group;
    } rows[] = {
        {MS_1F1B, 0, 4, 1, 0},          {MS_1F1B, 4, 0, 1, 0},
        {MS_1F1B, 4, 8, 2, 0},          {MS_GPIPE, 4, 8, 1, 4},
        {MS_INTERLEAVED, 1, 8, 2, 0},   {MS_INTERLEAVED, 4, 8, 1, 0},
        {MS_INTERLEAVED, 4, 8, 2, 1},   {MS_INTERLEAVED, 4, 8, 2, 2},
        {MS_INTERLEAVED, 4, 8, 2, 9},   {MS_INTERLEAVED, 4, 8, 2, -1},
        {MS_INTERLEAVED, 4, 5, 3, 4},   {MS_1F1B, 40000, 1, 1, 0},
        {MS_GPIPE, 1024, 100000, 1, 0}, {MS_INTERLEAVED, 2000000000, 8, 2000000000, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ms_schedule_shape shape = {.kind = rows[i].kind,
                                   .num_ranks = rows[i].p,
                                   .num_microbatches = rows[i].m,
                                   .virtual_stages = rows[i].v,
                                   .group = rows[i].group};
        const char *why = NULL;
        assert_false(ms_schedule_allows(&shape, &why));
        assert_non_null(why);
    }
    ms_schedule_shape allowed = {.kind = MS_INTERLEAVED,
                                 .num_ranks = 4,
                                 .num_microbatches = 8,
                                 .virtual_stages = 2,
                                 .group = 4};
    const char *why = "something";
    assert_true(ms_schedule_allows(&allowed, &why));
    assert_null(why);
}

static const char *complaint(const ms_schedule *schedule)
{
    ms_ctx *cx = test_cx();
    ASSERT_INT(ms_schedule_check(cx, schedule, MS_NOWHERE), MS_EINPUT);
    return cx->last->message;
}

static void the_check_finds_broken_lists(void **state)
{
    (void)state;
    ms_schedule *schedule = make((ms_schedule_shape){
        .kind = MS_1F1B, .num_ranks = 2, .num_microbatches = 4, .virtual_stages = 1});
    ms_action actions[16];
    ms_schedule broken = *schedule;
    broken.actions = actions;

    memcpy(actions, schedule->actions, sizeof actions);
    ASSERT_INT(ms_schedule_check(test_cx(), &broken, MS_NOWHERE), MS_OK);
    actions[0].microbatch = 1;
    ASSERT_TEXT(complaint(&broken),
                "rank 0: 0F1: the stage runs this micro-batch forward twice");

    memcpy(actions, schedule->actions, sizeof actions);
    actions[8] = schedule->actions[9];
    actions[9] = schedule->actions[8];
    ASSERT_TEXT(complaint(&broken), "rank 1: 1B0: the backward comes before its forward");

    memcpy(actions, schedule->actions, sizeof actions);
    actions[0].stage = 1;
    ASSERT_TEXT(complaint(&broken), "rank 0: 1F0: the stage does not live on this rank");

    memcpy(actions, schedule->actions, sizeof actions);
    actions[7].kind = MS_BACKWARD_INPUT;
    ASSERT_TEXT(complaint(&broken),
                "stage 0 never runs the weight gradients of micro-batch 3");
}

/* Rank 0 waits for the gradient of B0 before it sends F1, rank 1 waits for F1 before
 * it sends B0. */
static void a_deadlock_is_told_as_a_circle(void **state)
{
    (void)state;
    const ms_action actions[] = {{.kind = MS_FORWARD},
                                 {.kind = MS_BACKWARD},
                                 {.kind = MS_FORWARD, .microbatch = 1},
                                 {.kind = MS_BACKWARD, .microbatch = 1},
                                 {.kind = MS_FORWARD, .stage = 1},
                                 {.kind = MS_FORWARD, .stage = 1, .microbatch = 1},
                                 {.kind = MS_BACKWARD, .stage = 1},
                                 {.kind = MS_BACKWARD, .stage = 1, .microbatch = 1}};
    ms_schedule small = *make((ms_schedule_shape){
        .kind = MS_1F1B, .num_ranks = 2, .num_microbatches = 2, .virtual_stages = 1});
    small.actions = actions;
    const char *text = complaint(&small);
    assert_non_null(strstr(text, "the schedule deadlocks: "));
    assert_non_null(strstr(text, "rank 0 at 0B0 waits for 1B0 of rank 1"));
    assert_non_null(strstr(text, "rank 1 at 1F1 waits for 0F1 of rank 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpipe_runs_all_forwards_then_all_backwards_ascending),
        cmocka_unit_test(one_f_one_b_equals_megatrons_lists),
        cmocka_unit_test(interleaved_equals_pytorchs_and_megatrons_lists),
        cmocka_unit_test(ten_microbatches_on_four_ranks_go_in_groups_of_five),
        cmocka_unit_test(fewer_microbatches_than_ranks_form_one_group),
        cmocka_unit_test(the_default_group_is_pytorchs),
        cmocka_unit_test(plain_schedules_hold_what_their_formulas_say),
        cmocka_unit_test(interleaved_holds_its_warm_up_and_one_more),
        cmocka_unit_test(interleaved_4_8_2_holds_11_9_7_5),
        cmocka_unit_test(live_vectors_tell_the_chunks_apart),
        cmocka_unit_test(live_vectors_give_the_exact_peak_for_any_weights),
        cmocka_unit_test(shapes_that_cannot_run_are_refused_with_a_reason),
        cmocka_unit_test(the_check_finds_broken_lists),
        cmocka_unit_test(a_deadlock_is_told_as_a_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
