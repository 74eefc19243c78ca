/* The schedule ZB-V: stages r and 2p-1-r on rank r. Source: Qi et al. 2023, "Zero Bubble
 * Pipeline Parallelism" (arXiv 2401.10241), section 6; phases in the order of PyTorch's
 * schedules.py, ScheduleZBVZeroBubble. */
#include "costmodel/schedule/schedule_priv.h"

typedef struct rank_filler {
    ms_action_list *list;
    int stage[2]; /* a rank's stages: first and second chunk in forward order */
    int num_microbatches;
    int num_done[2][MS_NUM_ACTIONS]; /* [chunk][kind] actions added or skipped */
} rank_filler;

/* Adds the next micro-batch of a chunk; if there is none, only counts. */
static void add_next(rank_filler *filler, ms_action_kind kind, int chunk)
{
    int microbatch = filler->num_done[chunk][kind]++;
    if (microbatch < filler->num_microbatches)
        ms_action_add(filler->list, kind, filler->stage[chunk], microbatch);
}

static void add_backward(rank_filler *filler, int chunk)
{
    add_next(filler, MS_BACKWARD_INPUT, chunk);
    add_next(filler, MS_BACKWARD_WEIGHT, chunk);
}

static void fill_warmup(rank_filler *filler, int num_ranks, int rank)
{
    for (int k = 0; k < 2 * (num_ranks - rank) - 1; k++)
        add_next(filler, MS_FORWARD, 0);
    for (int k = 0; k < rank; k++) {
        add_next(filler, MS_FORWARD, 1);
        add_next(filler, MS_FORWARD, 0);
    }
    for (int k = rank; k < num_ranks; k++) {
        add_next(filler, MS_FORWARD, 1);
        add_backward(filler, 1);
    }
}

static void fill_steady(rank_filler *filler, int num_padded)
{
    while (filler->num_done[1][MS_FORWARD] < num_padded) {
        if (filler->num_done[0][MS_FORWARD] < num_padded)
            add_next(filler, MS_FORWARD, 0);
        add_backward(filler, 0);
        add_next(filler, MS_FORWARD, 1);
        add_backward(filler, 1);
    }
}

static void fill_cooldown(rank_filler *filler, int num_ranks, int rank)
{
    for (int k = 0; k < rank; k++) {
        add_next(filler, MS_BACKWARD_INPUT, 0);
        add_next(filler, MS_BACKWARD_INPUT, 1);
    }
    for (int k = rank; k < num_ranks; k++)
        add_backward(filler, 0);
    for (int chunk = 1; chunk >= 0; chunk--) {
        int *num_done = filler->num_done[chunk];
        while (num_done[MS_BACKWARD_WEIGHT] < num_done[MS_BACKWARD_INPUT])
            add_next(filler, MS_BACKWARD_WEIGHT, chunk);
    }
}

/* Fills a rank's list. With fewer than 2p - 1 micro-batches on p ranks the phases keep
 * their lengths, and missing micro-batches are skipped. */
static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int num_ranks = shape->num_ranks, least = 2 * num_ranks - 1;
    int num_padded = shape->num_microbatches > least ? shape->num_microbatches : least;
    rank_filler filler = {
        .list = list,
        .stage = {ms_schedule_stage(shape, rank, 0), ms_schedule_stage(shape, rank, 1)},
        .num_microbatches = shape->num_microbatches};
    fill_warmup(&filler, num_ranks, rank);
    fill_steady(&filler, num_padded);
    fill_cooldown(&filler, num_ranks, rank);
}

const ms_schedule_family ms_family_zb_v = {
    MS_ALIASES("zbv-zero-bubble", "ScheduleZBVZeroBubble"),
    .traits = {.placement = MS_PLACE_V,
               .least_virtual = 2,
               .most_virtual = 2,
               .splits_backward = true,
               .repeats_after = 4},
    .fill_rank = fill_rank,
};
