/* Files with tables given to commands are read only once, so that a pipe can be given
 * for any table. */
#include "cli/options/tables.h"
#include "tests/test.h"

#include <string.h>
#include <unistd.h>

static ms_table_file read_stdin(ms_ctx *cx, const char *text)
{
    int ends[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
    assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
    close(ends[0]);
    close(ends[1]);
    ms_table_file table;
    ASSERT_OK(ms_table_file_load(cx, "-", &table), cx);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    close(saved);
    clearerr(stdin);
    return table;
}

static void standard_input_is_told_by_its_header(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ms_table_kind kind;
    } cases[] = {
        {"source,system,gpus,nodes,collective,algo,bytes,time_us\n",
         MS_TABLE_COLLECTIVES},
        {"source,gpu,op,m,n,k_or_seq,head_dim,causal,dtype,tflops\n", MS_TABLE_KERNELS},
        {"id,source\n", MS_TABLE_RUNS},
        {"", MS_TABLE_RUNS},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_table_file table = read_stdin(cx, cases[i].text);
        ASSERT_INT(table.kind, cases[i].kind);
        ASSERT_TEXT(table.name, "standard input");
        ASSERT_INT(table.length, strlen(cases[i].text));
        assert_memory_equal(table.text, cases[i].text, table.length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_input_is_told_by_its_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
