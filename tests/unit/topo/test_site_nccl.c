/* Clusters from NCCL's topology in XML. */
#include "base/texts.h"
#include "tests/test.h"
#include "topo/site.h"
#include "topo/site_xml.h"

#define NCCL 2 /* in ms_site_format_names */

static void need_expat(void)
{
    if (!ms_xml_is_built)
        skip(); /* built without expat */
}

static ms_status read_named(ms_ctx *cx, const char *base, double nic_bytes_per_s,
                            const char *text, ms_site *out)
{
    ms_site_options options = {.name = "topo.xml", .nic_bytes_per_s = nic_bytes_per_s};
    ASSERT_TEXT(ms_site_format_names[NCCL], "nccl-topology");
    ASSERT_OK(ms_cluster_load(cx, base, &options.base), cx);
    return ms_site_read(cx, NCCL, text, strlen(text), &options, out);
}

static ms_status read_xml(ms_ctx *cx, const char *base, const char *text, ms_site *out)
{
    return read_named(cx, base, 0.0, text, out);
}

static bool has_text(const ms_texts *list, const char *text)
{
    for (int i = 0; i < list->num; i++)
        if (strcmp(list->texts[i], text) == 0)
            return true;
    return false;
}

static void expect_text(const ms_texts *list, const char *text)
{
    if (has_text(list, text))
        return;
    for (int i = 0; i < list->num; i++)
        print_message("  %s\n", list->texts[i]);
    fail_msg("no \"%s\"", text);
}

#define GPU(bus, dev, links)                                                             \
    "<pci busid='" bus "' class='0x030200' link_speed='32.0 GT/s PCIe' "                 \
    "link_width='16'><gpu dev='" dev "' sm='90'>" links "</gpu></pci>\n"
#define NET(name, speed)                                                                 \
    "<pci class='0x020700' link_speed='32 GT/s' link_width='16'><nic><net name='" name   \
    "' speed='" speed "'/></nic></pci>\n"
#define SWITCH(count)                                                                    \
    "<nvlink target='0000:05:00.0' count='" count "' tclass='0x068000'/>"
#define PEER(bus, count) "<nvlink target='" bus "' count='" count "' tclass='0x030200'/>"
#define SYSTEM(inner)    "<system version='1'>\n" inner "</system>\n"
#define CPU(inner)       "<cpu numaid='0'>\n" inner "</cpu>\n"
#define BRIDGE(inner)    "<pci class='0x060400'>\n" inner "</pci>\n"

/* Two GPUs of 18 links into switches share a NIC of 400 Gb/s. */
static void a_node_with_switches_and_a_shared_nic(void **state)
{
    (void)state;
    need_expat();
    ms_ctx *cx = test_cx();
    ms_site site;
    ASSERT_OK(read_xml(cx, "hgx-h100",
                       SYSTEM(CPU(BRIDGE(GPU("a", "1", SWITCH("10") SWITCH("8")) GPU(
                           "b", "0", SWITCH("18")) NET("mlx5_2", "400000")))),
                       &site),
              cx);
    const ms_cluster *c = &site.cluster;
    ASSERT_INT(c->gpus_per_node, 2);
    ASSERT_NEAR(c->levels[0].bandwidth_bytes_per_s, 450e9, 0.0);
    ASSERT_NEAR(c->levels[1].nics_per_gpu, 0.5, 0.0);
    ASSERT_NEAR(c->levels[1].bandwidth_bytes_per_s, 25e9, 1e-12);
    expect_text(&site.found, "18 NVLinks between each pair of GPUs");
    expect_text(
        &site.found,
        "GPU0, GPU1 share NIC mlx5_2 (PIX): 200 of its 400 Gb/s each, or 25 GB/s");
    assert_false(has_text(&site.assumed, "rate of NICs, as hgx-h100"));
}

/* PIX within a switch, PXB over several, PHB through the CPU, SYS across. */
static void nics_are_as_near_as_their_nearest_ancestor(void **state)
{
    (void)state;
    need_expat();
    static const struct {
        const char *text, *found;
    } cases[] = {
        {SYSTEM(CPU(BRIDGE(GPU("a", "0", "") NET("n", "8000")))), "PIX"},
        {SYSTEM(CPU(BRIDGE(GPU("a", "0", "") BRIDGE(NET("n", "8000"))))), "PXB"},
        {SYSTEM(CPU(BRIDGE(GPU("a", "0", "")) BRIDGE(NET("n", "8000")))), "PHB"},
        {SYSTEM(CPU(GPU("a", "0", "") NET("n", "8000"))), "PHB"},
        {SYSTEM(CPU(GPU("a", "0", "") "<nic><net name='n' speed='8000'/></nic>")), "PHB"},
        {SYSTEM(CPU(GPU("a", "0", "")) CPU(NET("n", "8000"))), "SYS"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_site site;
        ASSERT_OK(read_xml(cx, "h100-nvl", cases[i].text, &site), cx);
        expect_text(&site.found,
                    ms_arena_printf(cx->arena, "GPU0 has NIC n (%s): 8 Gb/s, or 1 GB/s",
                                    cases[i].found));
    }
}

/* 16 GT/s times 8 lanes times 128/130 is 126 Gb/s. */
static void the_link_of_a_nic_limits_it(void **state)
{
    (void)state;
    need_expat();
    ms_ctx *cx = test_cx();
    ms_site site;
    const char *text = SYSTEM(
        CPU(BRIDGE(GPU("a", "0", "") "<pci class='0x02' link_speed='16.0 GT/s PCIe' "
                                     "link_width='8'><nic><net name='n' speed='200000'/>"
                                     "</nic></pci>")));
    ASSERT_OK(read_xml(cx, "h100-nvl", text, &site), cx);
    ASSERT_NEAR(site.cluster.levels[1].bandwidth_bytes_per_s, 16e9 * 128.0 / 130.0,
                1e-12);
    expect_text(&site.found, "NIC n of 200 Gb/s has a PCIe link of 126 Gb/s");
}

static void the_users_rate_of_nics_comes_first(void **state)
{
    (void)state;
    need_expat();
    ms_ctx *cx = test_cx();
    ms_site site;
    const char *text = SYSTEM(CPU(BRIDGE(GPU("a", "0", "") NET("n", "8000"))));
    ASSERT_OK(read_named(cx, "h100-nvl", 50e9, text, &site), cx);
    ASSERT_NEAR(site.cluster.levels[1].bandwidth_bytes_per_s, 50e9, 1e-12);
}

/* Three GPUs in a PCIe server, of which two are bridged. */
static void pcie_links_give_the_rate_between_gpus(void **state)
{
    (void)state;
    need_expat();
    ms_ctx *cx = test_cx();
    ms_site site;
    ASSERT_OK(read_xml(cx, "h100-nvl",
                       SYSTEM(CPU(GPU("a", "0", PEER("B", "12"))
                                      GPU("b", "1", PEER("a", "12")) GPU("c", "2", ""))),
                       &site),
              cx);
    ASSERT_INT(site.cluster.gpus_per_node, 3);
    ASSERT_NEAR(site.cluster.levels[0].bandwidth_bytes_per_s, 64e9 * 128.0 / 130.0,
                1e-12);
    expect_text(&site.ignored,
                "NVLinks between 1 of 3 pairs of GPUs: a level joins all GPUs");
}

/* PCI devices alone: their numbers, and nothing of NVLinks and rates. */
static void files_without_gpus_have_their_pci_devices(void **state)
{
    (void)state;
    need_expat();
    ms_ctx *cx = test_cx();
    ms_site site;
    ASSERT_OK(read_xml(cx, "hgx-h100",
                       SYSTEM(CPU(BRIDGE("<pci busid='1' class='0x030200'/>"
                                         "<pci busid='2' class='0x030200'/>"
                                         "<pci busid='3' class='0x020000'/>"
                                         "<pci busid='4' class='0x010802'/>"))),
                       &site),
              cx);
    ASSERT_INT(site.cluster.gpus_per_node, 2);
    ASSERT_NEAR(site.cluster.levels[0].bandwidth_bytes_per_s, 450e9, 0.0);
    expect_text(&site.assumed, "links between GPUs, as hgx-h100");
    expect_text(&site.assumed, "rate of NICs, as hgx-h100");
    expect_text(&site.found,
                "GPU0, GPU1 share NIC 3 (PIX): 200 of its 400 Gb/s each, or 25 GB/s");
}

static void wrong_topologies_are_refused_at_their_place(void **state)
{
    (void)state;
    need_expat();
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"", "this is no XML: no element found", 1, 1},
        {"GPU0 GPU1\n", "this is no XML: syntax error", 1, 1},
        {"<system version='1'>\n  <cpu>\n</system>", "this is no XML: mismatched tag", 3,
         3},
        {"<!DOCTYPE a>\n<system version='1'/>\n", "a DOCTYPE is not read", 1, 12},
        {"<graphs version='1'/>\n", "the outermost element must be a system", 1, 1},
        {"<system version='2'/>\n", "version=\"1\" is expected", 1, 1},
        {"<system version='1'/>\n", "no GPU is listed", 0, 0},
        {"<system version='1'>\n <pci/></system>\n", "a pci must stand in a cpu or pci",
         2, 2},
        {"<system version='1'>\n <gpu/></system>\n", "a gpu must stand in a pci", 2, 2},
        {"<system version='1'><cpu>\n<net/></cpu></system>\n",
         "a net must stand in a nic of a pci or cpu", 2, 1},
        {"<system version='1'><cpu>\n<cpu/></cpu></system>\n",
         "a cpu must stand in the system", 2, 1},
        {"<system version='1'><cpu host_hash='1'/>\n<cpu host_hash='2'/></system>\n",
         "CPUs of two hosts, but a node is one host", 2, 1},
        {SYSTEM(CPU("<pci>\n<gpu sm='90'/></pci>")), "attribute dev is missing", 4, 1},
        {SYSTEM(CPU(GPU("a", "0", "") GPU("b", "0", ""))), "two GPUs have this dev", 4,
         77},
        {SYSTEM(CPU(GPU("a", "-1", ""))), "dev=\"-1\" must be from 0 to 1000000", 3, 77},
        {SYSTEM(CPU(GPU("a", "0", "<nvlink count='4' target='a'/>"))),
         "a GPU has no NVLink to itself", 3, 98},
        {SYSTEM(CPU(GPU("a", "0", "<nvlink count='4'/>"))), "attribute target is missing",
         3, 98},
        {SYSTEM(CPU(GPU("a", "0", SWITCH("4x")))), "count=\"4x\" must be from 0 to 1000",
         3, 98},
        {SYSTEM(CPU(GPU("a", "0", PEER("b", "4")) GPU("b", "1", PEER("a", "2")))),
         "GPU1 has 2 NVLinks to GPU0, which has 4 to it", 4, 77},
        {SYSTEM(CPU(GPU("a", "0", "") NET("n", "fast"))),
         "speed=\"fast\" must be megabits per second", 4, 65},
        {SYSTEM(CPU(GPU("a", "0", "") NET("n", "1e99"))),
         "speed=\"1e99\" must be megabits per second", 4, 65},
        {SYSTEM(CPU("<pci><gpu dev='0' sm='80'/></pci>")),
         "a GPU of compute capability 8.0, but those of cluster \"h100-nvl\" have 9.0", 3,
         6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_site site;
        ASSERT_INT(read_xml(cx, "h100-nvl", cases[i].text, &site), MS_EINPUT);
        ASSERT_TEXT(cx->first->message, cases[i].message);
        ASSERT_INT(cx->first->loc.line, cases[i].line);
        ASSERT_INT(cx->first->loc.column, cases[i].column);
    }
}

/* A text of many equal parts. */
static const char *repeated(ms_arena *arena, const char *part, int num, const char *end)
{
    size_t length = strlen(part), rest = strlen(end);
    char *text = ms_arena_alloc(arena, length * (size_t)num + rest + 1);
    for (int i = 0; i < num; i++)
        memcpy(text + length * (size_t)i, part, length);
    memcpy(text + length * (size_t)num, end, rest + 1);
    return text;
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    need_expat();
    ms_ctx *cx = test_cx();
    ms_xml xml;
    const char *deep = repeated(cx->arena, "<a>", 100, "");
    ASSERT_INT(ms_xml_read(cx, "x", deep, strlen(deep), &xml), MS_EINPUT);
    ASSERT_TEXT(cx->first->message, "more than 64 levels of elements");
    cx = test_cx();
    const char *list = repeated(cx->arena, "<b/>", 70000, "</a>");
    const char *wide = ms_arena_printf(cx->arena, "<a>%s", list);
    ASSERT_INT(ms_xml_read(cx, "x", wide, strlen(wide), &xml), MS_EINPUT);
    ASSERT_TEXT(cx->first->message, "more than 65536 elements");
    cx = test_cx();
    ms_site site;
    const char *nets = repeated(cx->arena, NET("n", "1"), 129, "</cpu></system>");
    const char *many = ms_arena_printf(cx->arena, "<system version='1'><cpu>%s", nets);
    ASSERT_INT(read_xml(cx, "h100-nvl", many, &site), MS_EINPUT);
    ASSERT_TEXT(cx->first->message, "a node has at most 128 GPUs and 128 NICs");
}

/* Runs in every build. */
static void a_build_without_expat_says_so(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_xml xml;
    ms_status status = ms_xml_read(cx, "x", "<a/>", 4, &xml);
    ASSERT_INT(status, ms_xml_is_built ? MS_OK : MS_EINPUT);
    if (status != MS_OK)
        ASSERT_TEXT(cx->first->message,
                    "XML is not read: this program was built without expat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_with_switches_and_a_shared_nic),
        cmocka_unit_test(nics_are_as_near_as_their_nearest_ancestor),
        cmocka_unit_test(the_link_of_a_nic_limits_it),
        cmocka_unit_test(the_users_rate_of_nics_comes_first),
        cmocka_unit_test(pcie_links_give_the_rate_between_gpus),
        cmocka_unit_test(files_without_gpus_have_their_pci_devices),
        cmocka_unit_test(wrong_topologies_are_refused_at_their_place),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(a_build_without_expat_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
