/* Costs of an optimizer's update beyond bytes per parameter, by the shapes of matrices:
 * Muon's products and the states of its other parameters, Adafactor's sums. */
#ifndef MS_COSTMODEL_COST_UPDATE_COST_H
#define MS_COSTMODEL_COST_UPDATE_COST_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

/* Costs of dense [0] and expert [1] parameters if one data-parallel rank owns them all. */
typedef struct ms_update_cost {
    double state_bytes[2];   /* optimizer states beyond moment_bytes per parameter */
    double update_s[2];      /* time of the update beyond optimizer_bytes per parameter */
    double longest_s;        /* part of update_s of one matrix, which one rank updates */
    double matrix_params[2]; /* parameters that are gathered to whole matrices */
} ms_update_cost;

/* A weight, as a rank holds it, as `count` matrices (experts are several); count 0: it is
 * no matrix to the optimizer. */
typedef struct ms_matrices {
    double count, rows, columns;
    size_t num_row_dims; /* dims, after that of experts, whose product are the rows */
} ms_matrices;
/* The matrices of weight `tensor`: [rows, columns] has a row index first or last (query
 * [h, n d], down [f, h]). `has_tables`: embeddings, positions and head are matrices. */
ms_matrices ms_matrices_of(const ms_program *program, int tensor, bool has_tables);

/* Whether a stack's optimizer has such costs. */
bool ms_stack_updates_matrices(const ms_stack *stack);

/* Adds the costs of weight `tensor` as a rank holds it, by its matrices. Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon) orthogonalizes the update
 * of each matrix of a layer, m rows and n >= m columns, by 5 iterations of A = X X^T, B =
 * b A + c A A, X = a X + B X in bf16: 5 (4 m^2 n + 2 m^3) FLOP; tp ranks do so with their
 * own part (Megatron-LM, --muon-tp-mode blockwise). Embedding, head, norms and biases are
 * AdamW's. Adafactor (Shazeer and Stern 2018, arXiv 1804.04235, algorithm 4) has sums of
 * rows and columns of each matrix, and a second moment of other parameters. */
void ms_update_cost_add(const ms_program *program, int tensor, const ms_pricer *pricer,
                        ms_update_cost *out);

/* Adds the costs of `count` equal blocks. */
void ms_update_cost_sum(ms_update_cost *to, const ms_update_cost *update, double count);
/* Takes out a dense table (embedding or head) of `num_params` parameters in rows of
 * `width`; none if num_params is 0. */
void ms_update_cost_drop(const ms_pricer *pricer, double num_params, double width,
                         ms_update_cost *out);

#endif
