#include "topo/site.h"

#include "tests/test.h"
#include "topo/site_hostlist.h"

static ms_status read_slurm(ms_ctx *cx, const char *base, const char *text, ms_site *out)
{
    ms_site_options options = {.name = "topo"};
    ASSERT_OK(ms_cluster_load(cx, base, &options.base), cx);
    return ms_site_read(cx, 1, text, strlen(text), &options, out);
}

static ms_status read_text(ms_ctx *cx, const char *base, const char *text, double nvlink,
                           ms_site *out)
{
    ms_site_options options = {.name = "topo", .nvlink_bytes_per_s = nvlink};
    ASSERT_OK(ms_cluster_load(cx, base, &options.base), cx);
    return ms_site_read(cx, 0, text, strlen(text), &options, out);
}

/* The text of a cluster as a file, or in base units. */
static const char *text_of(ms_ctx *cx, const ms_cluster *cluster, bool as_file)
{
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    if (as_file)
        ms_cluster_write_file(&out, cluster);
    else
        ms_cluster_write_json(&out, cluster);
    ms_jout_close(&out);
    fclose(file);
    const char *copy = ms_arena_strdup(cx->arena, text);
    free(text);
    return copy;
}

static void written_clusters_read_back_equal(void **state)
{
    (void)state;
    const char *const *names;
    int num, compared = 0;
    ms_ctx *cx = test_cx();
    ASSERT_OK(ms_cluster_names(cx, &names, &num), cx);
    for (int i = 0; i < num; i++) {
        const ms_cluster *cluster;
        ms_cluster again;
        ms_jdoc *doc;
        ms_jval root;
        ASSERT_OK(ms_cluster_load(cx, names[i], &cluster), cx);
        if (cluster->num_kinds > 0 || cluster->levels[0].topology == MS_TORUS)
            continue;
        const char *text = text_of(cx, cluster, true);
        ASSERT_OK(ms_json_parse(cx, names[i], text, strlen(text), &doc, &root), cx);
        ASSERT_OK(ms_cluster_read(cx, root, &again), cx);
        ASSERT_TEXT(text_of(cx, &again, false), text_of(cx, cluster, false));
        ms_json_close(doc);
        compared++;
    }
    assert_true(compared > 50);
}

/* Two GPUs of 18 links at 25 GB/s, which share a NIC of 400 Gb/s; 32 nodes a leaf. */
static void a_smaller_node_keeps_the_nodes_of_domains(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_site site;
    ASSERT_OK(read_text(cx, "hgx-h100",
                        "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\n"
                        "GPU0\t X \tNV18\tPXB\t0-9\n"
                        "GPU1\tNV18\t X \tPXB\t0-9\n"
                        "mlx5_0\tPXB\tPXB\t X \t\n",
                        25e9, &site),
              cx);
    const ms_cluster *c = &site.cluster;
    ASSERT_INT(c->gpus_per_node, 2);
    ASSERT_INT(c->levels[0].gpus_per_domain, 2);
    ASSERT_NEAR(c->levels[0].bandwidth_bytes_per_s, 450e9, 0);
    ASSERT_INT(c->levels[1].gpus_per_domain, 64);
    ASSERT_INT(c->levels[1].rails, 1);
    ASSERT_NEAR(c->levels[1].nics_per_gpu, 0.5, 0);
    ASSERT_NEAR(c->levels[2].bandwidth_bytes_per_s, 25e9, 1e-12);
}

static void wrong_matrices_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"GPU0 GPU1\nGPU0 X NV4\nGPU1 NV2 X\n", "GPU1 to GPU0 is unlike GPU0 to GPU1", 3,
         6},
        {"GPU0 GPU1\nGPU0 X NV4\n", "the row of GPU1 is missing", 2, 1},
        {"GPU0 GPU1\nGPU0 X\n", "GPU0 has 1 cells, must have 2", 2, 6},
        {"GPU0 GPU1\nGPU0 NV4 NV4\n",
         "X stands where a device meets itself, and only there", 2, 6},
        {"GPU0 GPU0\n", "a device stands twice", 1, 6},
        {"NIC0 GPU0\n", "no line of titles \"GPU0 GPU1 ...\" was found", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_site site;
        ASSERT_INT(read_text(cx, "hgx-h100", cases[i].text, 0.0, &site), MS_EINPUT);
        ASSERT_TEXT(cx->first->message, cases[i].message);
        ASSERT_INT(cx->first->loc.line, cases[i].line);
        ASSERT_INT(cx->first->loc.column, cases[i].column);
    }
}

/* Lines stand in any order; a host's number keeps its zeros. */
static void trees_of_switches_become_levels(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_site site;
    ASSERT_OK(read_slurm(cx, "hgx-h100",
                         "SwitchName=core Level=1 LinkSpeed=1 Nodes=r[1-2]n[01-20] "
                         "Switches=s[08-09],s10\n"
                         "switchname=s08 nodes=r1n[01-08,10]\n"
                         "SwitchName=s09 Nodes=r2n[01-09] # nine\n"
                         "SwitchName=s10 Nodes=r[1-2]n[11-14],login1\n",
                         &site),
              cx);
    const ms_cluster *c = &site.cluster;
    ASSERT_INT(c->num_levels, 3);
    ASSERT_INT(c->max_gpus, 8 * 27);
    ASSERT_INT(c->levels[1].gpus_per_domain, 8 * 9);
    ASSERT_INT(c->levels[2].gpus_per_domain, 0);
    ASSERT_NEAR(c->levels[2].bandwidth_bytes_per_s, 50e9, 1e-12);
    ASSERT_INT(site.assumed.num, 2);
}

/* A tier that adds no domain is merged with its neighbour; an odd switch sets no size. */
static void tiers_that_join_nothing_new_are_merged(void **state)
{
    (void)state;
    static const struct {
        const char *base, *text;
        int num_levels;
        long max_gpus, domains[3];
    } cases[] = {
        {"gb200-nvl72",
         "SwitchName=r1 Nodes=n[1-18]\nSwitchName=r2 Nodes=n[19-36]\n"
         "SwitchName=c Switches=r1,r2\n",
         2,
         144,
         {72, 0}},
        {"hgx-h100",
         "SwitchName=r1 Nodes=n[1-16]\nSwitchName=r2 Nodes=n[17-32]\n"
         "SwitchName=r3 Nodes=n33\nSwitchName=c Switches=r[1-3]\n",
         3,
         264,
         {8, 128, 0}},
        {"hgx-h100",
         "SwitchName=r1 Nodes=n[1-16]\nSwitchName=r2 Nodes=n[17-32]\n"
         "SwitchName=r3 Nodes=n[33-48]\nSwitchName=p1 Switches=r1,r2\n"
         "SwitchName=p2 Switches=r3\nSwitchName=c Switches=p[1-2]\n",
         4,
         384,
         {8, 128, 256}},
        {"hgx-h100",
         "SwitchName=r1 Nodes=n[1-4]\nSwitchName=b Switches=r1\n"
         "SwitchName=c Switches=b\n",
         2,
         32,
         {8, 0}},
        {"hgx-h100", "BlockName=a Nodes=n1\nBlockName=b Nodes=n2\n", 2, 16, {8, 0}},
        {"gb200-nvl72",
         "BlockName=a Nodes=n[1-18]\nBlockName=b Nodes=m[1-18]\n"
         "BlockName=c Nodes=o1\n",
         2,
         148,
         {72, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_site site;
        ASSERT_OK(read_slurm(cx, cases[i].base, cases[i].text, &site), cx);
        ASSERT_INT(site.cluster.num_levels, cases[i].num_levels);
        ASSERT_INT(site.cluster.max_gpus, cases[i].max_gpus);
        for (int k = 0; k < 3 && k < cases[i].num_levels; k++)
            ASSERT_INT(site.cluster.levels[k].gpus_per_domain, cases[i].domains[k]);
    }
}

/* Names of two brackets; the second one's ranges are read anew for each of the first. */
static void names_of_hosts_follow_their_ranges(void **state)
{
    (void)state;
    static const char list[] = "r[1,3-4]n[08-10,2]x";
    static const char *const want[] = {"r1n08x", "r1n09x", "r1n10x", "r1n2x",
                                       "r3n08x", "r3n09x", "r3n10x", "r3n2x",
                                       "r4n08x", "r4n09x", "r4n10x", "r4n2x"};
    ms_arena *arena = test_cx()->arena;
    ms_host_item item;
    const char *at = list, *fault;
    assert_true(ms_host_item_next(&at, list + strlen(list), &item, &fault));
    ASSERT_INT(item.num, 12);
    for (int i = 0; i < 12; i++)
        ASSERT_TEXT(ms_host_item_name(arena, &item, i), want[i]);
    for (int i = 11; i >= 0; i--)
        ASSERT_TEXT(ms_host_item_name(arena, &item, i), want[i]);
}

static void blocks_are_racks_where_the_base_has_some(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_site site;
    static const char text[] = "BlockName=a Nodes=n[1-16]\nBlockName=b Nodes=n[17-32]\n"
                               "BlockSizes=16,32\n";
    ASSERT_OK(read_slurm(cx, "gb200-nvl72", text, &site), cx);
    ASSERT_INT(site.cluster.levels[0].gpus_per_domain, 64);
    ASSERT_INT(site.cluster.max_gpus, 128);
    ASSERT_OK(read_slurm(cx, "hgx-h100", text, &site), cx);
    ASSERT_INT(site.cluster.levels[0].gpus_per_domain, 8);
    ASSERT_INT(site.cluster.levels[1].gpus_per_domain, 128);
}

static void wrong_topologies_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"SwitchName=a Nodes=n[1-2\n",
         "a bracket must hold numbers and ranges, such as [01-18,20]", 1, 25},
        {"SwitchName=a Nodes=n[1-4000][1-4000]\n", "more than a million names", 1, 37},
        {"SwitchName=a Switches=b,c\nSwitchName=b Nodes=n\n", "no switch is named c", 1,
         25},
        {"SwitchName=a Switches=a\n", "switch a stands below itself", 1, 23},
        {"SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
         "switch a stands below itself", 2, 23},
        {"SwitchName=a Nodes=,\n", "a name is empty", 1, 20},
        {"SwitchName=a Nodes=n,\n", "a name is empty", 1, 21},
        {"SwitchName= Nodes=n\n", "the name behind \"SwitchName=\" is empty", 1, 1},
        {"SwitchName=a Nodes=n[1-3],n2\n", "node n2 stands twice", 1, 27},
        {"SwitchName=a Nodes=n[1-900000]\nSwitchName=b Nodes=m[1-900000]\n",
         "more than a million nodes", 2, 20},
        {"SwitchName=a Nodes=n\nSwitchName=b Nodes=m\n",
         "no switch joins this one and that of line 1", 2, 1},
        {"SwitchName=a Nodes=n\nSwitchName=a Nodes=m\n", "\"a\" stands twice", 2, 12},
        {"SwitchName=a Node=n\n", "unknown key \"Node\"", 1, 14},
        {"SwitchName=a\n", "neither Nodes nor Switches are listed", 1, 1},
        {"SwitchName=a Nodes=n\nBlockName=b Nodes=m\n",
         "a topology of switches has no blocks, and one of blocks no switches", 2, 1},
        {"SwitchName=e Switches=d\nSwitchName=d Switches=c\nSwitchName=c Switches=b\n"
         "SwitchName=b Switches=a\nSwitchName=a Nodes=n\n",
         "more than 3 tiers of switches", 2, 23},
        {"NodeName=a\n", "\"NodeName\" is neither SwitchName nor BlockName", 1, 1},
        {"# none\n", "no line has SwitchName= or BlockName=", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_site site;
        ASSERT_INT(read_slurm(cx, "hgx-h100", cases[i].text, &site), MS_EINPUT);
        ASSERT_TEXT(cx->first->message, cases[i].message);
        ASSERT_INT(cx->first->loc.line, cases[i].line);
        ASSERT_INT(cx->first->loc.column, cases[i].column);
    }
}

/* Both files of Slurm's topology state the same switches, and the same blocks. */
static void both_files_of_slurm_give_the_same_cluster(void **state)
{
    (void)state;
    static const struct {
        const char *base, *conf, *yaml;
    } pairs[] = {
        {"hgx-h100",
         "SwitchName=c Switches=a,b\nSwitchName=a Nodes=n[1-8]\nSwitchName=b "
         "Nodes=n[9-16]\n",
         "%YAML 1.1\n---\n- topology: t\n  tree:\n    switches:\n"
         "    - {switch: c, children: 'a,b'}\n    - switch: a\n      nodes: n[1-8]\n"
         "    - {switch: b, nodes: 'n[9-16]'}\n"},
        {"gb200-nvl72", "BlockName=a Nodes=n[1-16]\nBlockName=b Nodes=n[17-32]\n",
         "# racks\n[{topology: t, block: {block_sizes: [16], blocks: ["
         "{block: a, nodes: 'n[1-16]'}, {block: b, nodes: 'n[17-32]'}]}}]\n"},
        {"hgx-h100", "BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-8]\n",
         "- topology: u\n  flat: true\n- topology: t\n  cluster_default: true\n"
         "  block:\n    blocks:\n    - {nodes: 'n[1-4]', block: a}\n"
         "    - {nodes: 'n[5-8]', block: b}\n"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ms_ctx *cx = test_cx();
        ms_site conf, yaml;
        ASSERT_OK(read_slurm(cx, pairs[i].base, pairs[i].conf, &conf), cx);
        ASSERT_OK(read_slurm(cx, pairs[i].base, pairs[i].yaml, &yaml), cx);
        ASSERT_TEXT(text_of(cx, &yaml.cluster, true), text_of(cx, &conf.cluster, true));
    }
}

#define TREE "- topology: t\n  tree:\n    switches:\n"

static void wrong_yaml_is_refused_at_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"- topology: t\n  tree: [\n", "did not find expected node content", 3, 1},
        {"---\n", "a list of topologies is expected: \"- topology: NAME\"", 2, 1},
        {"{}\n", "a list of topologies is expected: \"- topology: NAME\"", 1, 1},
        {"[]\n", "a list of topologies is expected: \"- topology: NAME\"", 1, 1},
        {"- t\n", "a mapping is expected", 1, 3},
        {"- tree: {}\n", "a topology needs a name: \"topology: NAME\"", 1, 3},
        {"- topology: t\n  trees: {}\n", "unknown key of a topology", 2, 3},
        {"- topology: t\n  topology: u\n", "this key stands twice", 2, 3},
        {"- topology: t\n  cluster_default: yes\n", "cluster_default is true or false", 2,
         20},
        {"- topology: t\n  flat: true\n", "this topology has neither tree nor block", 1,
         3},
        {"- topology: t\n  tree: {}\n  block: {}\n",
         "a topology is a tree or blocks, not both", 3, 10},
        {"- topology: t\n  flat: true\n- topology: u\n  flat: true\n",
         "several topologies, and none is the cluster's default", 1, 1},
        {"- {topology: t, cluster_default: true}\n- {topology: u, cluster_default: true}\n",
         "two topologies are the cluster's default", 2, 3},
        {"- topology: t\n  tree: {switches: []}\n",
         "a list of switches is expected: \"switches:\"", 2, 20},
        {"- topology: t\n  block: {block_sizes: 4}\n",
         "a list of blocks is expected: \"blocks:\"", 2, 10},
        {TREE "    - {nodes: a}\n", "a switch or block needs a name", 4, 7},
        {TREE "    - {switch: a}\n", "a switch needs either nodes or children", 4, 7},
        {TREE "    - {switch: a, nodes: [b]}\n",
         "a list of names is expected, as \"node[01-16]\"", 4, 26},
        {TREE "    - switch: a\n      nodes: n[1-4],m[1-\n",
         "a bracket must hold numbers and ranges, such as [01-18,20]", 5, 25},
        {TREE "    - switch: a\n      nodes: 'n[1-3],n2'\n", "node n2 stands twice", 5,
         22},
        {TREE "    - {switch: a, nodes: n}\n    - {switch: a, nodes: m}\n",
         "\"a\" stands twice", 5, 16},
        {TREE "    - {switch: a, children: 'b,c'}\n    - {switch: b, nodes: n}\n",
         "no switch is named c", 4, 32},
        {TREE "    - {switch: a, nodes: n}\n    - {switch: b, nodes: m}\n",
         "no switch joins this one and that of line 4", 5, 26},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_site site;
        ASSERT_INT(read_slurm(cx, "hgx-h100", cases[i].text, &site), MS_EINPUT);
        ASSERT_TEXT(cx->first->message, cases[i].message);
        ASSERT_INT(cx->first->loc.line, cases[i].line);
        ASSERT_INT(cx->first->loc.column, cases[i].column);
    }
}

static void a_long_yaml_is_refused(void **state)
{
    (void)state;
    const size_t length = ((size_t)8 << 20) + 1;
    ms_ctx *cx = test_cx();
    ms_site site;
    char *text = ms_arena_alloc(cx->arena, length + 1);
    memset(text, '\n', length);
    text[0] = '-';
    text[length] = '\0';
    ASSERT_INT(read_slurm(cx, "hgx-h100", text, &site), MS_EINPUT);
    ASSERT_TEXT(cx->first->message, "a topology.yaml has at most 8 MiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_clusters_read_back_equal),
        cmocka_unit_test(a_smaller_node_keeps_the_nodes_of_domains),
        cmocka_unit_test(wrong_matrices_are_refused_at_their_place),
        cmocka_unit_test(trees_of_switches_become_levels),
        cmocka_unit_test(tiers_that_join_nothing_new_are_merged),
        cmocka_unit_test(names_of_hosts_follow_their_ranges),
        cmocka_unit_test(blocks_are_racks_where_the_base_has_some),
        cmocka_unit_test(wrong_topologies_are_refused_at_their_place),
        cmocka_unit_test(both_files_of_slurm_give_the_same_cluster),
        cmocka_unit_test(wrong_yaml_is_refused_at_its_place),
        cmocka_unit_test(a_long_yaml_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
