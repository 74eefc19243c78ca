/* Plots of breakdown, roofline, collectives, topology, goodput and calibration: what their
 * data must satisfy, and pictures of small and large plans (skipped without gnuplot). */
#include "plots/breakdown_data.h"
#include "plots/calibration_data.h"
#include "plots/collectives_data.h"
#include "plots/goodput_data.h"
#include "plots/roofline_data.h"
#include "plots/topology_data.h"
#include "tests/unit/plots/picture.h"
#include "topo/allocation.h"

#include <math.h>
#include <string.h>

MS_PLOT_WRITER_FUNCTIONS(ms_breakdown)
MS_PLOT_WRITER_FUNCTIONS(ms_roofline)
MS_PLOT_WRITER_FUNCTIONS(ms_collectives_plot)
MS_PLOT_WRITER_FUNCTIONS(ms_topology_plot)
MS_PLOT_WRITER_FUNCTIONS(ms_goodput_plot)
MS_PLOT_WRITER_FUNCTIONS(ms_calibration_plot)

/* ---- breakdown ---- */

static void check_sum(const ms_priced_plan *plan)
{
    double parts[MS_NUM_STEP_PARTS], sum_s = 0.0, exposed_s = 0.0;
    ms_step_parts(&plan->prediction, parts);
    for (int i = 0; i < MS_NUM_STEP_PARTS; i++) {
        assert_true(parts[i] >= 0.0);
        sum_s += parts[i];
        exposed_s += i >= MS_PART_TP && i <= MS_PART_OTHER ? parts[i] : 0.0;
    }
    ASSERT_NEAR(sum_s, plan->prediction.step_s, 1e-9 * plan->prediction.step_s);
    ASSERT_NEAR(exposed_s, plan->prediction.exposed_comm_s,
                1e-9 * plan->prediction.step_s);
}

static void parts_sum_to_the_step(void **state)
{
    (void)state;
    for (long zero = 0; zero <= 3; zero++) {
        ms_ctx *cx = test_cx();
        ms_plan dense = plan_of("8b", 32, 4, 2),
                experts = plan_of("mixtral-8x7b", 64, 4, 2);
        dense.zero = experts.zero = zero;
        dense.size[MS_DP_REPLICATE] = 2;
        dense.size[MS_DP_SHARD] = 2;
        experts.ep = 8;
        ms_priced_plan one = priced(cx, &dense, NULL), two = priced(cx, &experts, NULL);
        check_sum(&one);
        check_sum(&two);
        double parts[MS_NUM_STEP_PARTS];
        ms_step_parts(&two.prediction, parts);
        assert_true(parts[MS_PART_TP] > 0.0 && parts[MS_PART_EP] > 0.0);
    }
}

static void breakdowns_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_priced_plan plans[MS_MAX_PLOT_PLANS];
    for (int i = 0; i < MS_MAX_PLOT_PLANS; i++) {
        ms_plan plan = plan_of("8b", 32L << i % 3, 1L << i % 2, 1L << i % 4);
        plans[i] = priced(cx, &plan, "a_name_that_is_longer_than_its_place_at_the_left");
    }
    ms_plan alone = plan_of("8b", 1, 1, 1);
    ms_priced_plan one = priced(cx, &alone, NULL);
    ms_breakdown plot = {cx->arena, 1, &one};
    check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_breakdown, &plot), "compute",
                  10);
    plot = (ms_breakdown){cx->arena, MS_MAX_PLOT_PLANS, plans};
    check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_breakdown, &plot),
                  "Fastest of 12 plans", 40);
    ms_plan large = plan_of("405b", 16384, 16, 8);
    one = priced(cx, &large, "405b");
    one.prediction.step_low_s = one.prediction.step_high_s = (double)NAN;
    plot = (ms_breakdown){cx->arena, 1, &one};
    check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_breakdown, &plot), "bubble", 10);
}

/* ---- roofline ---- */

static void make_roofline(ms_ctx *cx, const ms_plan *plan, ms_roofline *out)
{
    ms_workload *workload;
    ms_explanation *explanation = MS_NEW(cx->arena, ms_explanation);
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(
        ms_explain(cx, workload, plan, &(ms_explain_options){.rank = -1}, explanation),
        cx);
    ASSERT_OK(ms_roofline_make(cx, explanation, out), cx);
    ms_workload_close(workload);
}

static void kernels_are_below_the_roof(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("8b", 8, 1, 2);
    ms_roofline plot;
    make_roofline(cx, &plan, &plot);
    double sum_s = 0.0;
    bool groups[MS_NUM_KERNEL_GROUPS] = {false};
    for (int i = 0; i < plot.num_kernels; i++) {
        const ms_roofline_kernel *k = &plot.kernels[i];
        double rate = k->flop / k->seconds;
        assert_true(rate <= plot.peak_flop_per_s);
        assert_true(rate <= k->flop / k->bytes * plot.hbm_bytes_per_s);
        assert_true(i == 0 || k->seconds <= k[-1].seconds);
        sum_s += k->seconds;
        groups[k->group] = true;
    }
    assert_true(sum_s > 0.99 * plot.total_s && sum_s <= plot.total_s * (1.0 + 1e-12));
    assert_true(groups[MS_KERNELS_GEMM] && groups[MS_KERNELS_ATTENTION] &&
                groups[MS_KERNELS_POINTWISE] && !groups[MS_KERNELS_SCAN]);
}

static void rooflines_render(void **state)
{
    (void)state;
    const struct {
        const char *model;
        long gpus, pp, tp;
    } cases[] = {{"8b", 1, 1, 1}, {"405b", 16384, 16, 8}, {"nemotron-h-8b", 8, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(cases[i].model, cases[i].gpus, cases[i].pp, cases[i].tp);
        ms_roofline plot;
        make_roofline(cx, &plan, &plot);
        check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_roofline, &plot),
                      "arithmetic intensity", 20);
        plot.num_kernels = 1;
        check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_roofline, &plot), "TFLOP/s",
                      10);
    }
}

/* ---- collectives ---- */

static void make_collectives(ms_ctx *cx, const char *name, long gpus,
                             const ms_collective_rows *rows, ms_collectives_plot *out)
{
    const ms_cluster *cluster;
    const ms_profile *profile;
    ASSERT_OK(ms_cluster_load_for_job(cx, name, gpus, 0, &cluster), cx);
    ASSERT_OK(ms_profile_load_for(cx, cluster->device.profile, cluster, &profile), cx);
    *out = (ms_collectives_plot){.collective = MS_ALL_REDUCE};
    ASSERT_OK(ms_collectives_plot_make(cx, cluster, profile, gpus, rows, out), cx);
}

static void a_curve_for_each_tier(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_collectives_plot plot;
    make_collectives(cx, "hgx-h100", 2, NULL, &plot);
    ASSERT_INT(plot.num_curves, 1);
    make_collectives(cx, "hgx-h100", 16, NULL, &plot);
    ASSERT_INT(plot.num_curves, 2);
    ASSERT_TEXT(plot.curves[1].level->name, "leaf");
    make_collectives(cx, "hgx-h100", 16384, NULL, &plot);
    ASSERT_INT(plot.num_curves, 3);
    ASSERT_INT(plot.curves[1].ranks, 256);
    assert_true(ms_collective_s(&plot.curves[2].law, 1e9) >
                ms_collective_s(&plot.curves[0].law, 1e9));
}

static void measured_points_are_of_the_cluster(void **state)
{
    (void)state;
    static const char text[] =
        "source,system,gpus,nodes,collective,algo,bytes,time_us\n"
        "x,H100-SXM5-80GB 8-GPU NVSwitch,8,1,all_reduce,auto,4096,16\n"
        "x,H100-SXM5-80GB 8-GPU NVSwitch,4,1,all_reduce,auto,4096,15\n"
        "x,H100-SXM5-80GB 8-GPU NVSwitch,8,1,all_gather,auto,4096,14\n"
        "x,B200-SXM 8-GPU NVSwitch (p6-b200),8,1,all_reduce,auto,4096,13\n";
    ms_ctx *cx = test_cx();
    ms_collective_rows rows;
    ASSERT_OK(ms_collective_rows_read(cx, "rows", text, strlen(text), &rows), cx);
    ms_collectives_plot plot;
    make_collectives(cx, "hgx-h100", 16, &rows, &plot);
    ASSERT_INT(plot.num_measured, 1);
    ASSERT_NEAR(plot.curves[0].measured[0]->measured_s, 16e-6, 1e-12);
    check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_collectives_plot, &plot),
                  "points: 1 measured", 10);
}

static void collectives_render(void **state)
{
    (void)state;
    const struct {
        const char *cluster;
        long gpus;
    } cases[] = {{"hgx-h100", 2}, {"hgx-h100", 16384}, {"tpu-v5p", 8192}, {"cpu", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_collectives_plot plot;
        make_collectives(cx, cases[i].cluster, cases[i].gpus, NULL, &plot);
        check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_collectives_plot, &plot),
                      "bus bandwidth", 10);
    }
}

/* ---- topology ---- */

static ms_topology_plot topology_of(ms_ctx *cx, const char *name, long gpus, long tp)
{
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    *plan = plan_of(NULL, gpus, 1, tp);
    const ms_cluster *cluster;
    ASSERT_OK(ms_cluster_load_for_job(cx, name, gpus, 0, &cluster), cx);
    return ms_topology_plot_make(cx->arena, plan, cluster);
}

static int num_of_colour(const ms_drawing *drawing, unsigned rgb)
{
    int num = 0;
    for (int i = 0; i < drawing->num_boxes; i++)
        num += drawing->boxes[i].rgb == rgb;
    return num;
}

static void small_clusters_are_drawn_whole(void **state)
{
    (void)state;
    const unsigned gpu = 0x56B4E9;
    ms_ctx *cx = test_cx();
    for (long gpus = 1; gpus <= 64; gpus *= 2) {
        ms_topology_plot plot = topology_of(cx, "hgx-h100", gpus, 1);
        ms_drawing drawing = ms_topology_draw(&plot, 0.0, 0.0, 1132.0);
        ASSERT_INT(num_of_colour(&drawing, gpu), gpus);
    }
    ms_topology_plot plot = topology_of(cx, "hgx-h100", 12, 1);
    ms_drawing drawing = ms_topology_draw(&plot, 0.0, 0.0, 1132.0);
    ASSERT_INT(num_of_colour(&drawing, gpu), 12);
}

/* Folded counts and drawn domains together are all domains; nothing is outside. */
static void large_clusters_are_folded(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_topology_plot plot = topology_of(cx, "hgx-h100", 16384, 8);
    ASSERT_INT(plot.num_levels, 3);
    ASSERT_INT(ms_topology_domains(&plot, 0), 2048);
    ASSERT_INT(ms_topology_domains(&plot, 1), 64);
    ms_drawing d = ms_topology_draw(&plot, 10.0, 20.0, 1132.0);
    assert_true(d.width <= 1132.0);
    for (int i = 0; i < d.num_boxes; i++)
        assert_true(d.boxes[i].x >= 10.0 && d.boxes[i].y >= 20.0 &&
                    d.boxes[i].x + d.boxes[i].width <= 10.0 + d.width + 1e-9 &&
                    d.boxes[i].y + d.boxes[i].height <= 20.0 + d.height + 1e-9);
    int leaves = 0, folded = 0;
    for (int i = 0; i < d.num_texts; i++) {
        leaves += strncmp(d.texts[i].text, "leaf ", 5) == 0;
        if (strstr(d.texts[i].text, "more") != NULL)
            folded = atoi(d.texts[i].text + strlen("… "));
    }
    ASSERT_INT(leaves + folded, 64); /* the last fold is that of the outermost level */
    for (int i = 0; i < plot.num_axes; i++)
        ASSERT_INT(plot.axes[i].span.tier, strcmp(plot.axes[i].name, "tp") == 0 ? 0 : 2);
    ASSERT_INT(plot.num_axes, 2);
}

static void topologies_render(void **state)
{
    (void)state;
    const struct {
        const char *cluster;
        long gpus;
        const char *words;
        int least;
    } cases[] = {{"hgx-h100", 1, "1 GPU of", 4},
                 {"hgx-h100", 8, "1 × 8 GPUs", 20},
                 {"gb200", 16384, "more", 60},
                 {"tpu-v5p", 8192, "torus", 60},
                 {"mi300x", 64, "mesh", 60}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_topology_plot plot = topology_of(cx, cases[i].cluster, cases[i].gpus, 1);
        check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_topology_plot, &plot),
                      cases[i].words, cases[i].least);
    }
}

/* ---- goodput ---- */

static void goodputs_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("405b", 16384, 16, 8);
    ms_priced_plan made = priced(cx, &plan, NULL);
    const ms_interruptions jobs[] = {
        {11000.0, 2.4, 600.0}, {3e7, 100.0, 600.0}, {110.0, 2.4, 600.0}};
    for (int i = 0; i < 3; i++) {
        ms_goodput_plot plot = {.arena = cx->arena,
                                .plan = made.plan,
                                .workload = made.workload,
                                .job = jobs[i],
                                .gpu_mean_s = jobs[i].mean_s * 16384.0,
                                .step_s = 10.0,
                                .interval_steps =
                                    ceil(ms_best_interval_s(&jobs[i]) / 10.0)};
        check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_goodput_plot, &plot),
                      "useful work between checkpoints", 6);
    }
}

/* ---- calibration ---- */

static void calibrations_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_calibrated_point points[100];
    for (int i = 0; i < 100; i++)
        points[i] =
            (ms_calibrated_point){1e-6 * pow(1.2, i), 1.1e-6 * pow(1.2, i), i % 16};
    ms_calibration_plot plot = {.arena = cx->arena,
                                .name = "profile.json",
                                .num_groups = 1,
                                .num_points = 1,
                                .points = points};
    for (int i = 0; i < MS_MAX_CALIBRATED_GROUPS; i++)
        plot.groups[i] = (ms_calibrated_group){"a_kernel_with_a_long_name", 6};
    check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_calibration_plot, &plot),
                  "median error 10.0 % of 1 point", 6);
    plot.num_groups = MS_MAX_CALIBRATED_GROUPS;
    plot.num_points = 100;
    check_picture(cx, &(ms_plot_writer)MS_PLOT_WRITER(ms_calibration_plot, &plot),
                  "measured (us)", 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_sum_to_the_step),
        cmocka_unit_test(breakdowns_render),
        cmocka_unit_test(kernels_are_below_the_roof),
        cmocka_unit_test(rooflines_render),
        cmocka_unit_test(a_curve_for_each_tier),
        cmocka_unit_test(measured_points_are_of_the_cluster),
        cmocka_unit_test(collectives_render),
        cmocka_unit_test(small_clusters_are_drawn_whole),
        cmocka_unit_test(large_clusters_are_folded),
        cmocka_unit_test(topologies_render),
        cmocka_unit_test(goodputs_render),
        cmocka_unit_test(calibrations_render),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
