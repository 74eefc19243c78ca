#include "costmodel/reshard/einsum_strategy.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MAX_COMBINATIONS 4096
#define MAX_SPREADS      64 /* most shardings of an einsum over one axis */
#define CLEAR_MARGIN     0.9
#define SAME_SECONDS     (1.0 - 1e-9)

/* A cached redistribution of one tensor, shared by many combinations of shardings. */
typedef struct known_move {
    ms_einsum_move move;
    struct known_move *next;
} known_move;

typedef struct chooser {
    ms_arena *arena;
    const ms_einsum_problem *problem;
    bool is_direct; /* redistributions change only axes that must change */
    int num_spreads[MS_MAX_AXES];
    ms_spread spreads[MS_MAX_AXES][MAX_SPREADS];
    known_move *inputs[MS_EINSUM_MAX_INPUTS];
    known_move *output;
    ms_spread current[MS_MAX_AXES];
    double least_move_s; /* lower bound of seconds of a redistribution with traffic */
    double limit_s;      /* seconds that a better choice stays below, or INFINITY */
    ms_einsum_choice best;
} chooser;

/* ---- placements of a choice ---- */

/* Spec that a sharded einsum needs of an input, or gives its output (`input` -1). */
static ms_spec operand_spec(const ms_einsum_problem *problem, const ms_spread *spread,
                            int input)
{
    ms_spec spec = {0};
    for (int axis = 0; axis < problem->mesh->num_axes; axis++) {
        spec.at[axis] =
            input < 0
                ? ms_einsum_output_placement(&problem->einsum, spread[axis])
                : ms_einsum_operand_placement(&problem->einsum, spread[axis], input);
    }
    return spec;
}

ms_letter_sizes ms_einsum_local_sizes(const ms_einsum_problem *problem,
                                      const ms_spread *spread)
{
    ms_letter_sizes sizes = {0};
    for (int i = 0; i < problem->einsum.num_inputs; i++) {
        ms_spec spec = operand_spec(problem, spread, i);
        long size[MS_MAX_TENSOR_DIMS];
        ms_spec_largest_size(problem->mesh, &spec, &problem->inputs[i], size);
        for (int d = 0; d < problem->inputs[i].num_dims; d++)
            sizes.of[(unsigned char)problem->inputs[i].dims[d]] = (double)size[d];
    }
    return sizes;
}

static void set_tensor(ms_global_tensor *tensor, const char *name, const char *letters,
                       const long *size)
{
    tensor->name = name;
    tensor->num_dims = (int)strlen(letters);
    memcpy(tensor->dims, letters, (size_t)tensor->num_dims + 1);
    for (int d = 0; d < tensor->num_dims; d++)
        tensor->size[d] = size[(unsigned char)letters[d]];
}

void ms_einsum_set_tensors(ms_arena *arena, ms_einsum_problem *problem, const long *size,
                           double element_bytes)
{
    const ms_einsum *einsum = &problem->einsum;
    for (int i = 0; i < einsum->num_inputs; i++) {
        set_tensor(&problem->inputs[i], ms_arena_printf(arena, "input %d", i + 1),
                   einsum->inputs[i], size);
        problem->inputs[i].element_bytes = element_bytes;
    }
    set_tensor(&problem->output, "output", einsum->output, size);
    problem->output.element_bytes = element_bytes;
}

/* ---- possible spreads ---- */

static void offer(chooser *c, int axis, ms_spread spread)
{
    for (int i = 0; i < c->num_spreads[axis]; i++) {
        const ms_spread *known = &c->spreads[axis][i];
        if (known->letter == spread.letter && known->input == spread.input &&
            known->split_factor == spread.split_factor)
            return;
    }
    if (c->num_spreads[axis] < MAX_SPREADS)
        c->spreads[axis][c->num_spreads[axis]++] = spread;
}

static void list_spreads(chooser *c, int axis)
{
    const ms_einsum_problem *problem = c->problem;
    const ms_einsum *einsum = &problem->einsum;
    offer(c, axis, (ms_spread){.letter = MS_WHOLE});
    for (const char *letter = einsum->letters; *letter != '\0'; letter++) {
        offer(c, axis, (ms_spread){.letter = *letter});
        for (int i = 0; i < einsum->num_inputs; i++) {
            ms_placement at = problem->given[i].at[axis];
            if (ms_placement_splits(at, *letter) && at.split_factor > 1)
                offer(c, axis,
                      (ms_spread){.letter = *letter, .split_factor = at.split_factor});
        }
    }
    for (int i = 0; i < einsum->num_inputs; i++)
        if (problem->given[i].at[axis].kind == MS_PARTIAL_SUM)
            offer(c, axis, (ms_spread){.letter = MS_LINEAR, .input = (signed char)i});
}

/* ---- the cost of one combination ---- */

static void plan_move(ms_arena *arena, const ms_einsum_problem *problem,
                      const ms_global_tensor *tensor, bool is_direct,
                      ms_einsum_move *move)
{
    const char *why;
    ms_redistribute_task task = {.mesh = problem->mesh,
                                 .tensor = tensor,
                                 .from = move->from,
                                 .to = move->to,
                                 .prices = problem->prices,
                                 .is_direct = is_direct};
    if (!ms_redistribute(arena, &task, &move->plan, &why))
        move->plan = (ms_redistribution){.seconds = INFINITY};
}

static ms_einsum_move find_move(chooser *c, known_move **known,
                                const ms_global_tensor *tensor, ms_spec from, ms_spec to)
{
    const ms_mesh *mesh = c->problem->mesh;
    for (known_move *k = *known; k != NULL; k = k->next)
        if (ms_spec_equal(mesh, &k->move.from, &from) &&
            ms_spec_equal(mesh, &k->move.to, &to))
            return k->move;
    known_move *made = MS_NEW(c->arena, known_move);
    made->move = (ms_einsum_move){.from = from, .to = to};
    plan_move(c->arena, c->problem, tensor, c->is_direct, &made->move);
    made->next = *known;
    *known = made;
    return made->move;
}

/* Whether a redistribution has traffic; replicated values change without any. */
static bool must_send(const ms_mesh *mesh, const ms_spec *from, const ms_spec *to)
{
    for (int axis = 0; axis < mesh->num_axes; axis++)
        if (mesh->axes[axis].size > 1 && from->at[axis].kind != MS_REPLICATE &&
            !ms_placement_equal(from->at[axis], to->at[axis]))
            return true;
    return false;
}

/* Lower bound of the seconds for redistributing inputs `first` and later. */
static double least_moves_s(const chooser *c, const ms_spread *spread, int first)
{
    const ms_einsum_problem *problem = c->problem;
    double seconds = 0.0;
    for (int i = first; i < problem->einsum.num_inputs; i++) {
        ms_spec to = operand_spec(problem, spread, i);
        if (must_send(problem->mesh, &problem->given[i], &to))
            seconds += c->least_move_s;
    }
    return seconds;
}

/* Prices the einsum under shardings of all axes; false if it takes `limit_s` or more. */
static bool price(chooser *c, const ms_spread *spread, double limit_s,
                  ms_einsum_choice *out)
{
    const ms_einsum_problem *problem = c->problem;
    ms_letter_sizes sizes = ms_einsum_local_sizes(problem, spread);
    *out = (ms_einsum_choice){.compute_s = 0.0};
    memcpy(out->spread, spread, sizeof out->spread);
    out->compute_s = ms_einsum_s(problem->pricer, &problem->einsum, &sizes,
                                 problem->output.element_bytes);
    out->total_s = out->compute_s;
    for (int i = 0; i < problem->einsum.num_inputs; i++) {
        if (out->total_s + least_moves_s(c, spread, i) >= limit_s)
            return false;
        out->inputs[i] = find_move(c, &c->inputs[i], &problem->inputs[i],
                                   problem->given[i], operand_spec(problem, spread, i));
        out->total_s += out->inputs[i].plan.seconds;
    }
    if (out->total_s >= limit_s)
        return false;
    ms_spec made = operand_spec(problem, spread, -1);
    out->output = find_move(c, &c->output, &problem->output, made,
                            problem->wanted != NULL ? *problem->wanted : made);
    out->total_s += out->output.plan.seconds;
    return out->total_s < limit_s;
}

bool ms_einsum_price(ms_arena *arena, const ms_einsum_problem *problem,
                     const ms_spread *spread, ms_einsum_choice *out)
{
    chooser *c = MS_NEW(arena, chooser);
    c->arena = arena;
    c->problem = problem;
    c->is_direct = problem->is_direct;
    return price(c, spread, INFINITY, out);
}

/* Lower bound of the seconds of a redistribution: one byte over the cheapest axis. */
static double least_move_s(const ms_einsum_problem *problem)
{
    static const ms_collective kinds[] = {MS_ALL_GATHER, MS_REDUCE_SCATTER, MS_ALL_REDUCE,
                                          MS_ALL_TO_ALL, MS_SEND};
    double least_s = INFINITY;
    const ms_collective_prices *prices = problem->prices;
    for (int axis = 0; axis < problem->mesh->num_axes; axis++) {
        if (problem->mesh->axes[axis].size == 1)
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            least_s =
                fmin(least_s, prices->seconds(prices->data, kinds[i], 1U << axis, 1.0));
    }
    return isfinite(least_s) ? least_s : 0.0;
}

/* Lowers c->limit_s to the seconds of the shardings that leave `input` as given. */
static void limit_by_input(chooser *c, int input)
{
    const ms_einsum_problem *problem = c->problem;
    ms_spread spread[MS_MAX_AXES] = {0};
    ms_einsum_choice choice;
    for (int axis = 0; axis < problem->mesh->num_axes; axis++) {
        ms_placement at = problem->given[input].at[axis];
        if (at.kind == MS_SHARD)
            spread[axis] = (ms_spread){.letter = at.dim, .split_factor = at.split_factor};
        else if (at.kind == MS_PARTIAL_SUM)
            spread[axis] = (ms_spread){.letter = MS_LINEAR, .input = (signed char)input};
    }
    if (price(c, spread, c->limit_s, &choice))
        c->limit_s = choice.total_s / SAME_SECONDS;
}

/* Whether the shardings on trial split `letter` as an input's given spec does. */
static bool is_split_as_given(const chooser *c, int input, char letter)
{
    for (int axis = 0; axis < c->problem->mesh->num_axes; axis++) {
        ms_spread spread = c->current[axis];
        ms_placement at = c->problem->given[input].at[axis];
        bool is_here = spread.letter == letter;
        bool is_there = ms_placement_splits(at, letter);
        if (is_here != is_there || (is_here && spread.split_factor != at.split_factor))
            return false;
    }
    return true;
}

/* Whether the shardings on trial split a letter evenly, or as some input is split. */
static bool is_letter_even(const chooser *c, char letter, long size)
{
    long parts = 1;
    for (int axis = 0; axis < c->problem->mesh->num_axes; axis++)
        if (c->current[axis].letter == letter)
            parts *= c->problem->mesh->axes[axis].size;
    bool is_even = size % parts == 0;
    for (int i = 0; i < c->problem->einsum.num_inputs && !is_even; i++)
        is_even = is_split_as_given(c, i, letter);
    return is_even;
}

static bool is_current_even(const chooser *c)
{
    for (int i = 0; i < c->problem->einsum.num_inputs; i++) {
        const ms_global_tensor *tensor = &c->problem->inputs[i];
        for (int d = 0; d < tensor->num_dims; d++)
            if (!is_letter_even(c, tensor->dims[d], tensor->size[d]))
                return false;
    }
    return true;
}

static bool try_current(chooser *c)
{
    ms_einsum_choice choice;
    if (!is_current_even(c) || !price(c, c->current, c->limit_s, &choice))
        return false;
    c->best = choice;
    c->limit_s = choice.total_s * SAME_SECONDS;
    return true;
}

/* ---- search ---- */

static void try_all(chooser *c, int axis)
{
    if (axis == c->problem->mesh->num_axes) {
        (void)try_current(c);
        return;
    }
    for (int i = 0; i < c->num_spreads[axis]; i++) {
        c->current[axis] = c->spreads[axis][i];
        try_all(c, axis + 1);
    }
}

static void try_axis_by_axis(chooser *c)
{
    bool improved = true;
    (void)try_current(c);
    while (improved) {
        improved = false;
        for (int axis = 0; axis < c->problem->mesh->num_axes; axis++) {
            for (int i = 0; i < c->num_spreads[axis]; i++) {
                c->current[axis] = c->spreads[axis][i];
                improved = try_current(c) || improved;
            }
            c->current[axis] = c->best.spread[axis];
        }
    }
}

static double num_combinations(const chooser *c)
{
    double product = 1.0;
    for (int axis = 0; axis < c->problem->mesh->num_axes; axis++)
        product *= c->num_spreads[axis];
    return product;
}

/* Finds for each axis the sharding that takes all inputs as given; false if none. */
static bool spread_as_given(const ms_einsum_problem *problem, ms_spread *spread,
                            ms_einsum_conflict *conflict)
{
    bool legal = true;
    for (int axis = 0; axis < problem->mesh->num_axes; axis++) {
        ms_placement at[MS_EINSUM_MAX_INPUTS];
        for (int i = 0; i < problem->einsum.num_inputs; i++)
            at[i] = problem->given[i].at[axis];
        conflict[axis] = ms_einsum_spread_of(&problem->einsum, at, &spread[axis]);
        legal = legal && conflict[axis] == MS_CONFLICT_NONE;
    }
    return legal;
}

bool ms_einsum_choose(ms_arena *arena, const ms_einsum_problem *problem,
                      ms_einsum_strategy *out)
{
    chooser *c = MS_NEW(arena, chooser);
    c->arena = arena;
    c->problem = problem;
    c->is_direct = true;
    c->limit_s = INFINITY;
    ms_spread given[MS_MAX_AXES] = {0};
    *out = (ms_einsum_strategy){0};
    out->is_legal = spread_as_given(problem, given, out->conflict);
    for (int axis = 0; axis < problem->mesh->num_axes; axis++)
        list_spreads(c, axis);
    c->least_move_s = least_move_s(problem);
    out->is_exhaustive = num_combinations(c) <= MAX_COMBINATIONS;
    if (out->is_exhaustive) {
        for (int i = 0; i < problem->einsum.num_inputs; i++)
            limit_by_input(c, i);
        try_all(c, 0);
    } else {
        try_axis_by_axis(c);
    }
    if (!isfinite(c->limit_s) ||
        !ms_einsum_price(arena, problem, c->best.spread, &out->cheaper))
        return false;
    out->chosen = out->cheaper;
    if (!out->is_legal)
        return true;
    if (!ms_einsum_price(arena, problem, given, &out->chosen))
        return false;
    out->has_cheaper = out->cheaper.total_s < CLEAR_MARGIN * out->chosen.total_s;
    return true;
}

/* ---- backward ---- */

static ms_spec gradient_spec(const ms_mesh *mesh, ms_spec spec)
{
    for (int axis = 0; axis < mesh->num_axes; axis++)
        spec.at[axis] = ms_gradient_placement(spec.at[axis]);
    return spec;
}

void ms_einsum_derive_backward(ms_arena *arena, const ms_einsum_problem *problem,
                               const ms_einsum_choice *choice, ms_einsum_backward *out)
{
    const ms_mesh *mesh = problem->mesh;
    ms_letter_sizes sizes = ms_einsum_local_sizes(problem, choice->spread);
    *out = (ms_einsum_backward){0};
    out->output.from = gradient_spec(mesh, choice->output.to);
    out->output.to = gradient_spec(mesh, choice->output.from);
    plan_move(arena, problem, &problem->output, problem->is_direct, &out->output);
    for (int i = 0; i < problem->einsum.num_inputs; i++) {
        ms_einsum_input_gradient *gradient = &out->inputs[i];
        gradient->einsum = ms_einsum_gradient(&problem->einsum, i);
        for (int axis = 0; axis < mesh->num_axes; axis++)
            gradient->move.from.at[axis] = ms_einsum_output_placement(
                &gradient->einsum, ms_einsum_gradient_spread(choice->spread[axis], i));
        gradient->move.to = gradient_spec(mesh, problem->given[i]);
        plan_move(arena, problem, &problem->inputs[i], problem->is_direct,
                  &gradient->move);
        gradient->compute_s = ms_einsum_s(problem->pricer, &gradient->einsum, &sizes,
                                          problem->inputs[i].element_bytes);
    }
}
