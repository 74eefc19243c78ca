/* The schedules DualPipe and DualPipeV: eight steps in which a forward of one chunk
 * overlaps with a backward of the other. Source: DeepSeek-AI 2024, "DeepSeek-V3 Technical
 * Report" (arXiv 2412.19437), section 3.2.1; steps as in deepseek-ai/DualPipe,
 * dualpipe.py and dualpipev.py. */
#include "costmodel/schedule/schedule_priv.h"

typedef struct rank_filler {
    ms_action_list *list;
    int stage[2];       /* [chunk] the rank's stage; chunk 0 enters at the nearer end */
    int forwards[2];    /* [chunk] number of forwards added to the list */
    int backwards[2];   /* [chunk] number of backwards added, whole or input (I) */
    ms_action *waiting; /* weight gradients whose I is in `list`, oldest first */
    int num_waiting, num_weights;
} rank_filler;

/* A rank's position. Pipelines fold in the middle (DualPipe) or at the last rank (V). */
typedef struct rank_place {
    int from_end; /* ranks between this one and the end where chunk 0 enters */
    int to_fold;  /* ranks between this one and the fold */
    /* rounds of step 4 of dualpipe.py, each of two MS_OVERLAP pairs */
    int num_overlapped;
} rank_place;

static void add_forward(rank_filler *f, int chunk)
{
    ms_action_add(f->list, MS_FORWARD, f->stage[chunk], f->forwards[chunk]++);
}

static void add_whole_backward(rank_filler *f, int chunk)
{
    ms_action_add(f->list, MS_BACKWARD, f->stage[chunk], f->backwards[chunk]++);
}

static void add_input_backward(rank_filler *f, int chunk)
{
    int microbatch = f->backwards[chunk]++;
    ms_action_add(f->list, MS_BACKWARD_INPUT, f->stage[chunk], microbatch);
    f->waiting[f->num_waiting++] = (ms_action){.kind = MS_BACKWARD_WEIGHT,
                                               .stage = (short)f->stage[chunk],
                                               .microbatch = microbatch};
}

static void add_oldest_weight(rank_filler *f)
{
    ms_action_push(f->list, f->waiting[f->num_weights++]);
}

static void add_pair(rank_filler *f, int forward_chunk)
{
    int backward_chunk = 1 - forward_chunk;
    ms_action_add_pair(f->list, f->stage[forward_chunk], f->forwards[forward_chunk]++,
                       f->stage[backward_chunk], f->backwards[backward_chunk]++);
}

/* Adds the warm-up, steps 1 to 3 of dualpipe.py. */
static void fill_warmup(rank_filler *f, const rank_place *place)
{
    for (int k = 0; k < 2 * place->to_fold; k++)
        add_forward(f, 0);
    for (int k = 0; k < place->from_end + 1; k++) {
        add_forward(f, 0);
        add_forward(f, 1);
    }
    for (int k = 0; k < place->to_fold; k++) {
        add_input_backward(f, 1);
        add_oldest_weight(f);
        add_forward(f, 1);
    }
}

/* Adds the overlapped pairs, step 4; the rank at the fold starts with a lone forward. */
static void fill_overlapped(rank_filler *f, const rank_place *place)
{
    for (int k = 0; k < place->num_overlapped; k++) {
        if (k == 0 && place->to_fold == 0) {
            add_forward(f, 0);
            add_whole_backward(f, 1);
        } else {
            add_pair(f, 0);
        }
        add_pair(f, 1);
    }
}

/* Adds the cooldown, steps 5 to 8; weight gradients fill idle time from step 6 on. */
static void fill_cooldown(rank_filler *f, const rank_place *place)
{
    for (int k = 0; k < place->to_fold; k++) {
        add_whole_backward(f, 1);
        add_pair(f, 1);
    }
    for (int k = 0; k < 2 * (place->from_end + 1); k++) {
        int chunk = k % 2 == 0 ? 1 : 0;
        if (k <= place->from_end)
            add_whole_backward(f, chunk);
        else
            add_input_backward(f, chunk);
    }
    for (int k = 0; k < place->to_fold; k++) {
        add_oldest_weight(f);
        add_input_backward(f, 0);
    }
    while (f->num_weights < f->num_waiting)
        add_oldest_weight(f);
}

static void fill_at(const ms_schedule_shape *shape, int rank, int first_chunk,
                    const rank_place *place, ms_action_list *list)
{
    rank_filler f = {.list = list,
                     .stage = {ms_schedule_stage(shape, rank, first_chunk),
                               ms_schedule_stage(shape, rank, 1 - first_chunk)},
                     .waiting = MS_NEW_ARRAY(list->arena,
                                             2 * (place->from_end + place->to_fold + 1),
                                             ms_action)};
    fill_warmup(&f, place);
    fill_overlapped(&f, place);
    fill_cooldown(&f, place);
}

/* ---- DualPipe ---- */

static void fill_both_ways(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int num_ranks = shape->num_ranks, half = num_ranks / 2;
    int first_chunk = rank < half ? 0 : 1;
    int from_end = first_chunk == 0 ? rank : num_ranks - 1 - rank;
    rank_place place = {.from_end = from_end,
                        .to_fold = half - 1 - from_end,
                        .num_overlapped =
                            shape->num_microbatches / 2 - num_ranks + from_end + 1};
    fill_at(shape, rank, first_chunk, &place, list);
}

static const char *both_ways_objection(const ms_schedule_shape *shape)
{
    if (shape->num_ranks % 2 != 0)
        return "DualPipe needs an even number of pipeline ranks: half of the micro-batches "
               "enter at each end";
    if (shape->num_microbatches % 2 != 0)
        return "DualPipe needs an even number of micro-batches: half of them enter at each "
               "end";
    if (shape->num_microbatches < 2 * shape->num_ranks)
        return "DualPipe needs at least twice as many micro-batches as pipeline ranks";
    return NULL;
}

const ms_schedule_family ms_family_dualpipe = {
    MS_NO_ALIASES,
    .traits = {.placement = MS_PLACE_BOTH_WAYS,
               .least_virtual = 1,
               .most_virtual = 1,
               .splits_backward = true,
               .overlaps = true,
               .repeats_after = 4},
    .objection = both_ways_objection,
    .fill_rank = fill_both_ways,
};

/* ---- DualPipeV ---- */

static void fill_v(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int num_ranks = shape->num_ranks;
    rank_place place = {.from_end = rank,
                        .to_fold = num_ranks - 1 - rank,
                        .num_overlapped =
                            shape->num_microbatches - 2 * num_ranks + rank + 1};
    fill_at(shape, rank, 0, &place, list);
}

static const char *v_objection(const ms_schedule_shape *shape)
{
    if (shape->num_microbatches < 2 * shape->num_ranks)
        return "DualPipeV needs at least twice as many micro-batches as pipeline ranks";
    return NULL;
}

const ms_schedule_family ms_family_dualpipev = {
    MS_ALIASES("cut-in-half", "ScheduleDualPipeV"),
    .traits = {.placement = MS_PLACE_V,
               .least_virtual = 2,
               .most_virtual = 2,
               .splits_backward = true,
               .overlaps = true,
               .repeats_after = 4},
    .objection = v_objection,
    .fill_rank = fill_v,
};
