/* Adafactor on the rank's shard of a segment: Shazeer and Stern 2018 (arXiv 1804.04235),
 * algorithm 4, without first moment and with an absolute learning rate. The sums of
 * squares of a matrix's rows and columns are those of the whole matrix, whatever tp and
 * ZeRO split. */
#include "exec/params/unit_priv.h"

#include <math.h>

#define SQUARE_EPSILON 1e-30 /* algorithm 4: epsilon 1, added to squares of gradients */
#define CLIP_THRESHOLD 1.0   /* d: largest root mean square of an update */
#define DECAY_EXPONENT 0.8   /* beta2 of step t is 1 - t^-0.8 */

typedef struct pass {
    ms_chunk chunk;
    ms_arena *arena;
    ms_segment *segment;
    double beta2;
    double *sums; /* (num_sums): of rows and columns, of this step, then of all */
    /* (num_matrices): sum of an average of squares over a matrix; sum of the squares of
     * its unclipped update */
    double *total, *update;
} pass;

/* Called for element `element` of a matrix, which is element `at` of the chunk. */
typedef void element_action(pass *p, int matrix, long element, long at);

static void for_each_of(pass *p, int matrix, element_action *act)
{
    const ms_unit_matrix *m = &p->segment->matrices[matrix];
    ms_range all = {m->first, m->first + m->rows * m->columns};
    ms_range here = ms_range_overlap(
        all, (ms_range){p->chunk.first, p->chunk.first + p->chunk.of.count});
    for (long e = here.first; e < here.end; e++)
        act(p, matrix, e - m->first, e - p->chunk.first);
}

static ms_status for_each(pass *p, bool writes, element_action *act)
{
    ms_range range = ms_segment_updated(p->segment);
    for (long at = range.first; at < range.end; at += p->chunk.of.count) {
        MS_TRY(ms_chunk_read(&p->chunk, at, range.end));
        for (int i = 0; i < p->segment->num_matrices; i++)
            for_each_of(p, i, act);
        if (writes)
            MS_TRY(ms_chunk_write(&p->chunk));
    }
    return MS_OK;
}

/* ---- second moments ---- */

static void add_square(pass *p, int matrix, long element, long at)
{
    const ms_unit_matrix *m = &p->segment->matrices[matrix];
    const ms_elements *of = &p->chunk.of;
    double square = of->gradient[at] * of->gradient[at] + SQUARE_EPSILON;
    if (p->segment->is_vector) {
        of->moments[0][at] = p->beta2 * of->moments[0][at] + (1.0 - p->beta2) * square;
        return;
    }
    p->sums[m->sums + element / m->columns] += square;
    p->sums[m->sums + m->rows + element % m->columns] += square;
}

/* Adds up over tp what tp ranks have parts of: columns' sums where rows are split. */
static ms_status add_over_tp(pass *p)
{
    const ms_segment *s = p->segment;
    double *parts = MS_NEW_ARRAY(p->arena, s->num_sums, double);
    bool *is_part = MS_NEW_ARRAY(p->arena, s->num_sums, bool);
    long num = 0;
    for (int i = 0; i < s->num_matrices; i++) {
        const ms_unit_matrix *m = &s->matrices[i];
        long first = m->splits_rows ? m->sums + m->rows : m->sums;
        long length = m->splits_rows ? m->columns : m->splits_columns ? m->rows : 0;
        for (long j = first; j < first + length; j++, num++) {
            is_part[j] = true;
            parts[j] = p->sums[j] / m->num_copies;
        }
    }
    if (num == 0)
        return MS_OK;
    MS_TRY(ms_unit_collect(p->chunk.rank, MS_TRANSFER_ALL_REDUCE, MS_TRAFFIC_TP, parts,
                           parts, s->num_sums));
    for (long j = 0; j < s->num_sums; j++)
        p->sums[j] = is_part[j] ? parts[j] : p->sums[j];
    return MS_OK;
}

/* Averages the rank's share of the sums with its state, and collects those of all. */
static ms_status average_sums(pass *p)
{
    const ms_segment *s = p->segment;
    const ms_rank *rank = p->chunk.rank;
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_scalar scalar = s->sum;
    long own = s->num_sums / s->num_shards;
    double *now = p->sums, *old = MS_NEW_ARRAY(p->arena, own, double);
    if (s->num_shards > 1) {
        now = MS_NEW_ARRAY(p->arena, own, double);
        MS_TRY(ms_unit_collect(p->chunk.rank, MS_TRANSFER_REDUCE_SCATTER, s->shard_group,
                               p->sums, now, own));
    }
    MS_TRY(arrays->read(rank->cx, rank->device, scalar, old, s->sums, own));
    for (long i = 0; i < own; i++)
        now[i] = p->beta2 * old[i] + (1.0 - p->beta2) * now[i];
    MS_TRY(arrays->write(rank->cx, rank->device, scalar, s->sums, now, own));
    return s->num_shards > 1 ? ms_unit_collect(p->chunk.rank, MS_TRANSFER_ALL_GATHER,
                                               s->shard_group, now, p->sums, own)
                             : MS_OK;
}

static ms_status update_sums(pass *p)
{
    const ms_segment *s = p->segment;
    if (s->num_sums == 0)
        return MS_OK;
    MS_TRY(add_over_tp(p));
    MS_TRY(average_sums(p));
    for (int i = 0; i < s->num_matrices; i++) {
        /* the total of rows or of columns, which every tp rank has all of: stored sums are
         * rounded, so that the two totals are not quite equal */
        const ms_unit_matrix *m = &s->matrices[i];
        long first = m->can_split_rows ? m->sums + m->rows : m->sums;
        for (long j = 0; j < (m->can_split_rows ? m->columns : m->rows); j++)
            p->total[i] += p->sums[first + j];
    }
    return MS_OK;
}

/* ---- updates ---- */

static double unclipped(const pass *p, int matrix, long element, long at)
{
    const ms_unit_matrix *m = &p->segment->matrices[matrix];
    double square = p->segment->is_vector
                        ? p->chunk.of.moments[0][at]
                        : p->sums[m->sums + element / m->columns] *
                              p->sums[m->sums + m->rows + element % m->columns] /
                              p->total[matrix];
    return p->chunk.of.gradient[at] / sqrt(square);
}

static void add_update(pass *p, int matrix, long element, long at)
{
    double update = unclipped(p, matrix, element, at);
    p->update[matrix] += update * update;
}

/* Adds up the squares of updates over the ranks that share a matrix. */
static ms_status add_updates(pass *p)
{
    const ms_segment *s = p->segment;
    ms_rank *rank = p->chunk.rank;
    double *parts = MS_NEW_ARRAY(p->arena, s->num_matrices, double);
    int num = 0;
    if (s->num_shards > 1)
        MS_TRY(ms_unit_collect(rank, MS_TRANSFER_ALL_REDUCE, s->shard_group, p->update,
                               p->update, s->num_matrices));
    for (int i = 0; i < s->num_matrices; i++) {
        bool is_part = s->matrices[i].splits_rows || s->matrices[i].splits_columns;
        parts[i] = is_part ? p->update[i] / s->matrices[i].num_copies : 0.0;
        num += is_part;
    }
    if (num == 0)
        return MS_OK;
    MS_TRY(ms_unit_collect(rank, MS_TRANSFER_ALL_REDUCE, MS_TRAFFIC_TP, parts, parts,
                           s->num_matrices));
    for (int i = 0; i < s->num_matrices; i++)
        if (s->matrices[i].splits_rows || s->matrices[i].splits_columns)
            p->update[i] = parts[i];
    return MS_OK;
}

static void move_weight(pass *p, int matrix, long element, long at)
{
    const ms_adamw *how = p->chunk.how;
    double root = sqrt(p->update[matrix] / p->segment->matrices[matrix].whole_count);
    double clip = fmax(1.0, root / CLIP_THRESHOLD);
    double *weight = &p->chunk.of.weight[at];
    *weight = *weight * (1.0 - how->learning_rate * how->weight_decay) -
              how->learning_rate * unclipped(p, matrix, element, at) / clip;
}

static ms_status update(pass *p)
{
    MS_TRY(for_each(p, p->segment->is_vector, add_square));
    MS_TRY(update_sums(p));
    MS_TRY(for_each(p, false, add_update));
    MS_TRY(add_updates(p));
    return for_each(p, true, move_weight);
}

ms_status ms_segment_update_adafactor(ms_rank *rank, const ms_param_unit *unit,
                                      ms_segment *segment, const ms_adamw *how)
{
    ms_arena *arena = ms_arena_open();
    pass p = {.chunk = ms_chunk_make(arena, rank, unit, segment, how),
              .arena = arena,
              .segment = segment,
              .beta2 = 1.0 - pow((double)how->step, -DECAY_EXPONENT),
              .sums = MS_NEW_ARRAY(arena, segment->num_sums, double),
              .total = MS_NEW_ARRAY(arena, segment->num_matrices, double),
              .update = MS_NEW_ARRAY(arena, segment->num_matrices, double)};
    ms_status status = update(&p);
    ms_arena_close(arena);
    return status;
}
