/* Einsums: which texts are read and refused, the roles of letters, and the rules by
 * which shardings propagate, against the tables of their sources. */
#include "costmodel/tensor/einsum.h"
#include "tests/test.h"

static ms_einsum parsed(const char *text)
{
    ms_ctx *cx = test_cx();
    ms_einsum einsum;
    ASSERT_OK(ms_einsum_parse(cx, text, &einsum), cx);
    return einsum;
}

static void einsums_are_read_as_they_are_written(void **state)
{
    (void)state;
    const struct {
        const char *text, *want, *letters;
    } rows[] = {
        {"bsh,hf->bsf", "bsh,hf->bsf", "bshf"},
        {" b s h , h f -> b s f ", "bsh,hf->bsf", "bshf"},
        {"bh->b", "bh->b", "bh"},
        {"bh->", "bh->", "bh"},
        {"ab->ba", "ab->ba", "ab"},
        {"a,b,c,d->dcba", "a,b,c,d->dcba", "abcd"},
        /* no arrow: the output has the letters that appear once, in alphabetical
         * order, as in numpy */
        {"bsh,hf", "bsh,hf->bfs", "bshf"},
        {"ba", "ba->ab", "ba"},
        {"i,i", "i,i->", "i"},
        {"aB", "aB->Ba", "aB"}, /* capitals are letters of their own, and sort first */
        {"aA,A->a", "aA,A->a", "aA"},
        {"abcdefgh->a", "abcdefgh->a", "abcdefgh"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_einsum einsum = parsed(rows[i].text);
        ASSERT_TEXT(ms_einsum_text(test_cx()->arena, &einsum), rows[i].want);
        ASSERT_TEXT(einsum.letters, rows[i].letters);
    }
}

static void bad_einsums_are_refused_with_the_column(void **state)
{
    (void)state;
    const struct {
        const char *text, *want;
    } rows[] = {
        {"", "column 1: an operand without letters"},
        {"->b", "column 1: an operand without letters"},
        {"bh,->b", "column 4: an operand without letters"},
        {"bh,,h->b", "column 4: an operand without letters"},
        {"bb->b", "column 2: this letter stands twice in one operand"},
        {"bh->bb", "column 6: this letter stands twice in one operand"},
        {"bh->bx", "column 6: no input has this letter of the output"},
        {"...h,hf->...f", "column 1: an ellipsis is not taken"},
        {"bh-b", "column 3: \"-\" without \">\""},
        {"bh->b->h", "column 6: an einsum has one output"},
        {"bh->b,h", "column 6: an einsum has one output"},
        {"b1->b", "column 2: this is no letter"},
        {"b\xff->b", "column 2: this is no letter"},
        {"a,b,c,d,e->a", "column 9: more than 4 operands"},
        {"abcdefghi->a", "column 9: an operand has more than 8 letters"},
        {"abcdefgh,ij", "column 12: the implied output has more than 8 letters"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_einsum einsum;
        ASSERT_INT(ms_einsum_parse(cx, rows[i].text, &einsum), MS_EINPUT);
        const char *got = test_messages(cx);
        if (strstr(got, rows[i].want) == NULL || strstr(got, "hint") == NULL)
            fail_msg("\"%s\": got \"%s\", want \"%s\" and a hint", rows[i].text, got,
                     rows[i].want);
    }
}

static void letters_are_classified(void **state)
{
    (void)state;
    const struct {
        const char *text;
        char letter;
        ms_letter_kind want;
    } rows[] = {
        {"bsh,hf->bsf", 'b', MS_LETTER_FREE},
        {"bsh,hf->bsf", 'f', MS_LETTER_FREE},
        {"bsh,hf->bsf", 'h', MS_LETTER_CONTRACTION},
        {"bnqd,bnkd->bnqk", 'b', MS_LETTER_BATCH},
        {"bnqd,bnkd->bnqk", 'd', MS_LETTER_CONTRACTION},
        {"sbh,h->sbh", 'h', MS_LETTER_BATCH},
        {"bh->b", 'h', MS_LETTER_SUMMED},
        {"bh->b", 'b', MS_LETTER_FREE},
        {"ax,ab,bc->c", 'x', MS_LETTER_SUMMED},
        {"ax,ab,bc->c", 'a', MS_LETTER_CONTRACTION},
        {"ab,ac,d->ad", 'a', MS_LETTER_FREE}, /* a is in two of three inputs */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_einsum einsum = parsed(rows[i].text);
        ASSERT_INT(ms_einsum_letter_kind(&einsum, rows[i].letter), rows[i].want);
    }
}

static void gradients_swap_the_letters_of_input_and_output(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int input;
        const char *want;
    } rows[] = {
        {"bsh,hf->bsf", 0, "bsf,hf->bsh"},
        {"bsh,hf->bsf", 1, "bsh,bsf->hf"},
        {"bh->b", 0, "b->bh"}, /* the gradient of a sum is a broadcast */
        {"ab,bc,cd->ad", 1, "ab,ad,cd->bc"},
        {"i,i->", 0, ",i->i"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_einsum einsum = parsed(rows[i].text);
        ms_einsum gradient = ms_einsum_gradient(&einsum, rows[i].input);
        ASSERT_TEXT(ms_einsum_text(test_cx()->arena, &gradient), rows[i].want);
    }
}

/* ---- rules: "R", "P", "M" (partial max), or a letter with a split factor ---- */

static ms_placement placement(const char *text)
{
    if (text[0] == 'R')
        return ms_replicate;
    if (text[0] == 'P')
        return (ms_placement){.kind = MS_PARTIAL_SUM};
    if (text[0] == 'M')
        return (ms_placement){.kind = MS_PARTIAL_MAX};
    ms_placement shard = ms_shard(text[0]);
    shard.split_factor = (short)(text[1] != '\0' ? text[1] - '0' : 0);
    return shard;
}

static void check_placement(const char *label, ms_placement got, const char *want)
{
    if (!ms_placement_equal(got, placement(want)))
        fail_msg("%s: got kind %d dim %c factor %d, want %s", label, got.kind,
                 got.dim == 0 ? '-' : got.dim, got.split_factor, want);
}

typedef struct rule_row {
    const char *text;
    const char *inputs[3];
    const char *output;
    const char *gradients[3];
} rule_row;

/* Shardings of inputs, output and gradients by GSPMD (arXiv 2105.04663) section 3.2
 * and DTensor's _einsum_strategy.py; the first rows are the patterns of Megatron-LM
 * (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2) and of
 * fully sharded data parallelism. */
static const rule_row rows[] = {
    /* column-parallel weight: the input's gradient is a partial sum */
    {"sbi,io->sbo", {"R", "o"}, "o", {"P", "o"}},
    /* row-parallel weight: the output is a partial sum */
    {"sbi,io->sbo", {"i", "i"}, "P", {"i", "i"}},
    /* scale of a norm under sequence parallelism */
    {"sbh,h->sbh", {"s", "R"}, "s", {"s", "P"}},
    /* data parallelism; fully sharded, too, once the weight is gathered */
    {"sbi,io->sbo", {"b", "R"}, "b", {"b", "P"}},
    {"sbi,io->sbo", {"R", "R"}, "R", {"R", "R"}},
    /* batch letters: attention scores split by heads */
    {"bnqd,bnkd->bnqk", {"n", "n"}, "n", {"n", "n"}},
    /* An einsum is linear in each input. If one input is partial, the output is partial;
     * the gradient of the partial input is whole, the gradients of the other inputs are
     * partial. */
    {"sbi,io->sbo", {"P", "R"}, "P", {"R", "P"}},
    {"ab,bc,cd->ad", {"R", "P", "R"}, "P", {"P", "R", "P"}},
    /* strided shards propagate unchanged */
    {"sbi,io->sbo", {"R", "o2"}, "o2", {"P", "o2"}},
    {"bnqd,bnkd->bnqk", {"n2", "n2"}, "n2", {"n2", "n2"}},
    /* a summed letter of a single input makes the output partial */
    {"bh->b", {"h"}, "P", {"h"}},
    {"bh->b", {"b"}, "b", {"b"}},
    {"ax,ab->b", {"x", "R"}, "P", {"x", "P"}},
    /* three inputs: those without the sharded letter have partial gradients */
    {"ab,bc,cd->ad", {"b", "b", "R"}, "P", {"b", "b", "P"}},
    {"ab,ac,ad->abcd", {"a", "a", "a"}, "a", {"a", "a", "a"}},
};

static void placements_pass_as_in_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const rule_row *row = &rows[i];
        ms_einsum einsum = parsed(row->text);
        ms_placement inputs[MS_EINSUM_MAX_INPUTS];
        for (int k = 0; k < einsum.num_inputs; k++)
            inputs[k] = placement(row->inputs[k]);
        ms_spread spread;
        ASSERT_INT(ms_einsum_spread_of(&einsum, inputs, &spread), MS_CONFLICT_NONE);
        check_placement(row->text, ms_einsum_output_placement(&einsum, spread),
                        row->output);
        for (int k = 0; k < einsum.num_inputs; k++) {
            check_placement(row->text, ms_einsum_operand_placement(&einsum, spread, k),
                            row->inputs[k]);
            ms_einsum gradient = ms_einsum_gradient(&einsum, k);
            ms_spread back = ms_einsum_gradient_spread(spread, k);
            check_placement(row->text, ms_einsum_output_placement(&gradient, back),
                            row->gradients[k]);
        }
    }
}

/* Computing gradients needs no redistribution: the same rules accept the inputs as
 * sharded in forward, and the output's gradient sharded as the output. */
static void backward_needs_nothing_moved(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_einsum einsum = parsed(rows[i].text);
        for (int k = 0; k < einsum.num_inputs; k++) {
            ms_placement inputs[MS_EINSUM_MAX_INPUTS];
            for (int j = 0; j < einsum.num_inputs; j++)
                inputs[j] = placement(rows[i].inputs[j]);
            ms_spread spread;
            ms_einsum_spread_of(&einsum, inputs, &spread);
            ms_einsum gradient = ms_einsum_gradient(&einsum, k);
            ms_spread back = ms_einsum_gradient_spread(spread, k);
            const char *seed = rows[i].output[0] == 'P' ? "R" : rows[i].output;
            for (int j = 0; j < einsum.num_inputs; j++)
                check_placement(rows[i].text,
                                ms_einsum_operand_placement(&gradient, back, j),
                                j == k ? seed : rows[i].inputs[j]);
        }
    }
}

static void conflicts_are_told_apart(void **state)
{
    (void)state;
    const struct {
        const char *text, *first, *second;
        ms_einsum_conflict want;
    } cases[] = {
        {"bsh,hf->bsf", "P", "P", MS_CONFLICT_TWO_PARTIALS},
        {"bsh,hf->bsf", "M", "R", MS_CONFLICT_NOT_A_SUM},
        {"bsh,hf->bsf", "P", "f", MS_CONFLICT_PARTIAL_SHARD},
        {"bsh,hf->bsf", "b", "P", MS_CONFLICT_PARTIAL_SHARD},
        {"bsh,hf->bsf", "h", "h2", MS_CONFLICT_STRIDED},
        {"bsh,hf->bsf", "h2", "h4", MS_CONFLICT_STRIDED},
        {"bsh,hf->bsf", "h", "R", MS_CONFLICT_ONE_SIDED},
        {"bsh,hf->bsf", "R", "h", MS_CONFLICT_ONE_SIDED},
        {"bsh,hf->bsf", "b", "f", MS_CONFLICT_TWO_LETTERS},
        {"bsh,hf->bsf", "h2", "h2", MS_CONFLICT_NONE},
        {"bsh,hf->bsf", "h", "h", MS_CONFLICT_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_einsum einsum = parsed(cases[i].text);
        ms_spread spread;
        ms_placement inputs[] = {placement(cases[i].first), placement(cases[i].second)};
        ms_einsum_conflict got = ms_einsum_spread_of(&einsum, inputs, &spread);
        if (got != cases[i].want)
            fail_msg("%s %s: got \"%s\", want \"%s\"", cases[i].first, cases[i].second,
                     ms_einsum_conflict_texts[got],
                     ms_einsum_conflict_texts[cases[i].want]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(einsums_are_read_as_they_are_written),
        cmocka_unit_test(bad_einsums_are_refused_with_the_column),
        cmocka_unit_test(letters_are_classified),
        cmocka_unit_test(gradients_swap_the_letters_of_input_and_output),
        cmocka_unit_test(placements_pass_as_in_the_table),
        cmocka_unit_test(backward_needs_nothing_moved),
        cmocka_unit_test(conflicts_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
