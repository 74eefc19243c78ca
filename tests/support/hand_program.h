/* Layer programs of a few nodes made by hand, to test code that executes programs without
 * the program builder. */
#ifndef MS_TESTS_SUPPORT_HAND_PROGRAM_H
#define MS_TESTS_SUPPORT_HAND_PROGRAM_H

#include "tests/support/interpreter.h"

#define MS_MAX_HAND 24

typedef struct ms_hand {
    ms_arena *arena;
    ms_model model;
    ms_program program;
    ms_tensor tensors[MS_MAX_HAND];
    ms_node nodes[MS_MAX_HAND];
    ms_interp_options options;
} ms_hand;

/* Opens a program with batch 2, sequence 8, hidden 4 on one rank, which tests may change.
 * Its first tensor is the input. */
ms_hand *ms_hand_open(ms_arena *arena);
void ms_hand_set_size(ms_hand *h, char letter, long size);
void ms_hand_set_mesh(ms_hand *h, ms_mesh_kind mesh, long outer, long middle, long inner);
/* Placement for a character: R replicated, P partial sum, M partial maximum, otherwise
 * sharded along the dim of this letter. */
ms_placement ms_hand_placement(char c);
/* Adds a tensor of 2-byte elements; at[i]: placement on mesh axis i
 * (ms_hand_placement). */
int ms_hand_tensor(ms_hand *h, const char *dims, ms_role role, const char *at);
/* Adds an activation that the next node will produce. */
int ms_hand_result(ms_hand *h, const char *dims, const char *at);
/* Appends a forward node; its first result becomes the program's output. */
ms_node *ms_hand_node(ms_hand *h, ms_op op, int num_in, int num_out);
ms_node *ms_hand_unary(ms_hand *h, ms_op op, int x, int out);
ms_node *ms_hand_binary(ms_hand *h, ms_op op, int x, int y, int out);
/* Adds a node that changes the placement of x on `axis` to at[axis]; returns the
 * resulting tensor. */
int ms_hand_redistribute(ms_hand *h, int x, int axis, const char *at);

#endif
