#include "sim/validate/collectives_fit.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define HEADER "source,system,gpus,nodes,collective,algo,bytes,time_us\n"
#define NAMED  "ai-dynamo/aiconfigurator@095f58a:x"

/* Rows from 512 bytes to 512 MiB of all-gather, reduce-scatter and all-to-all on 2, 4
 * and 8 GPUs. */
static const char *sweeps(ms_arena *arena, const char *source, const char *system)
{
    static const char *const collectives[] = {"all_gather", "reduce_scatter", "alltoall"};
    const char *text = "";
    for (int c = 0; c < 3; c++)
        for (int gpus = 2; gpus <= 8; gpus *= 2)
            for (int i = 9; i < 30; i++)
                text = ms_arena_printf(arena, "%s%s,%s,%d,1,%s,auto,%ld,1\n", text,
                                       source, system, gpus, collectives[c], 1L << i);
    return text;
}

static ms_collective_rows read_rows(ms_ctx *cx, const char *lines)
{
    ms_collective_rows rows;
    const char *text = ms_arena_printf(cx->arena, HEADER "%s", lines);
    ASSERT_OK(ms_collective_rows_read(cx, "test", text, strlen(text), &rows), cx);
    return rows;
}

/* Replaces the measured time of every row by that of the cost law with link coefficients
 * other than the shipped ones: 6 us base, 2 us a step, 0.7 of the bandwidth. */
static void measure(ms_ctx *cx, ms_collective_rows *rows)
{
    ms_profile *other = MS_NEW(cx->arena, ms_profile);
    for (int i = 0; i < rows->num_rows; i++) {
        ms_collective_row row = rows->rows[i];
        assert_null(row.reason);
        *other = *row.profile;
        other->link_base_s.value = 6e-6;
        other->link_step_s.value = 2e-6;
        other->link_frac.value = 0.7;
        row.profile = other;
        rows->rows[i].measured_s = ms_collective_row_s(&row);
    }
}

static const ms_law_value *value_of(const ms_collectives_fit *fit, const char *key)
{
    for (int i = 0; i < fit->num_fits; i++)
        for (int j = 0; j < fit->fits[i].law.num_values; j++)
            if (strcmp(fit->fits[i].law.values[j].key, key) == 0)
                return &fit->fits[i].law.values[j];
    return NULL;
}

static bool is_undetermined(const ms_collectives_fit *fit, const char *profile,
                            const char *key)
{
    for (int i = 0; i < fit->num_undetermined; i++)
        if (strcmp(fit->untold[i].profile, profile) == 0 &&
            strcmp(fit->untold[i].key, key) == 0)
            return true;
    return false;
}

static void fit_finds_what_made_the_times(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collective_rows rows =
        read_rows(cx, sweeps(cx->arena, NAMED, "H100-SXM5-80GB 8-GPU"));
    ms_collectives_fit fit;
    measure(cx, &rows);
    ASSERT_OK(ms_collectives_fit_make(cx, &rows, false, &fit), cx);
    ASSERT_INT(fit.num_fits, 2);
    ASSERT_TEXT(fit.fits[0].law.law, "all_to_all");
    ASSERT_TEXT(fit.fits[1].law.law, "link");
    ASSERT_INT(fit.fits[1].law.fit.num_points, 126);
    ASSERT_INT(fit.fits[1].num_systems, 1);
    ASSERT_NEAR(value_of(&fit, "link.base")->fitted.value, 6e-6, 1e-3);
    ASSERT_NEAR(value_of(&fit, "link.step")->fitted.value, 2e-6, 1e-3);
    ASSERT_NEAR(value_of(&fit, "link.frac")->fitted.value, 0.7, 1e-3);
    /* the fit tried other values, but left the shipped profile as it was */
    const ms_profile *shipped = rows.rows[0].profile;
    ASSERT_NEAR(value_of(&fit, "link.base")->shipped, shipped->link_base_s.value, 0);
    assert_true(shipped->link_base_s.value < 5.9e-6);
}

/* A coefficient is fitted only to rows of the sources that it names. */
static void rows_of_other_sources_tell_nothing(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collective_rows rows =
        read_rows(cx, sweeps(cx->arena, "somebody/else@1:x", "H100 of a node"));
    ms_collectives_fit fit;
    ASSERT_OK(ms_collectives_fit_make(cx, &rows, false, &fit), cx);
    ASSERT_INT(fit.num_fits, 0);
    assert_true(is_undetermined(&fit, "h100-sxm", "link.step"));
    /* the profile marks link.step of this device as assumed, not as fitted */
    assert_false(is_undetermined(&fit, "h200-sxm", "link.step"));
}

/* Coefficients that no row depends on stay as they are: all-gathers do not determine
 * those of in-switch reduction (NVLS). */
static void what_no_row_moves_with_stays(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collective_rows rows =
        read_rows(cx, sweeps(cx->arena, NAMED, "H100-SXM5-80GB 8-GPU"));
    ms_collectives_fit fit;
    measure(cx, &rows);
    ASSERT_OK(ms_collectives_fit_make(cx, &rows, false, &fit), cx);
    assert_null(value_of(&fit, "nvls.base"));
    assert_true(is_undetermined(&fit, "h100-sxm", "nvls.base"));
    assert_false(is_undetermined(&fit, "h100-sxm", "link.base"));
}

/* A system that no coefficient is fitted to is priced with coefficients fitted to
 * other systems; with times made by these it has no error. */
static void systems_are_priced_by_others(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *both = ms_arena_printf(
        cx->arena, "%s%s", sweeps(cx->arena, NAMED, "H100-SXM5-80GB 8-GPU"),
        sweeps(cx->arena, "somebody/else@1:x", "H100 of a node"));
    ms_collective_rows rows = read_rows(cx, both);
    ms_collectives_fit fit;
    measure(cx, &rows);
    ASSERT_OK(ms_collectives_fit_make(cx, &rows, true, &fit), cx);
    ASSERT_INT(fit.num_systems, 4);
    for (int i = 0; i < fit.num_systems; i++) {
        const ms_system_errors *system = &fit.systems[i];
        assert_true(system->has_others);
        if (strcmp(system->law, "link") != 0)
            continue;
        ASSERT_INT(system->large.num_rows + system->small.num_rows, 126);
        assert_true(system->large.median_ape_frac < 1e-3);
        assert_true(system->shipped_large.median_ape_frac > 0.1);
    }
}

/* A system whose coefficients no other system's rows determine has no error by
 * coefficients of others. The shipped coefficients do not stand in for them, since these
 * were fitted to this very system. */
static void a_system_alone_has_no_error_by_others(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collective_rows rows =
        read_rows(cx, sweeps(cx->arena, NAMED, "H100-SXM5-80GB 8-GPU"));
    ms_collectives_fit fit;
    ASSERT_OK(ms_collectives_fit_make(cx, &rows, true, &fit), cx);
    ASSERT_INT(fit.num_systems, 2);
    assert_false(fit.systems[0].has_others);
    assert_true(isnan(fit.systems[0].large.median_ape_frac));
}

static void json_holds_shipped_beside_fitted(void **state)
{
    (void)state;
    static const char *const parts[] = {"\"meshsim.fit-collectives/1\"",
                                        "\"name\": \"link.base\"",
                                        "\"shipped\"",
                                        "\"fitted\"",
                                        "\"low\"",
                                        "\"high\"",
                                        "\"by_others_from_1_mib\"",
                                        "\"untold\""};
    ms_ctx *cx = test_cx();
    const char *both = ms_arena_printf(
        cx->arena, "%s%s", sweeps(cx->arena, NAMED, "H100-SXM5-80GB 8-GPU"),
        sweeps(cx->arena, "somebody/else@1:x", "H100 of a node"));
    ms_collective_rows rows = read_rows(cx, both);
    ms_collectives_fit fit;
    char *text = NULL;
    size_t length = 0;
    measure(cx, &rows);
    ASSERT_OK(ms_collectives_fit_make(cx, &rows, true, &fit), cx);
    FILE *file = open_memstream(&text, &length);
    ms_jout json = ms_jout_open(file);
    ms_collectives_fit_write_json(&json, &fit);
    ms_jout_close(&json);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("no %s in %.200s", parts[i], text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_finds_what_made_the_times),
        cmocka_unit_test(rows_of_other_sources_tell_nothing),
        cmocka_unit_test(what_no_row_moves_with_stays),
        cmocka_unit_test(systems_are_priced_by_others),
        cmocka_unit_test(a_system_alone_has_no_error_by_others),
        cmocka_unit_test(json_holds_shipped_beside_fitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
