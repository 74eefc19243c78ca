/* The table of a plan's choices: every choice in it is kept by JSON and by flags, and
 * is compared when plans are compared. */
#include "tests/test.h"

#include "cli/options/plan_command.h"
#include "sim/request/plan_options.h"

#include <string.h>

/* A plan on which every choice has an effect. */
static ms_plan full_plan(void)
{
    ms_plan plan = ms_plan_default(64);
    plan.model = "8b";
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        plan.size[axis] = axis == MS_TP ? 4 : 2;
    plan.zero = 3;
    plan.schedule = MS_INTERLEAVED;
    plan.virtual_stages = 2;
    plan.recompute = MS_RECOMPUTE_FULL;
    plan.sequence_parallel = false;
    plan.lora_rank = 4;
    plan.ep = 4;
    plan.expert_capacity = 1.25;
    return plan;
}

/* Sets the plan's `choice` to another value that a plan may have, if the choice is a
 * switch, a word or a whole number. False: the choice is of another kind or an axis size,
 * and is not tested. */
static bool change(ms_plan *plan, ms_choice choice)
{
    long value = ms_plan_get(plan, choice);
    switch (ms_plan_fields[choice].kind) {
    case MS_CHOICE_SWITCH:
    case MS_CHOICE_WORD:
        ms_plan_set(plan, choice, value == 0 ? 1 : 0);
        break;
    case MS_CHOICE_WHOLE:
        ms_plan_set(plan, choice, value == 2 ? 1 : 2);
        break;
    case MS_CHOICE_SET:
        plan->recompute = MS_RECOMPUTE_SELECTIVE; /* the only set has effect then */
        plan->recompute_layers = 0;
        ms_plan_set(plan, choice, value == 0 ? 5 : 0);
        break;
    case MS_CHOICE_NUMBER:
    case MS_CHOICE_TEXT:
    case MS_CHOICE_LIST:
        return false;
    }
    /* sizes of axes must multiply to the GPUs, so they are not tested */
    return choice < MS_CHOOSE_GPUS || choice > MS_CHOOSE_TP;
}

static ms_plan written_and_read(ms_ctx *cx, const ms_plan *plan)
{
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    ms_jout out = ms_jout_open(file);
    ms_plan_write_json(&out, plan);
    ms_jout_close(&out);
    ASSERT_INT(fclose(file), 0);
    ms_jdoc *doc;
    ms_jval root;
    ms_plan read;
    ASSERT_OK(ms_json_parse(cx, "plan", text, length, &doc, &root), cx);
    ASSERT_OK(ms_plan_read(cx, root, &read), cx);
    ms_json_close(doc);
    free(text);
    return read;
}

static ms_plan told_and_taken(ms_ctx *cx, const ms_plan *plan)
{
    char *argv[2 * MS_NUM_CHOICES], *rest = ms_plan_command_text(cx->arena, plan);
    int argc = 0;
    for (char *word = strtok(rest, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    ms_plan_options opts = {0};
    ms_option_set set = {"plan", ms_plan_option_table(), &opts};
    ms_words words;
    ms_plan taken;
    ASSERT_OK(ms_options_parse(cx, &set, 1, argc, argv, &words), cx);
    ASSERT_OK(ms_plan_from_options(cx, &opts, &taken), cx);
    return taken;
}

static void every_choice_counts_and_is_kept(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_plan full = full_plan();
    int num = 0;
    for (ms_choice choice = 0; choice < MS_NUM_CHOICES; choice++) {
        ms_plan plan = full;
        if (!change(&plan, choice))
            continue;
        num++;
        if (choice == MS_CHOOSE_RECOMPUTE)
            plan.recompute_layers = 0;
        ms_plan read = written_and_read(cx, &plan), taken = told_and_taken(cx, &plan);
        if (ms_plan_equal(&plan, &full))
            fail_msg("%s does not count", ms_plan_fields[choice].name);
        if (!ms_plan_equal(&plan, &read))
            fail_msg("%s is lost in JSON", ms_plan_fields[choice].name);
        /* flags of a plan with another ZeRO stage leave out the resharding flag, which
         * then has no effect, so the two plans may differ in it */
        bool idle = choice == MS_CHOOSE_ZERO;
        if (!idle && !ms_plan_equal(&plan, &taken))
            fail_msg("%s is lost in flags: %s", ms_plan_fields[choice].name,
                     ms_plan_command_text(cx->arena, &plan));
    }
    assert_true(num >= 16);
}

static void every_row_is_whole(void **state)
{
    (void)state;
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *row = &ms_plan_fields[i];
        assert_non_null(row->name);
        assert_true(row->flag == NULL || row->help != NULL);
        assert_true((row->kind != MS_CHOICE_WORD && row->kind != MS_CHOICE_SET) ||
                    row->words != NULL);
        /* a choice that the search tries needs a flag, to be fixed and to be printed */
        assert_true(row->search != MS_SEARCH_TRIES || row->flag != NULL);
        assert_true(row->decides == MS_DECIDES_ITS_OWN ||
                    (ms_choice_words(i) != NULL && ms_choice_last(i) < 8));
        for (ms_choice k = 0; k < i; k++)
            assert_string_not_equal(row->name, ms_plan_fields[k].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_counts_and_is_kept),
        cmocka_unit_test(every_row_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
