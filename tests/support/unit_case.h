/* A plan of a small model with the parameter units (exec/params/unit.h) of all its ranks,
 * in fp64, for tests of parameters. */
#ifndef MS_TESTS_SUPPORT_UNIT_CASE_H
#define MS_TESTS_SUPPORT_UNIT_CASE_H

#include "tests/support/small_models.h"
#include "tests/support/whole_tensors.h"

#include <pthread.h>

typedef struct ms_unit_layout {
    long pp, dp_replicate, dp_shard, cp, tp, ep, etp;
    /* every rank has all stages, and the second pipeline rank's stages are replicas */
    bool twins;
    bool uneven; /* shards have unequal lengths and are padded */
    ms_optimizer optimizer;
} ms_unit_layout;

typedef struct ms_unit_sharding {
    const char *name;
    long zero;
    bool reshard;
} ms_unit_sharding;
#define MS_NUM_UNIT_SHARDINGS 5
/* indexed by ms_sharding */
extern const ms_unit_sharding ms_unit_shardings[MS_NUM_UNIT_SHARDINGS];

/* A test case shared by all rank threads; the lock guards sum_of_squares and the visits
 * counted in `whole`. */
typedef struct ms_unit_case {
    const ms_unit_layout *layout;
    ms_plan plan;
    ms_planned planned;
    ms_workload *workload;
    ms_world world;
    ms_whole *whole;
    ms_rank_load
        loads[2]; /* load of each pipeline rank, with embedding and head as units */
    pthread_mutex_t lock;
    double sum_of_squares;
} ms_unit_case;

/* Makes a small model; `tied`: head and embedding share one matrix. */
ms_model ms_unit_case_model(ms_arena *arena, ms_make_model *make, bool tied, long vocab);
/* Opens a case; an illegal plan fails the test. Lives in cx->arena, except the workload,
 * which must be closed. */
ms_unit_case *ms_unit_case_open(ms_ctx *cx, const ms_model *model,
                                const ms_unit_layout *layout, ms_sharding sharding);
/* Runs `main` on the loop backend; its `state` is the case `s`. */
ms_status ms_unit_case_run(ms_ctx *cx, ms_unit_case *s, ms_rank_main *main);

/* ---- units of a rank ---- */

#define MS_MAX_HELD 8

typedef struct ms_held {
    ms_rank rank;
    ms_unit_case *of;
    int num;
    ms_param_unit *units[MS_MAX_HELD];
    const ms_block_ops *parts[MS_MAX_HELD];
    long layers[MS_MAX_HELD];
    ms_local *cells[MS_MAX_HELD]; /* program tensors of weights and gradients */
    ms_unit_buffers *buffers;
} ms_held;

/* Makes the units of a rank; must be closed, whatever the status. MS_ECHECK: their bytes
 * are not those of ms_rank_memory. */
ms_status ms_held_open(ms_held *h, ms_unit_case *of, ms_ctx *cx, ms_device_rank *device,
                       long rank, const ms_backend *backend);
/* Frees the units of a rank. MS_ECHECK: the ledger still counts bytes as allocated. */
ms_status ms_held_close(ms_held *h);
ms_status ms_held_wait(ms_held *h, ms_event event);
/* Checks that the program tensors of unit `at` hold whole weights with their initial
 * values. */
ms_status ms_held_check_weights(ms_held *h, int at);

#endif
