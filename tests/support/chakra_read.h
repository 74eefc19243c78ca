/* Reads Chakra execution traces and runs them: a second implementation of the format, for
 * tests of the first. Field numbers: mlcommons/chakra, schema/protobuf/et_def.proto. */
#ifndef MS_TESTS_SUPPORT_CHAKRA_READ_H
#define MS_TESTS_SUPPORT_CHAKRA_READ_H

#include "base/json.h"

#include <stdint.h>

enum {
    CHAKRA_COMP = 4,
    CHAKRA_SEND = 5,
    CHAKRA_RECV = 6,
    CHAKRA_COLL = 7
};

typedef struct ms_chakra_node {
    uint64_t id, type, start_us, duration_us;
    double taken_us; /* how long a run lets it take: duration_us unless changed */
    const char *name;
    int num_deps;
    uint64_t *deps;
    /* attributes; -1: absent */
    int64_t is_cpu_op, num_ops, tensor_size, comm_type, comm_size, comm_src, comm_dst,
        comm_tag, pg_name;
} ms_chakra_node;

typedef struct ms_chakra_trace {
    const char *version;
    int num_nodes;
    ms_chakra_node *nodes;
} ms_chakra_trace;

/* Reads the file of one rank. Returns its first error as a sentence; NULL: none. Rules:
 * messages of their stated lengths with known fields of the right wire type; ids that occur
 * once; each node after those that it waits for; the attributes of its type. */
const char *ms_chakra_read(ms_arena *arena, const unsigned char *bytes, size_t num_bytes,
                           ms_chakra_trace *out);

typedef struct ms_chakra_times {
    double end_us; /* the latest end */
    /* sum over collectives of the longest less the shortest time of its ranks */
    double unequal_us;
} ms_chakra_times;

/* Runs the traces of all ranks, each in the order of its file, which only receives let
 * pass: nodes begin when those that they wait for have ended, collectives when all ranks of
 * their group (`groups`: the JSON of groups) have come, receives end with their sends.
 * Returns the first error, NULL: none. Rules: no deadlock; members of a collective agree on
 * its type and size; each send has one receive of its size. */
const char *ms_chakra_run(ms_ctx *cx, const ms_chakra_trace *traces, long num_ranks,
                          const char *groups, ms_chakra_times *times);

#endif
