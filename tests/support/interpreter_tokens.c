/* Operations on token ids in the reference interpreter: embedding, and cross entropy in
 * its parts. */
#include "tests/support/interpreter_priv.h"

#include <math.h>

/* Token (stream 0) or target (stream 1) of row `row` of a tensor [b s ..]; `box` is the
 * rank's part. */
static long token_of_row(const ms_interp *run, int stream, const ms_box *box, long row)
{
    long sequence = box->start[0] + row / box->len[1];
    long position = ms_interp_position(run, box->start[1] + row % box->len[1]);
    return ms_interp_token(run, stream, sequence, position);
}

/* Row of the whole embedding table for a row of a tensor [b s h]. */
static long table_row(const ms_interp *run, const ms_node *node, const ms_box *box,
                      long row)
{
    if (node->by_position)
        return ms_interp_position(run, box->start[1] + row % box->len[1]);
    return token_of_row(run, 0, box, row);
}

void ms_interp_embed(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *table = ms_interp_in(run, node, 0, rank);
    ms_cell *x = ms_interp_out(run, node, 0, rank);
    ms_box held = ms_interp_box(run, node->in[0], rank),
           box = ms_interp_box(run, node->out[0], rank);
    long width = ms_cell_last(x);
    if (!ms_interp_expect(run, node, table, held.len[0] * width))
        return;
    for (long row = 0; row < ms_cell_leading(x); row++) {
        long at = table_row(run, node, &box, row) - held.start[0];
        for (long i = 0; i < width && at >= 0 && at < held.len[0]; i++)
            x->values[row * width + i] = table->values[at * width + i];
    }
}

void ms_interp_embed_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *gx = ms_interp_in(run, node, 0, rank);
    ms_cell *gtable = ms_interp_out(run, node, 0, rank);
    ms_box held = ms_interp_box(run, node->out[0], rank),
           box = ms_interp_box(run, node->in[0], rank);
    long width = ms_cell_last(gx);
    if (!ms_interp_expect(run, node, gtable, held.len[0] * width))
        return;
    for (long row = 0; row < ms_cell_leading(gx); row++) {
        long at = table_row(run, node, &box, row) - held.start[0];
        for (long i = 0; i < width && at >= 0 && at < held.len[0]; i++)
            gtable->values[at * width + i] += gx->values[row * width + i];
    }
}

void ms_interp_loss_max(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *logits = ms_interp_in(run, node, 0, rank);
    ms_cell *max = ms_interp_out(run, node, 0, rank);
    long width = ms_cell_last(logits);
    if (!ms_interp_expect(run, node, max, ms_cell_leading(logits)))
        return;
    for (long row = 0; row < max->count; row++) {
        max->values[row] = -HUGE_VAL;
        for (long i = 0; i < width; i++)
            max->values[row] = fmax(max->values[row], logits->values[row * width + i]);
    }
}

void ms_interp_loss_sum(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *logits = ms_interp_in(run, node, 0, rank),
                  *max = ms_interp_in(run, node, 1, rank);
    ms_cell *sum = ms_interp_out(run, node, 0, rank),
            *target = ms_interp_out(run, node, 1, rank);
    long width = ms_cell_last(logits), num_rows = ms_cell_leading(logits);
    if (!ms_interp_expect(run, node, max, num_rows) ||
        !ms_interp_expect(run, node, sum, num_rows) ||
        !ms_interp_expect(run, node, target, num_rows))
        return;
    ms_box box = ms_interp_box(run, node->in[0], rank);
    for (long row = 0; row < num_rows; row++) {
        const double *from = logits->values + row * width;
        for (long i = 0; i < width; i++)
            sum->values[row] += exp(from[i] - max->values[row]);
        long at = token_of_row(run, 1, &box, row) - box.start[2];
        target->values[row] = at >= 0 && at < width ? from[at] : 0;
    }
}

void ms_interp_loss_token(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *max = ms_interp_in(run, node, 0, rank),
                  *sum = ms_interp_in(run, node, 1, rank);
    const ms_cell *target = ms_interp_in(run, node, 2, rank);
    ms_cell *loss = ms_interp_out(run, node, 0, rank);
    if (!ms_interp_expect(run, node, sum, max->count) ||
        !ms_interp_expect(run, node, target, max->count) ||
        !ms_interp_expect(run, node, loss, max->count))
        return;
    for (long i = 0; i < max->count; i++)
        loss->values[i] = max->values[i] + log(sum->values[i]) - target->values[i];
}

void ms_interp_loss_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *logits = ms_interp_in(run, node, 0, rank),
                  *max = ms_interp_in(run, node, 1, rank);
    const ms_cell *sum = ms_interp_in(run, node, 2, rank);
    ms_cell *glogits = ms_interp_out(run, node, 0, rank);
    long width = ms_cell_last(logits), num_rows = ms_cell_leading(logits);
    if (!ms_interp_expect(run, node, max, num_rows) ||
        !ms_interp_expect(run, node, sum, num_rows) ||
        !ms_interp_expect(run, node, glogits, logits->count))
        return;
    ms_box box = ms_interp_box(run, node->in[0], rank);
    double num_tokens = (double)(ms_interp_size(run, MS_DIM_BATCH) *
                                 ms_interp_size(run, MS_DIM_SEQUENCE));
    for (long row = 0; row < num_rows; row++) {
        long at = token_of_row(run, 1, &box, row) - box.start[2];
        for (long i = 0; i < width; i++) {
            double p = exp(logits->values[row * width + i] - max->values[row]) /
                       sum->values[row];
            glogits->values[row * width + i] = (p - (i == at ? 1 : 0)) / num_tokens;
        }
    }
}
