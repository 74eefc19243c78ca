/* Tests of training tokens: synthetic sequences that a model can learn, and tokens read
 * from files. */
#include "exec/params/tokens.h"

#include "exec/params/safetensors.h"
#include "tests/test.h"

#include <unistd.h>

#define LENGTH 64

static void targets_are_the_next_inputs(void **state)
{
    (void)state;
    ms_tokens tokens = {
        .seed = 1, .vocab = 50, .sequence_length = LENGTH, .global_batch = 4};
    int inputs[LENGTH], targets[LENGTH];
    for (long sequence = 0; sequence < 8; sequence++) {
        ms_tokens_sequence(&tokens, 3, sequence, inputs, targets);
        for (int i = 0; i < LENGTH; i++) {
            assert_true(inputs[i] >= 0 && inputs[i] < 50);
            if (i > 0)
                ASSERT_INT(inputs[i], targets[i - 1]);
        }
    }
}

/* Nine in ten synthetic tokens follow the rule; a few more do where a random token
 * happens to be the right one. */
static void synthetic_tokens_follow_a_rule(void **state)
{
    (void)state;
    static const long vocabs[] = {2, 32, 64, 100, 50257};
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++) {
        long num_symbols = vocabs[v] < 256 ? vocabs[v] : 256;
        long stride = vocabs[v] / num_symbols;
        ms_tokens tokens = {.seed = 7, .vocab = vocabs[v], .sequence_length = LENGTH};
        int inputs[LENGTH], targets[LENGTH], num_followed = 0;
        for (long sequence = 0; sequence < 200; sequence++) {
            ms_tokens_sequence(&tokens, 0, sequence, inputs, targets);
            for (int i = 0; i < LENGTH; i++)
                num_followed +=
                    targets[i] == (5 * (inputs[i] / stride) + 7) % num_symbols * stride;
        }
        double num = 200.0 * LENGTH, want = 0.9 + 0.1 / (double)num_symbols;
        assert_true(fabs(num_followed / num - want) < 4.0 * sqrt(0.09 / num));
    }
}

static void sequences_differ_and_stay(void **state)
{
    (void)state;
    ms_tokens tokens = {.seed = 1, .vocab = 64, .sequence_length = LENGTH};
    int first[LENGTH], other[LENGTH], targets[LENGTH];
    ms_tokens_sequence(&tokens, 5, 2, first, targets);
    static const long others[3][2] = {{5, 3}, {6, 2}, {2, 5}};
    for (int i = 0; i < 3; i++) {
        ms_tokens_sequence(&tokens, others[i][0], others[i][1], other, targets);
        assert_memory_not_equal(first, other, sizeof first);
    }
    ms_tokens_sequence(&tokens, 5, 2, other, targets);
    assert_memory_equal(first, other, sizeof first);
    tokens.seed = 2;
    ms_tokens_sequence(&tokens, 5, 2, other, targets);
    assert_memory_not_equal(first, other, sizeof first);
    /* a sequence of half the length equals the beginning of the longer one */
    tokens = (ms_tokens){.seed = 1, .vocab = 64, .sequence_length = LENGTH / 2};
    ms_tokens_sequence(&tokens, 5, 2, other, targets);
    assert_memory_equal(first, other, sizeof first / 2);
}

/* ---- files ---- */

static ms_status read_text(ms_ctx *cx, const char *text, ms_tokens *tokens)
{
    return ms_tokens_read(cx, "t.txt", text, strlen(text), tokens);
}

static void a_file_is_read_around_its_end(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_tokens tokens = {.vocab = 10, .sequence_length = 3, .global_batch = 2};
    ASSERT_OK(read_text(cx, "  0 1 2\n3\t4\r\n\n5 6 ", &tokens), cx);
    ASSERT_INT(tokens.num_from_file, 7);
    ASSERT_NEAR(ms_tokens_passes(&tokens, 7), 6.0, 0);
    for (long step = 0; step < 4; step++)
        for (long sequence = 0; sequence < 2; sequence++) {
            int inputs[3], targets[3];
            ms_tokens_sequence(&tokens, step, sequence, inputs, targets);
            for (long i = 0; i < 3; i++) {
                ASSERT_INT(inputs[i], ((step * 2 + sequence) * 3 + i) % 7);
                ASSERT_INT(targets[i], ((step * 2 + sequence) * 3 + i + 1) % 7);
            }
        }
}

static void wrong_tokens_name_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line, column;
    } wrong[] = {
        {"0 1\n 2 10 3", "token 10, but the vocabulary ends with 9", 2, 4},
        {"0 99999999999999999999999", "token 99999999999999999999999", 1, 3},
        {"0 1 -1", "\"-1\" is not a token", 1, 5},
        {"0 1\n\nx,2", "\"x,2\" is not a token", 3, 1},
        {"0 1.0 2 3 4", "\"1.0\" is not a token", 1, 3},
        {"0 1 2", "3 tokens, but a sequence of 3 and its next token need 4", 0, 0},
        {"", "0 tokens", 0, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ms_ctx *cx = test_cx();
        ms_tokens tokens = {.vocab = 10, .sequence_length = 3};
        ASSERT_INT(read_text(cx, wrong[i].text, &tokens), MS_EINPUT);
        if (strstr(cx->first->message, wrong[i].message) == NULL)
            fail_msg("got \"%s\", want \"%s\"", cx->first->message, wrong[i].message);
        ASSERT_INT(cx->first->loc.line, wrong[i].line);
        ASSERT_INT(cx->first->loc.column, wrong[i].column);
        assert_null(tokens.from_file);
    }
}

/* ---- safetensors ---- */

static ms_status load_named(ms_ctx *cx, const char *ending, ms_safe_tensor *tensors,
                            int num, ms_tokens *tokens)
{
    ms_safe_file file = {.num_tensors = num, .tensors = tensors};
    const char *path =
        ms_arena_printf(cx->arena, "build/test_tokens.%ld.%s", (long)getpid(), ending);
    ASSERT_OK(ms_safetensors_write(cx, path, &file), cx);
    ms_status status = ms_tokens_load(cx, path, tokens);
    remove(path);
    return status;
}

static ms_status load_tensors(ms_ctx *cx, ms_safe_tensor *tensors, int num,
                              ms_tokens *tokens)
{
    return load_named(cx, "safetensors", tensors, num, tokens);
}

static const double some_inputs[] = {1, 2, 3, 4, 5, 6},
                    some_labels[] = {2, 3, 9, 5, 6, 0};

static void labels_come_from_their_tensor(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_safe_tensor tensors[] = {{.name = "input_ids",
                                 .type = MS_SAFE_I64,
                                 .num_dims = 2,
                                 .shape = {2, 3},
                                 .count = 6,
                                 .values = some_inputs},
                                {.name = "labels",
                                 .type = MS_SAFE_I32,
                                 .num_dims = 2,
                                 .shape = {2, 3},
                                 .count = 6,
                                 .values = some_labels}};
    ms_tokens tokens = {.vocab = 10, .sequence_length = 3, .global_batch = 3};
    ASSERT_OK(load_tensors(cx, tensors, 2, &tokens), cx);
    ASSERT_NEAR(ms_tokens_passes(&tokens, 4), 6.0, 0);
    for (long sequence = 0; sequence < 5; sequence++) {
        int inputs[3], targets[3];
        ms_tokens_sequence(&tokens, 1, sequence, inputs, targets);
        for (long i = 0; i < 3; i++) {
            ASSERT_INT(inputs[i], some_inputs[(sequence + 3) % 2 * 3 + i]);
            ASSERT_INT(targets[i], some_labels[(sequence + 3) % 2 * 3 + i]);
        }
    }
}

static void safetensors_are_known_by_their_first_bytes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_safe_tensor tensors[] = {
        {"input_ids", MS_SAFE_I64, 2, {2, 3}, 6, some_inputs},
        {"labels", MS_SAFE_I64, 2, {2, 3}, 6, some_labels},
    };
    ms_tokens tokens = {.vocab = 10, .sequence_length = 3, .global_batch = 1};
    ASSERT_OK(load_named(cx, "bin", tensors, 2, &tokens), cx);
    ASSERT_INT(tokens.num_from_file, 6);
    ASSERT_INT(tokens.labels[2], 9);
}

static void text_is_known_by_its_first_bytes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path =
        ms_arena_printf(cx->arena, "build/test_tokens.%ld.text", (long)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("1 2 3 4 5 6 7 {", file);
    assert_int_equal(fclose(file), 0);
    ms_tokens tokens = {.vocab = 10, .sequence_length = 3, .global_batch = 1};
    ASSERT_INT(ms_tokens_load(cx, path, &tokens), MS_EINPUT);
    assert_non_null(strstr(cx->first->message, "\"{\" is not a token"));
    assert_non_null(strstr(cx->first->hint, "safetensors with input_ids"));
    remove(path);
}

static void wrong_tensors_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        ms_safe_type type;
        long vocab, rows, length;
        const char *message;
    } wrong[] = {
        {"input_ids", "lables", MS_SAFE_I64, 10, 2, 3, "no tensor \"labels\""},
        {"input", "labels", MS_SAFE_I64, 10, 2, 3, "no tensor \"input_ids\""},
        {"input_ids", "labels", MS_SAFE_F32, 10, 2, 3, "must be I64 or I32"},
        {"input_ids", "labels", MS_SAFE_I64, 10, 2, 4, "must be [sequences, 4]"},
        {"input_ids", "labels", MS_SAFE_I64, 10, 1, 3, "different numbers"},
        {"input_ids", "labels", MS_SAFE_I64, 9, 2, 3,
         "\"labels\"[0, 2] is 9, but the vocabulary ends with 8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ms_ctx *cx = test_cx();
        ms_safe_tensor tensors[] = {{.name = wrong[i].first,
                                     .type = wrong[i].type,
                                     .num_dims = 2,
                                     .shape = {2, 3},
                                     .count = 6,
                                     .values = some_inputs},
                                    {.name = wrong[i].second,
                                     .type = wrong[i].type,
                                     .num_dims = 2,
                                     .shape = {wrong[i].rows, 3},
                                     .count = wrong[i].rows * 3,
                                     .values = some_labels}};
        ms_tokens tokens = {.vocab = wrong[i].vocab, .sequence_length = wrong[i].length};
        ASSERT_INT(load_tensors(cx, tensors, 2, &tokens), MS_EINPUT);
        if (strstr(cx->first->message, wrong[i].message) == NULL)
            fail_msg("got \"%s\", want \"%s\"", cx->first->message, wrong[i].message);
    }
}

static void missing_files_are_errors(void **state)
{
    (void)state;
    ms_tokens tokens = {.vocab = 10, .sequence_length = 3};
    ASSERT_INT(ms_tokens_load(test_cx(), "build/no/such.txt", &tokens), MS_EIO);
    ASSERT_INT(ms_tokens_load(test_cx(), "build/no/such.safetensors", &tokens), MS_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_the_next_inputs),
        cmocka_unit_test(synthetic_tokens_follow_a_rule),
        cmocka_unit_test(sequences_differ_and_stay),
        cmocka_unit_test(a_file_is_read_around_its_end),
        cmocka_unit_test(wrong_tokens_name_line_and_column),
        cmocka_unit_test(labels_come_from_their_tensor),
        cmocka_unit_test(safetensors_are_known_by_their_first_bytes),
        cmocka_unit_test(text_is_known_by_its_first_bytes),
        cmocka_unit_test(wrong_tensors_are_refused),
        cmocka_unit_test(missing_files_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
