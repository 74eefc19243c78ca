/* Rows of measured collectives become groups on clusters, or get a reason why not.
 * tests/data/collectives_sample.csv holds cited measurements, and rows that cannot be
 * priced, one for each reason. */
#include "sim/validate/collective_validation.h"
#include "tests/support/run_tables.h"
#include "tests/test.h"

#include <string.h>

#define SAMPLE MS_SOURCE_DIR "/tests/data/collectives_sample.csv"
#define HEADER "source,system,gpus,nodes,collective,algo,bytes,time_us\n"

static ms_collective_rows load_sample(ms_ctx *cx)
{
    ms_collective_rows rows;
    ASSERT_OK(ms_collective_rows_load(cx, SAMPLE, &rows), cx);
    return rows;
}

static const ms_collective_row *on_line(const ms_collective_rows *rows, int line)
{
    for (int i = 0; i < rows->num_rows; i++)
        if (rows->rows[i].line == line)
            return &rows->rows[i];
    fail_msg("no row on line %d", line);
    return NULL;
}

/* Reads a file of the header and one row. */
static ms_collective_row read_one(ms_ctx *cx, const char *row)
{
    ms_collective_rows rows;
    const char *text = ms_arena_printf(cx->arena, HEADER "%s\n", row);
    ASSERT_OK(ms_collective_rows_read(cx, "one", text, strlen(text), &rows), cx);
    ASSERT_INT(rows.num_rows, 1);
    return rows.rows[0];
}

static void systems_become_clusters(void **state)
{
    (void)state;
    static const struct {
        const char *row, *cluster;
    } cases[] = {
        {"s,AWS p5en.48xlarge (H200; EFA),128,16,all_reduce,,1e6,100", "h200-efa"},
        {"s,AWS p6-b200.48xlarge,32,4,all_gather,auto,1e6,100", "b200-efa"},
        {"s,AWS p6-b200.48xlarge,8,1,all_gather,auto,1e6,100", "hgx-b200"},
        {"s,GCP a3-megagpu-8g (H100 TCPXO),16,2,all_gather,,1e6,100", "h100-tcpxo"},
        {"s,GCP a3-highgpu-8g (H100 TCPX),16,2,all_gather,,1e6,100", "h100-tcpx"},
        {"s,OCI BM.GPU.B4.8 (A100-40; RoCE),16,2,all_reduce,,1e6,100", "a100-roce"},
        {"s,H20 of a node,8,1,alltoall,,1e6,100", "hgx-h20"},
        {"s,H200 of a node,8,1,alltoall,,1e6,100", "hgx-h200"},
        {"s,GB200 NVL72,144,36,all_reduce,,1e6,100", "gb200-nvl72"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_collective_row row = read_one(cx, cases[i].row);
        assert_null(row.reason);
        ASSERT_TEXT(row.cluster->name, cases[i].cluster);
    }
}

/* A group's ranks are spread evenly over its nodes: 2 GPUs in 2 nodes have one NIC
 * each, 4 GPUs in 2 nodes have two NICs per node. */
static void groups_fill_nodes_side_by_side(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    double s_per_byte[2];
    static const char *const rows[] = {"s,H100,2,2,sendrecv,,1e12,1e6",
                                       "s,H100,4,2,all_gather,,1e12,1e6"};
    for (int i = 0; i < 2; i++) {
        ms_collective_row row = read_one(cx, rows[i]);
        ms_collective_law law = ms_collective_row_law(&row);
        s_per_byte[i] = ms_collective_s(&law, 1e12) / 1e12;
    }
    ASSERT_NEAR(s_per_byte[0], 1.0 / (0.73 * 50e9), 1e-3);
    ASSERT_NEAR(s_per_byte[1], 0.75 / (2.0 * 0.93 * 50e9), 1e-2); /* two NICs per node */
}

static void rows_without_a_law_have_a_reason(void **state)
{
    (void)state;
    static const struct {
        int line;
        const char *reason;
    } cases[] = {{14, "launch"},     {15, "peer access"}, {16, "no cluster"},
                 {17, "collective"}, {18, "algorithm"},   {19, "not stated"},
                 {20, "evenly"},     {21, "malformed"},   {22, "malformed"},
                 {23, "malformed"},  {24, "malformed"}};
    ms_ctx *cx = test_cx();
    ms_collective_rows rows = load_sample(cx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ms_collective_row *row = on_line(&rows, cases[i].line);
        assert_non_null(row->reason);
        if (strstr(row->reason, cases[i].reason) == NULL)
            fail_msg("line %d: %s", row->line, row->reason);
        ASSERT_INT(row->fault != NULL, strcmp(row->reason, "malformed") == 0);
    }
}

/* A row counts as fitted when a coefficient of its cost law names the row's source as
 * the one it was fitted to. */
static void fitted_rows_are_told_apart(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collective_rows rows = load_sample(cx);
    /* a coefficient is fitted to this row's source: nccl-tests of H100 */
    assert_true(on_line(&rows, 2)->fitted);
    /* a coefficient is fitted to this row's source: AWS p5 (H100) */
    assert_true(on_line(&rows, 6)->fitted);
    /* a row of H100 with RoCE, whose coefficients are fitted to A100 */
    assert_false(on_line(&rows, 8)->fitted);
    /* a row of H20, to which InfiniBand's latency is fitted */
    assert_true(on_line(&rows, 11)->fitted);
    assert_false(on_line(&rows, 12)->fitted);
}

static void a_forced_algorithm_is_priced(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collective_rows rows = load_sample(cx);
    ms_collective_validation v;
    ms_collective_validate(cx, &rows, &v);
    int ring = (int)(on_line(&rows, 9) - rows.rows),
        nvls = (int)(on_line(&rows, 10) - rows.rows);
    ms_collective_law law = ms_collective_row_law(&rows.rows[ring]);
    ASSERT_NEAR(v.predicted_s[ring],
                ms_collective_by_s(&law, MS_ALGORITHM_RING, rows.rows[ring].size_bytes),
                1e-15);
    ASSERT_NEAR(v.predicted_s[nvls],
                ms_collective_by_s(&law, MS_ALGORITHM_NVLS, rows.rows[nvls].size_bytes),
                1e-15);
    assert_true(v.predicted_s[ring] != v.predicted_s[nvls]);
}

/* Three large sizes of one system are measured at 1/1.1, 1/1.3 and 1/0.8 of the
 * prediction: errors +10, +30 and -20 %. The small size is counted separately. */
static void errors_are_medians_of_sizes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    static const double bytes[] = {1048576, 16777216, 268435456, 1048575};
    static const double ratio[] = {1.1, 1.3, 0.8, 0.5};
    const char *text = HEADER;
    for (int i = 0; i < 4; i++) {
        ms_collective_row row = read_one(
            cx, ms_arena_printf(cx->arena, "s,H100,8,1,all_gather,,%.0f,1", bytes[i]));
        ms_collective_law law = ms_collective_row_law(&row);
        text =
            ms_arena_printf(cx->arena, "%ss,H100,8,1,all_gather,,%.0f,%.17g\n", text,
                            bytes[i], 1e6 * ms_collective_s(&law, bytes[i]) / ratio[i]);
    }
    ms_collective_rows rows;
    ms_collective_validation v;
    ASSERT_OK(ms_collective_rows_read(cx, "made", text, strlen(text), &rows), cx);
    ms_collective_validate(cx, &rows, &v);
    ASSERT_INT(v.num_priced, 4);
    ASSERT_INT(v.num_systems, 1);
    ASSERT_INT(v.num_details, 1);
    ASSERT_INT(v.systems[0].large.num_rows, 3);
    ASSERT_NEAR(v.systems[0].large.median_ape_frac, 0.2, 1e-9);
    ASSERT_NEAR(v.systems[0].large.bias_frac, 0.1, 1e-9);
    ASSERT_NEAR(v.systems[0].large.p90_ape_frac, 0.28, 1e-9);
    ASSERT_INT(v.systems[0].small.num_rows, 1);
    ASSERT_NEAR(v.systems[0].small.bias_frac, -0.5, 1e-9);
}

static void a_header_without_columns_is_an_error(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collective_rows rows;
    static const char text[] = "source,system,gpus,nodes,collective,algo,bytes\n";
    ASSERT_INT(ms_collective_rows_read(cx, "t", text, sizeof text - 1, &rows), MS_EINPUT);
    ASSERT_INT(ms_collective_rows_read(cx, "t", "", 0, &rows), MS_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systems_become_clusters),
        cmocka_unit_test(groups_fill_nodes_side_by_side),
        cmocka_unit_test(rows_without_a_law_have_a_reason),
        cmocka_unit_test(fitted_rows_are_told_apart),
        cmocka_unit_test(a_forced_algorithm_is_priced),
        cmocka_unit_test(errors_are_medians_of_sizes),
        cmocka_unit_test(a_header_without_columns_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
