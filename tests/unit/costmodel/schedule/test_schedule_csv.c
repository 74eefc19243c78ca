/* Pipeline schedules in PyTorch's CSV format: what is written reads back, and a
 * mistake is reported at its line and column. */
#include "costmodel/schedule/schedule_csv.h"

#include "tests/test.h"

static ms_status read_text(ms_ctx *cx, const char *text, ms_schedule_shape *shape)
{
    return ms_schedule_csv_read(cx, "own.csv", text, strlen(text), shape);
}

/* Reads and checks a schedule from text; NULL when it is refused. */
static const ms_schedule *open_text(ms_ctx *cx, const char *text)
{
    ms_schedule_shape shape;
    const ms_schedule *schedule;
    if (read_text(cx, text, &shape) != MS_OK ||
        ms_schedule_open(cx, cx->arena, &shape, (ms_loc){.file = "own.csv"}, &schedule) !=
            MS_OK)
        return NULL;
    return schedule;
}

static char *written(ms_arena *arena, const ms_schedule *schedule)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    ms_schedule_csv_write(file, schedule);
    fclose(file);
    char *kept = ms_arena_strndup(arena, text, length);
    free(text);
    return kept;
}

/* ---- sound files ---- */

static void a_pair_and_every_kind_of_action_are_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_schedule *schedule = open_text(cx, "0F0,0F1,,0I0,0W0,0B1\n"
                                                "1F0,(1F1;1B0)OVERLAP_F_B, ,1B1\n");
    ASSERT_OK(cx->num_errors == 0 ? MS_OK : MS_EINPUT, cx);
    ASSERT_INT(schedule->shape.num_ranks, 2);
    ASSERT_INT(schedule->shape.num_microbatches, 2);
    ASSERT_INT(schedule->shape.virtual_stages, 1);
    ASSERT_TEXT(written(cx->arena, schedule), "0F0,0F1,0I0,0W0,0B1\n"
                                              "1F0,(1F1;1B0)OVERLAP_F_B,1B1\n");
}

static void stages_lie_where_the_file_puts_them(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_schedule *schedule = open_text(cx, "\xEF\xBB\xBF\"1F0\",2F0,2B0,1B0\r\n"
                                                "0F0,3F0,3B0,0B0\r\n\r\n");
    ASSERT_OK(cx->num_errors == 0 ? MS_OK : MS_EINPUT, cx);
    const int ranks[] = {1, 0, 0, 1};
    for (int s = 0; s < 4; s++)
        ASSERT_INT(ms_schedule_rank(&schedule->shape, s), ranks[s]);
    ASSERT_INT(ms_schedule_stage(&schedule->shape, 1, 1), 3);
}

static ms_schedule_shape shape_of(ms_schedule_kind kind)
{
    ms_schedule_traits traits = ms_schedule_traits_of(kind);
    ms_schedule_shape shape = {.kind = kind, .num_ranks = 4, .num_microbatches = 12};
    shape.virtual_stages = traits.most_virtual == 1 ? 1 : 2;
    return shape;
}

static bool same_actions(const ms_schedule *a, const ms_schedule *b)
{
    int num = a->first_action[a->shape.num_ranks];
    for (int r = 0; r <= a->shape.num_ranks; r++)
        if (a->first_action[r] != b->first_action[r])
            return false;
    for (int i = 0; i < num; i++) {
        const ms_action *x = &a->actions[i], *y = &b->actions[i];
        if (x->kind != y->kind || x->stage != y->stage ||
            x->microbatch != y->microbatch || x->backward_stage != y->backward_stage ||
            x->backward_microbatch != y->backward_microbatch)
            return false;
    }
    return true;
}

/* Every schedule reads back with the same actions. A file does not tell that a stage
 * of DualPipe is a copy of another, so its placement of stages does not read back. */
static void every_schedule_reads_back_as_it_was_written(void **state)
{
    (void)state;
    int num_families = 0;
    for (int kind = 0; kind < MS_CUSTOM; kind++) {
        ms_ctx *cx = test_cx();
        ms_schedule_shape shape = shape_of(kind), back;
        const char *why = NULL;
        if (!ms_schedule_allows(&shape, &why))
            fail_msg("%s: %s", ms_schedule_names[kind], why);
        const ms_schedule *schedule = ms_schedule_make(cx->arena, &shape), *again;
        char *text = written(cx->arena, schedule);
        ASSERT_OK(read_text(cx, text, &back), cx);
        num_families++;
        if (ms_schedule_placement(kind) == MS_PLACE_BOTH_WAYS)
            continue;
        ASSERT_OK(ms_schedule_open(cx, cx->arena, &back, MS_NOWHERE, &again), cx);
        assert_true(same_actions(schedule, again));
        ASSERT_TEXT(written(cx->arena, again), text);
        ASSERT_INT(again->num_slots, schedule->num_slots);
        for (int r = 0; r < 4; r++)
            ASSERT_INT(ms_schedule_in_flight(again, r),
                       ms_schedule_in_flight(schedule, r));
    }
    ASSERT_INT(num_families, 14);
}

/* ---- mistakes ---- */

typedef struct mistake {
    const char *text;
    int line, column; /* expected place of the error message; 0, 0: it names no place */
    const char *says; /* text that the error message must contain */
    /* text that the message's hint must contain; NULL: any hint or none */
    const char *hints;
} mistake;

static const mistake mistakes[] = {
    /* mistakes in cells */
    {"", 0, 0, "no actions", "0F0,0F1,0B0,0B1"},
    {"0F0,0b0\n", 1, 5, "\"0b0\" is no action", "F is a forward"},
    {"0F0,B0\n", 1, 5, "\"B0\" is no action", "2F0"},
    {"0F0,\"0B0\"\"\"\n", 1, 6, "something after its action", "one action a cell"},
    {"0F0,  0F,0B0\n", 1, 7, "\"0F\" is no action", "micro-batches count from 0"},
    {"0F0,0B0 0F1\n", 1, 5, "something after its action", "one action a cell"},
    {"0F0,0UNSHARD,0B0\n", 1, 5, "\"0UNSHARD\" is no computation", "leave out"},
    {"0F0,0SEND_F0,0B0\n", 1, 5, "no computation", "leave out"},
    {"0F0,(0F1;0I0)OVERLAP_F_B\n", 1, 5, "is no pair", "(0F3;7B1)OVERLAP_F_B"},
    {"0F0,(0B0;0F1)OVERLAP_F_B\n", 1, 5, "is no pair", "(0F3;7B1)OVERLAP_F_B"},
    {"0F0,(0F1;0B0)\n", 1, 5, "is no pair", "(0F3;7B1)OVERLAP_F_B"},
    {"(0F0;0B0)OVERLAP_F_B\n", 1, 1, "with the backward that needs it", "another"},
    {"99999F0\n", 1, 1, "below 16383", "2F0"},
    {"0F99999999999999999999\n", 1, 1, "below 4194304", "count from 0"},
    {"0F0,\"0B0\n", 1, 0, "quote is never closed", NULL},
    /* mistakes in rows and stages */
    {"0F0,0B0\n,,\n", 2, 0, "rank 1 has no actions", "one row per pipeline rank"},
    {"0F0,0B0,1F0,1B0\n1F0,1B0\n", 2, 1, "stage 1 runs on rank 1 and on rank 0",
     "line 1"},
    {"0F0,0B0\n2F0,2B0\n", 0, 0, "no rank runs stage 1", "without gaps"},
    {"0F0,0B0\n1F0,2F0,2B0,1B0\n", 2, 0, "rank 1 has 2 of the 3 stages", "same number"},
    {"0F0,0F1,0B0,0B1\n1F0,1B0\n", 2, 0,
     "stage 1 runs 1 of 2 micro-batches forward: micro-batch 1 is", "every micro-batch"},
    {"0F0,0F4000000,0B0\n", 1, 0,
     "of 4000001 micro-batches forward: micro-batch 1 is missing", "every micro-batch"},
    /* mistakes in the order of actions */
    {"0F0,0F0,0B0\n", 1, 5, "forward twice", NULL},
    {"0F0,0B0\n1B0,1F0\n", 2, 1, "before its forward", NULL},
    {"0F0,0W0,0I0\n", 1, 5, "come after the inputs'", NULL},
    {"0F0,0I0,0W0,0W0\n", 1, 13, "computed before", NULL},
    {"0F0,0B0,0B0\n", 1, 9, "backward twice", NULL},
    {"0F0,0I0\n", 0, 0, "never runs the weight gradients of micro-batch 0", NULL},
    {"0F0,0F1,0B1\n", 0, 0, "never runs the backward of micro-batch 0", NULL},
    /* orders that deadlock */
    {"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", 1, 5,
     "rank 0 at 0B0 waits for 1B0 of rank 1, rank 1 at 1F1 waits for 0F1 of rank 0",
     "receives from"},
    {"1F0,0F0,1B0,0B0\n", 1, 1, "rank 0 at 1F0 waits for 0F0 of rank 0", "receives from"},
    /* ranks 1 and 2 wait for each other; rank 0 waits for them, but is not part of the
     * deadlock */
    {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F1,2B1,2F0,2B0\n", 2, 5,
     "rank 1 at 1B0 waits for 2B0 of rank 2, rank 2 at 2F1 waits for 1F1 of rank 1",
     "receives from"},
};

static void mistakes_are_told_where_they_stand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const mistake *want = &mistakes[i];
        ms_ctx *cx = test_cx();
        if (open_text(cx, want->text) != NULL)
            fail_msg("accepted: %s", want->text);
        const ms_diag *got = cx->first;
        ASSERT_INT(got->status, MS_EINPUT);
        ASSERT_TEXT(got->loc.file, "own.csv");
        if (strstr(got->message, want->says) == NULL || got->loc.line != want->line ||
            got->loc.column != want->column)
            fail_msg("%s: %d:%d: %s", want->text, got->loc.line, got->loc.column,
                     got->message);
        if (want->hints != NULL &&
            (got->hint == NULL || strstr(got->hint, want->hints) == NULL))
            fail_msg("%s: hint %s", want->text, got->hint);
    }
}

static void all_bad_cells_are_told_not_only_the_first(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    assert_null(open_text(cx, "0F0,x,0B0\n1F0,1X0\n"));
    ASSERT_INT(cx->num_errors, 2);
    ASSERT_INT(cx->last->loc.line, 2);
    ASSERT_INT(cx->last->loc.column, 5);
}

static void a_missing_file_is_an_io_error(void **state)
{
    (void)state;
    ms_schedule_shape shape;
    ASSERT_INT(ms_schedule_csv_load(test_cx(), "/dev/null/own.csv", &shape), MS_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_and_every_kind_of_action_are_read),
        cmocka_unit_test(stages_lie_where_the_file_puts_them),
        cmocka_unit_test(every_schedule_reads_back_as_it_was_written),
        cmocka_unit_test(mistakes_are_told_where_they_stand),
        cmocka_unit_test(all_bad_cells_are_told_not_only_the_first),
        cmocka_unit_test(a_missing_file_is_an_io_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
