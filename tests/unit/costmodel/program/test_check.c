/* The checker of layer programs: it accepts every program of the builder; its rules,
 * one by one, on programs made by hand. */
#include "costmodel/program/program_check.h"
#include "tests/support/hand_program.h"
#include "tests/support/program_cases.h"
#include "tests/test.h"

#include <dirent.h>

/* ---- programs by hand ---- */

/* An empty program on a mesh with dp 2, cp 1, tp 2. */
static ms_hand *hand(ms_ctx *cx)
{
    ms_hand *h = ms_hand_open(cx->arena);
    ms_hand_set_mesh(h, MS_DENSE_MESH, 2, 1, 2);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, 4, 1, 1);
    ms_hand_set_size(h, 'f', 8);
    return h;
}

static ms_check_finding first_finding(const ms_hand *h)
{
    ms_check_finding finding = {.text = "nothing is found"};
    ms_program_check(&h->program, &finding);
    return finding;
}

static void partial_sums_are_not_multiplied(void **state)
{
    (void)state;
    ms_hand *h = hand(test_cx());
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "bRh");
    int w = ms_hand_tensor(h, "hf", MS_ROLE_WEIGHT, "RRh");
    int y = ms_hand_result(h, "bsf", "bRP");
    ms_hand_binary(h, MS_OP_EINSUM, x, w, y)->einsum = "bsh,hf->bsf";
    int z = ms_hand_result(h, "bs", "bRP");
    ms_hand_binary(h, MS_OP_EINSUM, y, y, z)->einsum = "bsf,bsf->bs";
    ms_check_finding finding = first_finding(h);
    ASSERT_INT(finding.kind, MS_CHECK_PARTIAL_PRODUCT);
    ASSERT_INT(finding.node, 1);
    ASSERT_TEXT(finding.text,
                "node 1 (hand, einsum) on tp: both t2[bsf] and t2[bsf] are partial sums: "
                "the product of sums is not the sum of products");
}

/* Two operands whose contracted dim h is sharded over dp and tp, in one by the order
 * (dp, tp), in the other by (tp, dp): local parts then belong to different columns, so
 * they must not be multiplied. */
static void strided_and_contiguous_splits_do_not_contract(void **state)
{
    (void)state;
    for (int strided = 0; strided < 2; strided++) {
        ms_hand *h = hand(test_cx());
        int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "hRh");
        int w = ms_hand_tensor(h, "hf", MS_ROLE_WEIGHT, "hRh");
        h->tensors[w].at[0].split_factor = (short)(strided ? 2 : 0);
        int y = ms_hand_result(h, "bsf", "PRP");
        ms_hand_binary(h, MS_OP_EINSUM, x, w, y)->einsum = "bsh,hf->bsf";
        y = ms_hand_redistribute(h, y, 0, "RRP");
        ms_hand_redistribute(h, y, 2, "RRR");
        ms_check_finding finding = first_finding(h);
        if (strided)
            ASSERT_TEXT(finding.text,
                        "node 0 (hand, einsum) on dp: its operands do not lie together: "
                        "t0[bsh] is split by h, so t1[hf] must be split by h, but it is "
                        "split by h, strided by 2");
        ASSERT_TEXT(strided ? ms_check_kind_names[finding.kind] : finding.text,
                    strided ? "strided" : "nothing is found");
    }
}

/* The loss is the sum over tokens of a token's loss times the token's share; it must
 * be reduced over every axis that splits tokens. */
static void a_loss_is_averaged_over_every_axis_that_splits_tokens(void **state)
{
    (void)state;
    for (int forgotten = 0; forgotten < 2; forgotten++) {
        ms_hand *h = hand(test_cx());
        ms_hand_set_mesh(h, MS_DENSE_MESH, 2, 2, 1);
        ms_hand_set_size(h, '1', 1);
        int x = ms_hand_tensor(h, "bs", MS_ROLE_ACTIVATION, "bsR");
        int share = ms_hand_tensor(h, "bs1", MS_ROLE_WEIGHT, "bsR");
        int mean = ms_hand_result(h, "1", "PPR");
        ms_hand_binary(h, MS_OP_EINSUM, x, share, mean)->einsum = "bs,bs1->1";
        mean = ms_hand_redistribute(h, mean, 0, "RPR");
        if (!forgotten)
            ms_hand_redistribute(h, mean, 1, "RRR");
        ms_check_finding finding = first_finding(h);
        ASSERT_TEXT(finding.text,
                    forgotten
                        ? "t3[1] on cp: the program's result is reduced over dp but "
                          "still a partial sum over cp"
                        : "nothing is found");
    }
}

/* The redistributions that are legal are those of pytorch
 * torch/distributed/tensor/_redistribute.py. Placements are letters of
 * ms_hand_placement. */
static void redistributions_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        char from, to;
        bool legal;
    } rows[] = {{'s', 'R', true},  {'s', 'h', true},  {'P', 'R', true},
                {'P', 's', true},  {'R', 's', true},  {'R', 'P', true},
                {'M', 'R', true},  {'s', 'P', false}, {'s', 'M', false},
                {'P', 'M', false}, {'M', 'P', false}, {'R', 'M', false},
                {'R', 'R', false}, {'P', 'P', false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_hand *h = hand(test_cx());
        char from[] = {'b', 'R', rows[i].from, '\0'}, to[] = {'b', 'R', rows[i].to, '\0'};
        int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, from);
        ms_hand_redistribute(h, x, 2, to);
        ms_check_finding findings[8];
        int num = ms_program_findings(&h->program, findings, 8);
        bool refused = false;
        for (int f = 0; f < num; f++)
            refused = refused || findings[f].kind == MS_CHECK_REDISTRIBUTION;
        ASSERT_INT(refused, !rows[i].legal);
    }
}

/* Dim s is sharded over dp and, inside each dp shard, over tp: dp ranks hold halves, tp
 * ranks quarters. A redistribution may change the sharding over the inner axis alone; no
 * collective changes that over the outer axis alone. With a split factor on dp, tp is the
 * outer axis. */
static void only_the_innermost_split_moves(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        int axis;
        /* split factor of the shards over dp in `from` and `to`; 0: none */
        short strided;
        bool legal;
    } rows[] = {{"sRs", "sRR", 2, 0, true},  {"sRs", "RRs", 0, 0, false},
                {"sRs", "bRs", 0, 0, false}, {"RRs", "sRs", 0, 0, false},
                {"sRR", "sRs", 2, 0, true},  {"sRs", "RRs", 0, 2, true},
                {"sRs", "sRR", 2, 2, false}, {"RRs", "sRs", 0, 2, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_hand *h = hand(test_cx());
        int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, rows[i].from);
        int y = ms_hand_redistribute(h, x, rows[i].axis, rows[i].to);
        ms_node *node = &h->nodes[0];
        for (int t = x; t <= y; t++)
            if (h->tensors[t].at[0].kind == MS_SHARD)
                h->tensors[t].at[0].split_factor = rows[i].strided;
        node->from = h->tensors[x].at[rows[i].axis];
        node->to = h->tensors[y].at[rows[i].axis];
        ms_check_finding findings[8];
        int num = ms_program_findings(&h->program, findings, 8);
        bool refused = false;
        for (int f = 0; f < num; f++)
            refused = refused || findings[f].kind == MS_CHECK_REDISTRIBUTION;
        if (refused == rows[i].legal)
            fail_msg("%s to %s, strided by %d", rows[i].from, rows[i].to,
                     rows[i].strided);
    }
}

static void tensors_lie_as_they_can(void **state)
{
    (void)state;
    static const struct {
        const char *at, *text;
        short strided;
    } rows[] = {
        {"bRv", "t0[bsh] on tp: split by v, a dim it does not have", 0},
        {"bRb", "t0[bsh] on dp: b does not divide by the axes that split it", 0},
        {"hRh", "t0[bsh] on dp: strided by 4, but the axes inside split h into 2", 4},
        {"bRP", "t0[bsh] on tp: it is given, but a partial sum", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_hand *h = hand(test_cx());
        int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, rows[i].at);
        h->tensors[x].at[0].split_factor = rows[i].strided;
        ms_hand_unary(h, MS_OP_ROTARY, x, ms_hand_result(h, "bsh", rows[i].at));
        ms_check_finding findings[8];
        int num = ms_program_findings(&h->program, findings, 8);
        bool found = false;
        for (int f = 0; f < num && f < 8; f++)
            found = found || strcmp(findings[f].text, rows[i].text) == 0;
        if (!found)
            fail_msg("%s: %s", rows[i].at, num > 0 ? findings[0].text : "accepted");
    }
}

/* ---- programs that are accepted ---- */

static void accept(const ms_program *p, const char *label)
{
    ms_check_finding finding;
    if (!ms_program_check(p, &finding))
        ms_case_wrong(label, finding.text);
}

static bool divides_by_heads(const ms_model *model, const ms_program_key *key)
{
    long ranks = (long)key->cp * key->tp;
    return model->num_heads % ranks == 0 &&
           (model->attention == MS_ATTENTION_MLA || model->num_kv_heads % ranks == 0);
}

static void programs_of_small_models_are_accepted(void **state)
{
    (void)state;
    static const short meshes[][5] = {/* sizes of dp, cp, tp, ep, etp */
                                      {1, 1, 1, 1, 1}, {2, 2, 2, 1, 1}, {2, 2, 2, 4, 1},
                                      {2, 2, 2, 2, 2}, {1, 4, 1, 2, 1}, {1, 1, 4, 1, 4}};
    for (int i = 0; i < (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE) * 6 * 32; i++) {
        ms_ctx *cx = test_cx();
        ms_model model = ms_case_model(i / (6 * 32));
        const short *mesh = meshes[i / 32 % 6];
        ms_program_key key =
            ms_case_whole_key((ms_block_kind)(i % 5 % MS_NUM_BLOCK_KINDS));
        key.cp = mesh[1];
        key.tp = mesh[2];
        key.ep = mesh[3];
        key.etp = mesh[4];
        key.sequence_parallel = (i & 1) != 0;
        key.attention_fused = (i & 2) != 0;
        key.loss_parallel = key.regather = (i & 4) != 0;
        key.recompute = (unsigned char)(i / 8 % MS_NUM_RECOMPUTE);
        key.reruns_layer = (i & 2) != 0;
        key.optimizer = i % 3 == 0;
        key.cp_method = i % 7 < 3 ? MS_CP_RING : MS_CP_ALL_GATHER;
        if (i % 7 >= 5 && divides_by_heads(&model, &key))
            key.cp_method = MS_CP_ULYSSES;
        accept(
            ms_program_make(cx->arena, &model, &key, MS_SMALL_SEQUENCE, mesh[0], MS_BF16),
            ms_case_describe(cx->arena, &model, &key));
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

/* Accepts programs of the model on meshes whose axes divide it, with experts over ep 4,
 * and a quarter of them with adapters. */
static void accept_model(ms_ctx *cx, const ms_model *model)
{
    for (int i = 0; i < 16; i++) {
        long tp = i % 4 == 0 ? 1 : 8;
        while (model->num_heads % tp != 0 || model->num_kv_heads % tp != 0)
            tp /= 2;
        bool splits_sequence = i % 4 >= 2 && model->mamba.num_heads == 0;
        ms_program_key key = {.cp = (short)(splits_sequence ? 2 : 1),
                              .tp = (short)tp,
                              .ep = (short)(model->moe.num_experts > 0 && tp > 1 ? 4 : 1),
                              .etp = 1,
                              .microbatch = 1,
                              .optimizer = true,
                              .attention_fused = true,
                              .loss_parallel = i % 2 == 0,
                              .sequence_parallel = i >= 8,
                              .recompute = (unsigned char)(i / 4),
                              .reruns_layer = i % 2 == 0};
        if (i % 8 >= 4)
            key.cp_method = divides_by_heads(model, &key) ? MS_CP_ULYSSES : MS_CP_RING;
        if (i % 4 == 3 && model->num_nextn_predict_layers == 0)
            key.lora = (ms_lora){.rank = 8, .targets = MS_LORA_QUERY | MS_LORA_OUTPUT};
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
            int kinds = part == MS_BLOCK_LAYER ? model->num_kinds : 1;
            for (int kind = 0; kind < kinds; kind++) {
                key.block = (unsigned char)part;
                key.kind = (unsigned char)kind;
                accept(ms_program_make(cx->arena, model, &key, 2048, 4, MS_BF16),
                       ms_case_describe(cx->arena, model, &key));
            }
        }
    }
}

static void programs_of_all_models_are_accepted(void **state)
{
    (void)state;
    DIR *folder = opendir(MS_SOURCE_DIR "/configs/models");
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strstr(entry->d_name, ".json") == NULL)
            continue;
        ms_ctx *cx = test_cx();
        const ms_model *model;
        char name[300];
        snprintf(name, sizeof name, "%.*s", (int)strlen(entry->d_name) - 5,
                 entry->d_name);
        ASSERT_OK(ms_model_load(cx, name, &model), cx);
        accept_model(cx, model);
        count++;
    }
    closedir(folder);
    assert_true(count > 50);
    ASSERT_INT(ms_case_num_wrong(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_sums_are_not_multiplied),
        cmocka_unit_test(strided_and_contiguous_splits_do_not_contract),
        cmocka_unit_test(a_loss_is_averaged_over_every_axis_that_splits_tokens),
        cmocka_unit_test(redistributions_are_those_of_the_table),
        cmocka_unit_test(only_the_innermost_split_moves),
        cmocka_unit_test(tensors_lie_as_they_can),
        cmocka_unit_test_setup(programs_of_small_models_are_accepted, ms_case_start),
        cmocka_unit_test_setup(programs_of_all_models_are_accepted, ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
