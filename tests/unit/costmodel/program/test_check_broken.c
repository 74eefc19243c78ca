/* Deliberately broken layer programs: the checker rejects each for the right reason,
 * at the right node and mesh axis. */
#include "costmodel/program/program_check.h"
#include "tests/support/program_cases.h"
#include "tests/test.h"

#define MAX_FINDINGS 64

/* ---- finding what to break ---- */

static int node_of(const ms_program *p, ms_op op, const char *name, ms_pass pass)
{
    for (int n = 0; n < p->num_nodes; n++)
        if (p->nodes[n].op == op && p->nodes[n].pass == pass &&
            strcmp(p->nodes[n].name, name) == 0)
            return n;
    fail_msg("no %s of %s in pass %d", ms_op_names[op], name, pass);
    return -1;
}

static ms_node *node_at(ms_program *p, ms_op op, const char *name, ms_pass pass)
{
    return &p->nodes[node_of(p, op, name, pass)];
}

/* The redistribution over `axis` of the node's first output. */
static ms_node *change_after(ms_program *p, const ms_node *node, int axis)
{
    for (int n = 0; n < p->num_nodes; n++) {
        ms_node *change = &p->nodes[n];
        if (change->op == MS_OP_REDISTRIBUTE && change->in[0] == node->out[0] &&
            change->axis == axis)
            return change;
    }
    fail_msg("%s is not redistributed over axis %d", node->name, axis);
    return NULL;
}

static void use_instead(ms_program *p, int from, int to)
{
    for (int n = 0; n < p->num_nodes; n++)
        for (int i = 0; i < p->nodes[n].num_in; i++)
            if (p->nodes[n].in[i] == from)
                p->nodes[n].in[i] = to;
}

/* Removes the redistribution `change`: nodes that read its output now read its input,
 * which is saved for backward if the output was. */
static void drop(ms_program *p, const ms_node *change)
{
    p->tensors[change->in[0]].saved |= p->tensors[change->out[0]].saved;
    use_instead(p, change->out[0], change->in[0]);
}

/* Removes the redistribution `change`, and lets the tensor that was its input claim the
 * placement that its output had. */
static void forget(ms_program *p, const ms_node *change)
{
    drop(p, change);
    p->tensors[change->in[0]].at[change->axis] = change->to;
}

/* ---- programs ---- */

/* The program of a model on a mesh with dp 2, cp 2, tp 2, including the optimizer. */
static ms_program *make_for(ms_ctx *cx, ms_make_model *of, ms_program_key key)
{
    ms_model *model = MS_NEW(cx->arena, ms_model);
    *model = of();
    key.optimizer = true;
    return ms_case_copy(cx->arena, ms_case_program(cx->arena, model, &key, 2));
}

static ms_program *make(ms_ctx *cx, ms_make_model *of, ms_block_kind part, short ep,
                        short etp)
{
    ms_program_key key = ms_case_split_key(part);
    key.ep = ep;
    key.etp = etp;
    return make_for(cx, of, key);
}

/* A layer with Ulysses attention: heads are split over tp, and inside of that over cp. */
static ms_program *by_heads(ms_ctx *cx)
{
    ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
    key.cp_method = MS_CP_ULYSSES;
    return make_for(cx, ms_small_llama, key);
}

static ms_program *ring(ms_ctx *cx)
{
    ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
    key.cp_method = MS_CP_RING;
    return make_for(cx, ms_small_llama, key);
}

static ms_program *dense(ms_ctx *cx)
{
    return make(cx, ms_small_llama, MS_BLOCK_LAYER, 1, 1);
}

static ms_program *post_norms(ms_ctx *cx)
{
    return make(cx, ms_small_gemma, MS_BLOCK_LAYER, 1, 1);
}

static ms_program *latent(ms_ctx *cx)
{
    return make(cx, ms_small_latent, MS_BLOCK_LAYER, 1, 1);
}

/* A layer with whole experts over ep 4. */
static ms_program *experts(ms_ctx *cx)
{
    return make(cx, ms_small_mixtral, MS_BLOCK_LAYER, 4, 1);
}

/* A layer with experts over ep 2, each split over etp 2. */
static ms_program *split_experts(ms_ctx *cx)
{
    return make(cx, ms_small_mixtral, MS_BLOCK_LAYER, 2, 2);
}

static ms_program *head(ms_ctx *cx)
{
    return make(cx, ms_small_llama, MS_BLOCK_HEAD, 1, 1);
}

static ms_program *embedding(ms_ctx *cx)
{
    return make(cx, ms_small_llama, MS_BLOCK_EMBED, 1, 1);
}

/* ---- breaking them ---- */

static void add_without_reduction(ms_program *p)
{
    drop(p, change_after(p, node_at(p, MS_OP_EINSUM, "mlp.down", MS_PASS_FORWARD), 2));
}

static void claim_that_a_sum_is_whole(ms_program *p)
{
    forget(p, change_after(p, node_at(p, MS_OP_EINSUM, "mlp.down", MS_PASS_FORWARD), 2));
}

static void norm_a_partial_sum(ms_program *p)
{
    drop(p, change_after(p, node_at(p, MS_OP_EINSUM, "mlp.down", MS_PASS_FORWARD), 2));
}

static void reduce_over_another_axis(ms_program *p)
{
    change_after(p, node_at(p, MS_OP_EINSUM, "mlp.down", MS_PASS_FORWARD), 2)->axis = 1;
}

/* The tp ranks' parts of a column-parallel product's input gradient are never summed
 * over tp. */
static void forget_backward_reduction(ms_program *p)
{
    forget(p,
           change_after(p, node_at(p, MS_OP_ADD, "mlp.norm", MS_PASS_BACKWARD_INPUT), 2));
}

static void skip_backward_reduction(ms_program *p)
{
    drop(p,
         change_after(p, node_at(p, MS_OP_ADD, "mlp.norm", MS_PASS_BACKWARD_INPUT), 2));
}

static void scatter_backward_where_forward_is_whole(ms_program *p)
{
    ms_node *change =
        change_after(p, node_at(p, MS_OP_ADD, "mlp.norm", MS_PASS_BACKWARD_INPUT), 2);
    change->to = ms_shard('s');
    p->tensors[change->out[0]].at[2] = ms_shard('s');
}

static void split_by_rows_instead_of_columns(ms_program *p)
{
    ms_node *up = node_at(p, MS_OP_EINSUM, "mlp.up", MS_PASS_FORWARD);
    p->tensors[up->in[1]].at[2] = ms_shard('h');
}

static void attend_to_a_part_of_the_keys(ms_program *p)
{
    ms_node *core = node_at(p, MS_OP_ATTENTION, "attention.core", MS_PASS_FORWARD);
    int gather = p->tensors[core->in[1]].producer;
    core->in[1] = p->nodes[gather].in[0];
}

static void attend_with_all_key_heads(ms_program *p)
{
    ms_node *core = node_at(p, MS_OP_ATTENTION, "attention.core", MS_PASS_FORWARD);
    p->tensors[core->in[1]].at[2] = ms_replicate;
}

static void send_gathered_keys_around(ms_program *p)
{
    node_at(p, MS_OP_ATTENTION, "attention.core", MS_PASS_FORWARD)->ring = true;
}

static void stop_the_ring(ms_program *p)
{
    node_at(p, MS_OP_ATTENTION, "attention.core", MS_PASS_FORWARD)->ring = false;
}

static void split_key_heads_contiguously(ms_program *p)
{
    ms_node *core = node_at(p, MS_OP_ATTENTION, "attention.core", MS_PASS_FORWARD);
    p->tensors[core->in[1]].at[1].split_factor = 0;
}

static void forget_that_the_rotary_key_is_shared(ms_program *p)
{
    forget(p, change_after(
                  p, node_at(p, MS_OP_EINSUM, "attention.kv_up", MS_PASS_BACKWARD_INPUT),
                  2));
}

static void whole_rotary_key_gradient(ms_program *p)
{
    ms_node *keys =
        node_at(p, MS_OP_MLA_KEYS_GRAD, "attention.keys", MS_PASS_BACKWARD_INPUT);
    p->tensors[keys->out[1]].at[2] = ms_replicate;
}

static ms_node *weight_reduction(ms_program *p, const char *name, int axis)
{
    for (int n = 0; n < p->num_nodes; n++)
        if (p->nodes[n].pass == MS_PASS_OPTIMIZER &&
            p->nodes[n].op == MS_OP_REDISTRIBUTE && p->nodes[n].axis == axis &&
            strcmp(p->nodes[n].name, name) == 0)
            return &p->nodes[n];
    fail_msg("the gradient of %s is not reduced over axis %d", name, axis);
    return NULL;
}

static void average_over_dp_but_not_cp(ms_program *p)
{
    drop(p, weight_reduction(p, "mlp.up", 1));
}

static void average_over_cp_but_not_dp(ms_program *p)
{
    ms_node *over_dp = weight_reduction(p, "mlp.up", 0),
            *over_cp = weight_reduction(p, "mlp.up", 1);
    drop(p, over_dp);
    p->tensors[over_cp->out[0]].at[0] = p->tensors[over_cp->in[0]].at[0];
}

static void claim_a_weight_gradient_whole(ms_program *p)
{
    forget(p, weight_reduction(p, "mlp.up", 0));
}

static void update_with_another_gradient(ms_program *p)
{
    ms_node *up = node_at(p, MS_OP_ADAM, "mlp.up", MS_PASS_OPTIMIZER);
    up->in[1] = node_at(p, MS_OP_ADAM, "mlp.gate", MS_PASS_OPTIMIZER)->in[1];
}

static void update_a_weight_twice(ms_program *p)
{
    ms_node *up = node_at(p, MS_OP_ADAM, "mlp.up", MS_PASS_OPTIMIZER);
    ms_node *gate = node_at(p, MS_OP_ADAM, "mlp.gate", MS_PASS_OPTIMIZER);
    up->in[0] = gate->in[0];
    up->in[1] = gate->in[1];
}

static void lose_a_contribution(ms_program *p)
{
    ms_node *sum = node_at(p, MS_OP_ADD, "mlp.norm", MS_PASS_BACKWARD_INPUT);
    use_instead(p, sum->out[0], sum->in[0]);
}

static void differentiate_at_another_point(ms_program *p)
{
    ms_node *grad =
        node_at(p, MS_OP_ACTIVATION_GRAD, "mlp.activation", MS_PASS_BACKWARD_INPUT);
    int gate = grad->in[0];
    grad->in[0] = grad->in[1];
    grad->in[1] = gate;
}

static void use_what_was_not_saved(ms_program *p)
{
    ms_node *grad =
        node_at(p, MS_OP_ACTIVATION_GRAD, "mlp.activation", MS_PASS_BACKWARD_INPUT);
    p->tensors[grad->in[0]].saved = false;
}

static void use_before_it_is_made(ms_program *p)
{
    ms_node *up = node_at(p, MS_OP_EINSUM, "mlp.up", MS_PASS_FORWARD);
    up->in[0] = node_at(p, MS_OP_ADD, "mlp.residual", MS_PASS_FORWARD)->out[0];
}

static void multiply_other_dims(ms_program *p)
{
    node_at(p, MS_OP_EINSUM, "mlp.up", MS_PASS_FORWARD)->einsum = "bsh,hg->bsg";
}

static void give_back_another_layout(ms_program *p)
{
    ms_tensor *output = &p->tensors[p->output];
    output->at[1] = ms_replicate;
}

static void leave_the_input_gradient_partial(ms_program *p)
{
    ms_node *sum = node_at(p, MS_OP_ADD, "mlp.norm", MS_PASS_BACKWARD_INPUT);
    p->input_gradient = sum->out[0];
}

static void exchange_by_whole_choice(ms_program *p)
{
    ms_node *dispatch = node_at(p, MS_OP_EXCHANGE, "experts.dispatch", MS_PASS_FORWARD);
    int change = p->tensors[dispatch->in[1]].producer;
    dispatch->in[1] = p->nodes[change].in[0];
}

static void exchange_by_weights(ms_program *p)
{
    ms_node *unpermute =
        node_at(p, MS_OP_UNPERMUTE, "experts.unpermute", MS_PASS_FORWARD);
    node_at(p, MS_OP_EXCHANGE, "experts.dispatch", MS_PASS_FORWARD)->in[1] =
        unpermute->in[1];
}

static void exchange_replicated_rows(ms_program *p)
{
    ms_node *permute = node_at(p, MS_OP_PERMUTE, "experts.permute", MS_PASS_FORWARD);
    for (int i = 0; i < 2; i++)
        permute->in[i] = p->nodes[p->tensors[permute->in[i]].producer].in[0];
    p->tensors[permute->out[0]].at[2] = ms_replicate;
    exchange_by_whole_choice(p);
}

static void compute_rows_elsewhere(ms_program *p)
{
    ms_node *up = node_at(p, MS_OP_GROUPED, "experts.up", MS_PASS_FORWARD);
    p->tensors[up->in[1]].at[1] = ms_replicate;
}

static void whole_expert_gradient(ms_program *p)
{
    ms_node *up = node_at(p, MS_OP_GROUPED, "experts.up", MS_PASS_BACKWARD_WEIGHT);
    p->tensors[up->out[0]].at[0] = ms_replicate;
}

static void forget_etp_reduction(ms_program *p)
{
    forget(p, change_after(p, node_at(p, MS_OP_GROUPED, "experts.down", MS_PASS_FORWARD),
                           2));
}

static void drop_etp_reduction(ms_program *p)
{
    drop(p,
         change_after(p, node_at(p, MS_OP_GROUPED, "experts.down", MS_PASS_FORWARD), 2));
}

static void drop_etp_reduction_of_rows(ms_program *p)
{
    ms_node *down = node_at(p, MS_OP_GROUPED, "experts.down", MS_PASS_FORWARD);
    p->tensors[down->out[0]].at[2] = ms_replicate;
}

static void sum_over_an_unreduced_maximum(ms_program *p)
{
    ms_node *sum = node_at(p, MS_OP_LOSS_SUM, "loss.sum", MS_PASS_FORWARD);
    int change = p->tensors[sum->in[1]].producer;
    sum->in[1] = p->nodes[change].in[0];
}

static void take_the_log_of_a_partial_sum(ms_program *p)
{
    ms_node *loss = node_at(p, MS_OP_LOSS, "loss", MS_PASS_FORWARD);
    int change = p->tensors[loss->in[1]].producer;
    loss->in[1] = p->nodes[change].in[0];
}

static void mix_up_sum_and_target(ms_program *p)
{
    ms_node *loss = node_at(p, MS_OP_LOSS, "loss", MS_PASS_FORWARD);
    int sum = loss->in[1];
    loss->in[1] = loss->in[2];
    loss->in[2] = sum;
}

static void look_up_without_reduction(ms_program *p)
{
    ms_node *embed = node_at(p, MS_OP_EMBED, "embedding.tokens", MS_PASS_FORWARD);
    p->output = embed->out[0];
}

static void claim_a_lookup_whole(ms_program *p)
{
    forget(p, change_after(
                  p, node_at(p, MS_OP_EMBED, "embedding.tokens", MS_PASS_FORWARD), 2));
}

/* ---- each for its reason ---- */

typedef struct breakage {
    const char *label;
    ms_program *(*program)(ms_ctx *cx);
    void (*apply)(ms_program *p);
    ms_check_kind kind;
    const char *axis; /* mesh axis in the finding; NULL: any */
    const char *text; /* part of the finding's text */
} breakage;

static const breakage breakages[] = {
    {"sum of whole and partial", dense, add_without_reduction, MS_CHECK_PARTIAL_OPERAND,
     "tp", "mlp.down[bsh] is a partial sum: add takes it whole"},
    {"forgotten forward reduction", dense, claim_that_a_sum_is_whole,
     MS_CHECK_FORGOTTEN_REDUCTION, "tp",
     "(mlp.down, einsum) on tp: mlp.down[bsh] is a partial sum by its operands, but "
     "claimed to be replicated: a reduction is missing"},
    {"norm of a partial sum", post_norms, norm_a_partial_sum, MS_CHECK_PARTIAL_OPERAND,
     "tp", "(mlp.post_norm, norm) on tp: mlp.down[bsh] is a partial sum"},
    {"wrong axis", dense, reduce_over_another_axis, MS_CHECK_REDISTRIBUTION, "cp",
     "does not go from a partial sum to replicated on this axis alone"},
    {"Megatron's f forgotten", dense, forget_backward_reduction,
     MS_CHECK_FORGOTTEN_REDUCTION, "tp",
     "mlp.norm[bsh] is a partial sum by its operands, but claimed to be replicated"},
    {"Megatron's f skipped", dense, skip_backward_reduction, MS_CHECK_FORGOTTEN_REDUCTION,
     "tp", "(mlp.norm, norm-grad) on tp:"},
    {"scatter without a gather", dense, scatter_backward_where_forward_is_whole,
     MS_CHECK_GRADIENT, "tp", "mlp.norm[bsh] is replicated, and its gradient split by s"},
    {"rows for columns", dense, split_by_rows_instead_of_columns, MS_CHECK_SPLIT, "tp",
     "its operands do not lie together: mlp.up[hf] is split by h, so mlp.norm[bsh] must "
     "be split by h, but it is replicated"},
    {"some of the keys", dense, attend_to_a_part_of_the_keys, MS_CHECK_SPLIT, "cp",
     "attention.query_position[bsnd] is split by s, so attention.key_position[bsgd] must "
     "be replicated, but it is split by s"},
    {"all of the key heads", dense, attend_with_all_key_heads, MS_CHECK_SPLIT, "tp",
     "attention.query_position[bsnd] is split by n"},
    {"ring of gathered keys", dense, send_gathered_keys_around, MS_CHECK_SPLIT, "cp",
     "so attention.key_position[bsgd] must be split by s, but it is replicated"},
    {"no ring", ring, stop_the_ring, MS_CHECK_SPLIT, "cp",
     "so attention.key_position[bsgd] must be replicated, but it is split by s"},
    {"other key heads", by_heads, split_key_heads_contiguously, MS_CHECK_STRIDED, "cp",
     "attention.query_position[bsnd] is split by n, strided by 2, so "
     "attention.key_position[bsgd] must be split by g, strided by 2, but it is split by g"},
    {"rotary key of some heads", latent, whole_rotary_key_gradient,
     MS_CHECK_FORGOTTEN_REDUCTION, "tp", "(attention.keys, mla-keys-grad) on tp:"},
    {"gradient of a latent", latent, forget_that_the_rotary_key_is_shared,
     MS_CHECK_FORGOTTEN_REDUCTION, "tp", "(attention.kv_up, einsum) on tp:"},
    {"averaged over dp but not cp", dense, average_over_dp_but_not_cp,
     MS_CHECK_FORGOTTEN_REDUCTION, "cp",
     "the gradient of mlp.up[hf] is reduced over dp but still a partial sum over cp"},
    {"averaged over cp but not dp", dense, average_over_cp_but_not_dp,
     MS_CHECK_FORGOTTEN_REDUCTION, "dp",
     "the gradient of mlp.up[hf] is reduced over cp but still a partial sum over dp"},
    {"weight gradient claimed whole", dense, claim_a_weight_gradient_whole,
     MS_CHECK_FORGOTTEN_REDUCTION, "dp", "(mlp.up, einsum) on dp:"},
    {"update by another gradient", dense, update_with_another_gradient, MS_CHECK_UPDATE,
     NULL, "mlp.up[hf] is updated with another tensor than its gradient"},
    {"update twice", dense, update_a_weight_twice, MS_CHECK_UPDATE, NULL,
     "mlp.gate[hf]: it is updated 2 times"},
    {"lost contribution", dense, lose_a_contribution, MS_CHECK_GRADIENT, NULL,
     "is not the whole gradient of mlp.norm[bsh]"},
    {"derivative at another point", dense, differentiate_at_another_point,
     MS_CHECK_GRADIENT, NULL, "it takes mlp.up[bsf] where the derivative of node"},
    {"not saved", dense, use_what_was_not_saved, MS_CHECK_STRUCTURE, NULL,
     "was neither saved for backward nor computed again"},
    {"before it is made", dense, use_before_it_is_made, MS_CHECK_STRUCTURE, NULL,
     "mlp.residual[bsh] is used before it is made"},
    {"other dims", dense, multiply_other_dims, MS_CHECK_STRUCTURE, NULL,
     "einsum does not take operands or give results of these dims"},
    {"another layout", dense, give_back_another_layout, MS_CHECK_RESULT, "cp",
     "the layer's result is replicated, its input split by s"},
    {"partial input gradient", dense, leave_the_input_gradient_partial, MS_CHECK_GRADIENT,
     NULL, "input[bsh]: its gradient is not whole"},
    {"another choice", experts, exchange_by_whole_choice, MS_CHECK_ROWS, NULL,
     "the choice lies otherwise than the tokens whose rows are exchanged"},
    {"no choice", experts, exchange_by_weights, MS_CHECK_ROWS, NULL,
     "router.weight is no choice of experts"},
    {"rows held twice", experts, exchange_replicated_rows, MS_CHECK_ROWS, NULL,
     "the rows of experts.permute are not split over all axes on the dense mesh"},
    {"rows without their expert", experts, compute_rows_elsewhere, MS_CHECK_SPLIT, "ep",
     "(experts.up, grouped) on ep: its operands do not lie together"},
    {"expert gradient claimed whole", experts, whole_expert_gradient,
     MS_CHECK_FORGOTTEN_REDUCTION, "edp", "(experts.up, grouped) on edp:"},
    {"etp reduction forgotten", split_experts, forget_etp_reduction,
     MS_CHECK_FORGOTTEN_REDUCTION, "etp", "(experts.down, grouped) on etp:"},
    {"etp reduction dropped", split_experts, drop_etp_reduction, MS_CHECK_ROWS, NULL,
     "the rows of experts.down are not split over all axes on the sparse mesh"},
    {"rows of a part of an expert", split_experts, drop_etp_reduction_of_rows,
     MS_CHECK_FORGOTTEN_REDUCTION, "etp", "(experts.down, grouped) on etp:"},
    {"partial maximum", head, sum_over_an_unreduced_maximum, MS_CHECK_PARTIAL_OPERAND,
     "tp", "loss.max[bs] is a partial maximum: loss-sum takes it whole"},
    {"log of a partial sum", head, take_the_log_of_a_partial_sum,
     MS_CHECK_PARTIAL_OPERAND, "tp",
     "loss.sum[bs] is a partial sum: loss takes it whole"},
    {"sum and target", head, mix_up_sum_and_target, MS_CHECK_STRUCTURE, NULL,
     "maximum, sum and target are not those of the same logits"},
    {"partial result", embedding, look_up_without_reduction, MS_CHECK_FORGOTTEN_REDUCTION,
     "tp",
     "embedding.tokens[bsh] on tp: the program's result is still a partial sum over tp"},
    {"lookup claimed whole", embedding, claim_a_lookup_whole,
     MS_CHECK_FORGOTTEN_REDUCTION, "tp", "(embedding.tokens, embed) on tp:"},
};

static bool is_found(const ms_program *p, const breakage *wanted)
{
    ms_check_finding findings[MAX_FINDINGS];
    int num = ms_program_findings(p, findings, MAX_FINDINGS);
    num = num < MAX_FINDINGS ? num : MAX_FINDINGS;
    for (int i = 0; i < num; i++) {
        bool axis = wanted->axis == NULL || (findings[i].axis != NULL &&
                                             strcmp(findings[i].axis, wanted->axis) == 0);
        if (axis && findings[i].kind == wanted->kind &&
            strstr(findings[i].text, wanted->text) != NULL)
            return true;
    }
    fprintf(stderr, "%s, %d findings:\n", wanted->label, num);
    for (int i = 0; i < num; i++)
        fprintf(stderr, "  %s: %s\n", ms_check_kind_names[findings[i].kind],
                findings[i].text);
    return false;
}

static void broken_layers_are_rejected_for_the_right_reason(void **state)
{
    (void)state;
    int num_missed = 0;
    for (size_t i = 0; i < sizeof breakages / sizeof *breakages; i++) {
        ms_ctx *cx = test_cx();
        ms_program *p = breakages[i].program(cx);
        ASSERT_INT(ms_program_findings(p, NULL, 0), 0);
        breakages[i].apply(p);
        num_missed += !is_found(p, &breakages[i]);
    }
    ASSERT_INT(num_missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(broken_layers_are_rejected_for_the_right_reason,
                               ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
