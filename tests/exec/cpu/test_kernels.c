/* Tests of CPU kernels: executes layer programs, and compares every tensor with the
 * reference interpreter's. */
#include "exec/cpu/kernels.h"
#include "tests/support/interpreter_priv.h"
#include "tests/support/program_cases.h"
#include "tests/support/run_program.h"
#include "tests/test.h"

static const double tolerance[] = {[MS_REAL_FP32] = 1e-5, [MS_REAL_FP64] = 1e-12};

/* Largest difference relative to the largest value; absolute where all values are zero
 * but for rounding, as the gradient of a key bias, whose terms of unit size cancel. */
static double difference_of(const double *got, const double *want, long count)
{
    double largest = 0, worst = 0;
    for (long i = 0; i < count; i++) {
        largest = fmax(largest, fabs(want[i]));
        worst = fmax(worst, fabs(got[i] - want[i]));
    }
    double relative = ms_interp_difference(got, want, count);
    return largest < 1e-12 && relative < HUGE_VAL ? worst : relative;
}

/* Compares every tensor that the interpreter has computed. */
static void compare_run(ms_interp *interp, ms_real_type type, const char *label)
{
    const ms_program *program = interp->program;
    ms_program_run *run = ms_program_run_prepare(interp, ms_cpu_kernels(type));
    ms_program_run_execute(run);
    for (int i = 0; i < program->num_tensors; i++) {
        const ms_cell *want = ms_interp_cell(interp, i, 0);
        if (want->values == NULL)
            continue;
        double difference =
            difference_of(ms_program_run_values(run, i), want->values, want->count);
        if (!(difference <= tolerance[type]))
            ms_case_wrong(label,
                          ms_arena_printf(run->arena, "fp%d %s[%s] differs by %.3g",
                                          type == MS_REAL_FP64 ? 64 : 32,
                                          program->tensors[i].name,
                                          program->tensors[i].dims, difference));
    }
}

static void compare(ms_arena *arena, const ms_model *model, const ms_program_key *key,
                    const ms_interp_options *options)
{
    const ms_program *program = ms_case_program(arena, model, key, 1);
    const char *label = ms_case_describe(arena, model, key);
    ms_interp *interp = ms_interp_run(arena, program, options);
    if (interp->why[0] != '\0') {
        ms_case_wrong(label, interp->why);
        return;
    }
    compare_run(interp, MS_REAL_FP64, label);
    compare_run(interp, MS_REAL_FP32, label);
}

static void all_programs(const ms_interp_options *options, bool fused)
{
    ms_arena *arena = test_cx()->arena;
    for (int m = 0; m < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; m++) {
        ms_model *model = MS_NEW(arena, ms_model);
        *model = ms_case_model(m);
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
            ms_program_key key = ms_case_whole_key((ms_block_kind)part);
            key.attention_fused = fused;
            compare(arena, model, &key, options);
        }
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void all_programs_give_what_the_interpreter_gives(void **state)
{
    (void)state;
    all_programs(&(ms_interp_options){.seed = 1}, true);
}

static void programs_with_stored_scores_and_positions_in_another_order(void **state)
{
    (void)state;
    long positions[MS_SMALL_SEQUENCE];
    ms_interp_positions(positions, MS_SMALL_SEQUENCE, 2);
    all_programs(&(ms_interp_options){.seed = 2, .positions = positions}, false);
}

static void programs_with_balanced_routing(void **state)
{
    (void)state;
    all_programs(&(ms_interp_options){.seed = 3, .balanced_routing = true}, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_programs_give_what_the_interpreter_gives,
                               ms_case_start),
        cmocka_unit_test_setup(programs_with_stored_scores_and_positions_in_another_order,
                               ms_case_start),
        cmocka_unit_test_setup(programs_with_balanced_routing, ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
