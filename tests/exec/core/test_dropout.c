/* Random numbers of dropout: known answers of Philox4x32-10, rates, and masks that depend
 * on an element's indices alone. */
#include "exec/core/dropout.h"

#include "tests/test.h"

/* Known answers of Random123 (Salmon et al.), kat_vectors, philox4x32 10. */
static void philox_gives_the_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } cases[] = {{{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                 {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                  {0xffffffff, 0xffffffff},
                  {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                 {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                  {0xa4093822, 0x299f31d0},
                  {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t got[4];
        ms_philox(cases[i].key, cases[i].counter, got);
        for (int j = 0; j < 4; j++)
            ASSERT_INT(got[j], cases[i].want[j]);
    }
}

static ms_dropout row_of(ms_batch batch, long layer, long sequence, long row)
{
    static const ms_model model = {.num_heads = 4};
    static const ms_program program = {.model = &model};
    const ms_op_call call = {.program = &program, .batch = &batch, .layer = layer};
    return ms_dropout_row(&call, 0.2, MS_DROPOUT_MLP, sequence, row);
}

/* The share of 40,000 elements has a standard deviation of 0.002. */
static void the_rate_is_the_share_of_what_is_dropped(void **state)
{
    (void)state;
    long num_dropped = 0;
    for (long row = 0; row < 40; row++) {
        ms_dropout d = row_of((ms_batch){.dropout_key = 7}, 1, 0, row);
        for (long i = 0; i < 1000; i++)
            num_dropped += !ms_dropout_keeps(&d, i);
    }
    ASSERT_NEAR((double)num_dropped / 40000.0, 0.2, 0.04);
}

static bool same_masks(ms_dropout x, ms_dropout y)
{
    for (long i = 63; i >= 0; i--)
        if (ms_dropout_keeps(&x, i) != ms_dropout_keeps(&y, i))
            return false;
    return true;
}

/* A rank's second sequence is another rank's first; order of columns does not matter. */
static void masks_depend_on_indices_in_the_step(void **state)
{
    (void)state;
    const ms_batch one = {.dropout_key = 7, .first_in_step = 2, .first_sequence = 2},
                   other = {.dropout_key = 7, .first_in_step = 3, .first_sequence = 1},
                   later = {.dropout_key = 8, .first_in_step = 2, .first_sequence = 2};
    assert_true(same_masks(row_of(one, 1, 3, 5), row_of(other, 1, 1, 5)));
    assert_false(same_masks(row_of(one, 1, 3, 5), row_of(one, 1, 2, 5)));
    assert_false(same_masks(row_of(one, 1, 3, 5), row_of(one, 1, 3, 6)));
    assert_false(same_masks(row_of(one, 1, 3, 5), row_of(one, 0, 3, 5)));
    assert_false(same_masks(row_of(one, 1, 3, 5), row_of(later, 1, 3, 5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(the_rate_is_the_share_of_what_is_dropped),
        cmocka_unit_test(masks_depend_on_indices_in_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
