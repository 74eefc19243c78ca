/* Muon on the rank's shard of a segment of matrices. */
#include "costmodel/plan/stack_choices.h"
#include "exec/params/unit_priv.h"

#include <math.h>
#include <string.h>

/* Factor on an orthogonal matrix that gives its elements the root mean square of AdamW's
 * updates: Liu et al. 2025 (arXiv 2502.16982), section 2.2. */
#define ADAMW_ROOT_MEAN_SQUARE 0.2

/* Updates the momentum of the rank's elements; `own` gets their directions. */
static ms_status step_momentum(ms_chunk *chunk, double *own)
{
    const ms_segment *s = chunk->segment;
    ms_range range = ms_segment_updated(s);
    for (long at = range.first; at < range.end; at += chunk->of.count) {
        MS_TRY(ms_chunk_read(chunk, at, range.end));
        ms_optimizer_step(MS_OPTIMIZER_MUON, chunk->how, &chunk->of);
        memcpy(own + (at - s->own.first), chunk->of.gradient,
               (size_t)chunk->of.count * sizeof *own);
        MS_TRY(ms_chunk_write(chunk));
    }
    return MS_OK;
}

/* Copies a share of a row-major matrix to or from rows x columns numbers, transposed if
 * these are more rows than columns. */
static void copy_share(double *whole, long whole_columns, double *share, long rows,
                       long columns, bool back)
{
    for (long i = 0; i < rows; i++) {
        for (long j = 0; j < columns; j++) {
            double *a = &whole[i * whole_columns + j];
            double *b = &share[rows > columns ? j * rows + i : i * columns + j];
            if (back)
                *a = *b;
            else
                *b = *a;
        }
    }
}

static void orthogonalize(const ms_rank *rank, const ms_unit_matrix *matrix,
                          double *values)
{
    long shares = matrix->num_shares;
    long rows = matrix->splits_columns ? matrix->rows : matrix->rows / shares,
         columns = matrix->splits_columns ? matrix->columns / shares : matrix->columns;
    long most = rows > columns ? rows : columns, least = rows + columns - most;
    ms_arena *arena = ms_arena_open();
    double *share = MS_NEW_ARRAY(arena, rows * columns, double);
    double *scratch = MS_NEW_ARRAY(arena, least * (2 * least + most), double);
    double factor = ADAMW_ROOT_MEAN_SQUARE * sqrt((double)most);
    for (long i = 0; i < shares; i++) {
        double *first = values + i * (matrix->splits_columns ? columns : rows * columns);
        copy_share(first, matrix->columns, share, rows, columns, false);
        rank->backend->arrays->orthogonalize(
            share, least, most,
            ms_states_of_optimizer[MS_OPTIMIZER_MUON].orthogonal_iterations, scratch);
        for (long j = 0; j < rows * columns; j++)
            share[j] *= factor;
        copy_share(first, matrix->columns, share, rows, columns, true);
    }
    ms_arena_close(arena);
}

/* Updates the rank's elements of a matrix by an orthogonal one. */
static ms_status update_matrix(ms_chunk *chunk, const ms_unit_matrix *matrix,
                               const double *orthogonal)
{
    const ms_adamw *how = chunk->how;
    ms_range range = ms_range_overlap(
        chunk->segment->own,
        (ms_range){matrix->first, matrix->first + matrix->rows * matrix->columns});
    double decay = 1.0 - how->learning_rate * how->weight_decay;
    for (long at = range.first; at < range.end; at += chunk->of.count) {
        MS_TRY(ms_chunk_read(chunk, at, range.end));
        for (long i = 0; i < chunk->of.count; i++)
            chunk->of.weight[i] = chunk->of.weight[i] * decay -
                                  how->learning_rate * orthogonal[at - matrix->first + i];
        MS_TRY(ms_chunk_write(chunk));
    }
    return MS_OK;
}

static ms_status update(ms_chunk *chunk, double *own, double *all)
{
    ms_rank *rank = chunk->rank;
    const ms_segment *s = chunk->segment;
    MS_TRY(step_momentum(chunk, own));
    chunk->num_moments = 0;
    if (s->num_shards > 1)
        MS_TRY(ms_unit_collect(rank, MS_TRANSFER_ALL_GATHER, s->shard_group, own, all,
                               ms_range_length(s->own)));
    for (int i = 0; i < s->num_matrices; i++) {
        const ms_unit_matrix *m = &s->matrices[i];
        ms_range overlap = ms_range_overlap(
            s->own, (ms_range){m->first, m->first + m->rows * m->columns});
        if (ms_range_length(overlap) == 0)
            continue;
        orthogonalize(rank, m, all + m->first);
        MS_TRY(update_matrix(chunk, m, all + m->first));
    }
    return MS_OK;
}

ms_status ms_segment_update_muon(ms_rank *rank, const ms_param_unit *unit,
                                 ms_segment *segment, const ms_adamw *how)
{
    ms_arena *arena = ms_arena_open();
    ms_chunk chunk = ms_chunk_make(arena, rank, unit, segment, how);
    double *all = MS_NEW_ARRAY(arena, segment->count, double), *own = all;
    if (segment->num_shards > 1)
        own = MS_NEW_ARRAY(arena, ms_range_length(segment->own), double);
    ms_status status = update(&chunk, own, all);
    ms_arena_close(arena);
    return status;
}
