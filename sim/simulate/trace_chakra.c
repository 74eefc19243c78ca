#include "sim/simulate/trace_chakra.h"

#include "base/number.h"
#include "base/protobuf.h"
#include "sim/simulate/simulated_timeline.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <stdlib.h>

/* ---- schema: numbers of fields and values in et_def.proto ---- */

#define VERSION "0.0.4"

enum {
    METADATA_VERSION = 1,
    METADATA_ATTR = 2
};

enum {
    NODE_ID = 1,
    NODE_NAME = 2,
    NODE_TYPE = 3,
    NODE_DATA_DEPS = 5,
    NODE_START_TIME_MICROS = 6,
    NODE_DURATION_MICROS = 7,
    NODE_ATTR = 10
};

enum {
    ATTR_NAME = 1,
    ATTR_INT32 = 7,
    ATTR_INT64 = 9,
    ATTR_UINT64 = 13,
    ATTR_BOOL = 27,
    ATTR_STRING = 29
};

typedef enum node_type {
    COMP_NODE = 4,
    COMM_SEND_NODE = 5,
    COMM_RECV_NODE = 6,
    COMM_COLL_NODE = 7
} node_type;

/* CollectiveCommType; a send is no collective. */
static const unsigned char comm_types[MS_NUM_COLLECTIVES] = {[MS_ALL_REDUCE] = 0,
                                                             [MS_ALL_GATHER] = 2,
                                                             [MS_ALL_TO_ALL] = 6,
                                                             [MS_REDUCE_SCATTER] = 7};

/* ---- nodes and what they wait for ---- */

struct ms_chakra {
    ms_arena *arena;
    const ms_simulation *simulation;
    const ms_rank_groups *groups;
    int actor;
    const int *along; /* (pipeline ranks): actors of the rank's pipeline */
    /* (1 + num_tasks): index in `waits` of the number of nodes that a task waits for, which
     * follow; 0: none */
    int *first_wait;
    int num_waits, waits_capacity;
    int *waits;
};

static const ms_task_work *work_of(const ms_chakra *c, int task)
{
    return &c->simulation->work[ms_graph_tag(c->simulation->graph, task)->work];
}

static bool is_own(const ms_chakra *c, int task)
{
    const ms_simulation *s = c->simulation;
    if (ms_graph_tag(s->graph, task)->actor != c->actor)
        return false;
    const ms_task_work *work = work_of(c, task);
    return s->end_s[task] > s->start_s[task] ||
           (work->kind != MS_WORK_KERNEL && work->bytes > 0.0);
}

/* Whether a task of another rank sends a message to this one. */
static bool is_received(const ms_chakra *c, int task)
{
    const ms_simulation *s = c->simulation;
    int sender = ms_graph_tag(s->graph, task)->actor;
    return work_of(c, task)->kind == MS_WORK_SEND && sender != c->actor &&
           work_of(c, task)->peer == s->actors[c->actor].pipeline_rank &&
           c->along[s->actors[sender].pipeline_rank] == sender;
}

/* Whether a task both sends and receives. */
static bool is_two_way(const ms_task_work *work)
{
    return work->kind == MS_WORK_RING || work->kind == MS_WORK_EXCHANGE;
}

static void add_wait(ms_chakra *c, int node)
{
    MS_MAKE_ROOM(c->arena, c->waits, c->num_waits, c->waits_capacity, 1024);
    c->waits[c->num_waits++] = node;
}

/* Adds the nodes for which `task` waits by waiting for the task `other`. An exchange waits
 * for the sends of earlier ones only: both its ranks may exchange in different orders. */
static void add_waits_for(ms_chakra *c, int task, int other)
{
    bool exchanges = work_of(c, task)->kind == MS_WORK_EXCHANGE;
    if (other == 0)
        return;
    if (is_own(c, other) || is_received(c, other)) {
        add_wait(c, other);
        const ms_task_work *work = work_of(c, other);
        if (is_two_way(work) && !(exchanges && work->kind == MS_WORK_EXCHANGE))
            add_wait(c, c->simulation->graph->num_tasks + other);
        return;
    }
    int first = c->first_wait[other];
    for (int i = 1; first != 0 && i <= c->waits[first]; i++)
        add_wait(c, c->waits[first + i]);
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Sorts the waits from `first` to the end of the list and drops those that occur twice. */
static void sort_waits(ms_chakra *c, int first)
{
    int *waits = c->waits + first, num = c->num_waits - first, kept = 0;
    qsort(waits, (size_t)num, sizeof waits[0], compare_ints);
    for (int i = 0; i < num; i++)
        if (i == 0 || waits[i] != waits[i - 1])
            waits[kept++] = waits[i];
    c->num_waits = first + kept;
}

/* Finds the nodes for which one of the rank's tasks, or one of no rank, waits. Tasks of
 * other ranks are followed no further: collectives and messages make ranks wait. */
static void find_waits(ms_chakra *c, int task)
{
    int actor = ms_graph_tag(c->simulation->graph, task)->actor;
    if (actor >= 0 && actor != c->actor)
        return;
    ms_task t = ms_graph_task(c->simulation->graph, task);
    int first = c->num_waits;
    add_wait(c, 0); /* number of waits */
    add_waits_for(c, task, t.before);
    add_waits_for(c, task, t.cross);
    for (int i = 0; i < t.num_more; i++)
        add_waits_for(c, task, ms_task_more(&t, i));
    sort_waits(c, first + 1);
    c->waits[first] = c->num_waits - first - 1;
    if (c->waits[first] > 0)
        c->first_wait[task] = first;
    else
        c->num_waits = first;
}

const ms_chakra *ms_chakra_open(ms_arena *arena, const ms_simulation *s,
                                const ms_rank_groups *groups, int actor)
{
    const long *pipeline =
        ms_rank_group_members(groups, MS_TRAFFIC_PP, s->actors[actor].rank);
    int num_pipeline_ranks = (int)groups->axis[MS_TRAFFIC_PP].size;
    int *along = MS_NEW_ARRAY(arena, num_pipeline_ranks, int);
    for (int r = 0; r < num_pipeline_ranks; r++)
        along[r] = s->fold.class_of[pipeline[r]];
    ms_chakra *c = MS_NEW(arena, ms_chakra);
    *c = (ms_chakra){.arena = arena,
                     .simulation = s,
                     .groups = groups,
                     .actor = actor,
                     .along = along,
                     .first_wait = MS_NEW_ARRAY(arena, 1 + s->graph->num_tasks, int)};
    add_wait(c, 0); /* index 0: no waits */
    for (int task = 1; task <= s->graph->num_tasks; task++)
        find_waits(c, task);
    return c;
}

/* ---- messages ---- */

typedef struct writer {
    FILE *out;
    ms_arena *arena;
    const ms_chakra *chakra;
    long rank;
    int num_rings; /* number of ring transfers so far, the same on all ranks of a ring */
} writer;

static void add_attr(ms_proto *message, int field, const char *name, int type,
                     uint64_t value)
{
    ms_proto attr = ms_proto_open(message->arena);
    ms_proto_text_field(&attr, ATTR_NAME, name);
    ms_proto_number_field(&attr, type, value);
    ms_proto_message_field(message, field, &attr);
}

static void add_text_attr(ms_proto *message, int field, const char *name,
                          const char *text)
{
    ms_proto attr = ms_proto_open(message->arena);
    ms_proto_text_field(&attr, ATTR_NAME, name);
    ms_proto_text_field(&attr, ATTR_STRING, text);
    ms_proto_message_field(message, field, &attr);
}

static uint64_t whole(double value)
{
    return (uint64_t)llround(value);
}

static uint64_t micros(double seconds)
{
    return whole(seconds * 1e6);
}

/* Begins the node `id` for a task. A receive has the times of its send; it waits for
 * nothing, unless it is half of an exchange. */
static ms_proto begin_node(writer *w, int id, node_type type, int task)
{
    const ms_chakra *c = w->chakra;
    const ms_simulation *s = c->simulation;
    ms_proto node = ms_proto_open(w->arena);
    ms_proto_number_field(&node, NODE_ID, (uint64_t)id);
    const char *name = ms_task_name(w->arena, s, task);
    const ms_task_tag *tag = ms_graph_tag(s->graph, task);
    if (type == COMP_NODE && tag->kind != MS_TASK_OPTIMIZER)
        name = ms_arena_printf(w->arena, "%s %s", name, ms_task_kind_names[tag->kind]);
    ms_proto_text_field(&node, NODE_NAME, name);
    ms_proto_number_field(&node, NODE_TYPE, type);
    int first = c->first_wait[task]; /* 0 for tasks of other ranks */
    ms_proto waits = ms_proto_open(w->arena);
    for (int i = 1; first != 0 && i <= c->waits[first]; i++)
        ms_proto_varint(&waits, (uint64_t)c->waits[first + i]);
    if (waits.num > 0)
        ms_proto_message_field(&node, NODE_DATA_DEPS, &waits);
    uint64_t start = micros(s->start_s[task]);
    ms_proto_number_field(&node, NODE_START_TIME_MICROS, start);
    ms_proto_number_field(&node, NODE_DURATION_MICROS, micros(s->end_s[task]) - start);
    add_attr(&node, NODE_ATTR, "is_cpu_op", ATTR_BOOL, false);
    return node;
}

/* A kernel that only moves data counts one operation: a roofline then gives its time by
 * bandwidth, and none of 0 / 0. */
static void write_kernel(writer *w, int task)
{
    const ms_task_work *work = work_of(w->chakra, task);
    ms_proto node = begin_node(w, task, COMP_NODE, task);
    add_attr(&node, NODE_ATTR, "num_ops", ATTR_INT64, whole(ms_max(work->flop, 1.0)));
    add_attr(&node, NODE_ATTR, "tensor_size", ATTR_UINT64,
             whole(ms_max(work->bytes, 1.0)));
    ms_proto_write(w->out, &node);
}

/* comm_size of a gather is a rank's own part: that is how ASTRA-sim reads it. */
static void write_collective(writer *w, int task)
{
    const ms_task_work *work = work_of(w->chakra, task);
    const ms_rank_groups *groups = w->chakra->groups;
    double share =
        work->collective == MS_ALL_GATHER ? (double)groups->axis[work->group].size : 1.0;
    ms_proto node = begin_node(w, task, COMM_COLL_NODE, task);
    add_attr(&node, NODE_ATTR, "comm_type", ATTR_INT64, comm_types[work->collective]);
    add_attr(&node, NODE_ATTR, "comm_size", ATTR_INT64, whole(work->bytes / share));
    add_attr(&node, NODE_ATTR, "comm_priority", ATTR_INT32, 0);
    add_text_attr(
        &node, NODE_ATTR, "pg_name",
        ms_arena_printf(w->arena, "%ld", ms_rank_group_id(groups, work->group, w->rank)));
    ms_proto_write(w->out, &node);
}

/* The ends of a message, and a number that they share. */
typedef struct message {
    long source, target;
    int tag;
} message;

static void write_message(writer *w, int id, node_type type, int task, message m)
{
    ms_proto node = begin_node(w, id, type, task);
    add_attr(&node, NODE_ATTR, "comm_size", ATTR_INT64,
             whole(work_of(w->chakra, task)->bytes));
    add_attr(&node, NODE_ATTR, "comm_src", ATTR_INT32, (uint64_t)m.source);
    add_attr(&node, NODE_ATTR, "comm_dst", ATTR_INT32, (uint64_t)m.target);
    add_attr(&node, NODE_ATTR, "comm_tag", ATTR_INT32, (uint64_t)m.tag);
    ms_proto_write(w->out, &node);
}

static void write_two_way(writer *w, int task)
{
    const ms_task_work *work = work_of(w->chakra, task);
    const ms_rank_groups *groups = w->chakra->groups;
    int num_tasks = w->chakra->simulation->graph->num_tasks, tag;
    long to, from;
    if (work->kind == MS_WORK_RING) {
        to = ms_rank_group_neighbour(groups, work->group, w->rank, 1);
        from = ms_rank_group_neighbour(groups, work->group, w->rank, -1);
        tag = ++w->num_rings;
    } else {
        to = from = ms_rank_group_members(groups, work->group, w->rank)[work->peer];
        /* messages of a pipeline have the numbers of tasks as tags */
        tag = num_tasks + 2 + work->stage;
    }
    write_message(w, task, COMM_SEND_NODE, task, (message){w->rank, to, tag});
    write_message(w, num_tasks + task, COMM_RECV_NODE, task,
                  (message){from, w->rank, tag});
}

static void write_received(writer *w, int task)
{
    const ms_simulation *s = w->chakra->simulation;
    int sender = ms_graph_tag(s->graph, task)->actor;
    const long *pipeline =
        ms_rank_group_members(w->chakra->groups, MS_TRAFFIC_PP, w->rank);
    write_message(w, task, COMM_RECV_NODE, task,
                  (message){pipeline[s->actors[sender].pipeline_rank], w->rank, task});
}

static void write_own(writer *w, int task)
{
    const ms_task_work *work = work_of(w->chakra, task);
    switch (work->kind) {
    case MS_WORK_KERNEL:
        write_kernel(w, task);
        break;
    case MS_WORK_COLLECTIVE:
        write_collective(w, task);
        break;
    case MS_WORK_RING:
    case MS_WORK_EXCHANGE:
        write_two_way(w, task);
        break;
    case MS_WORK_SEND: {
        const long *pipeline =
            ms_rank_group_members(w->chakra->groups, MS_TRAFFIC_PP, w->rank);
        write_message(w, task, COMM_SEND_NODE, task,
                      (message){w->rank, pipeline[work->peer], task});
        break;
    }
    }
}

static void write_metadata(writer *w)
{
    const ms_plan *plan = w->chakra->simulation->planned->plan;
    ms_proto metadata = ms_proto_open(w->arena);
    ms_proto_text_field(&metadata, METADATA_VERSION, VERSION);
    add_text_attr(&metadata, METADATA_ATTR, "simulated_by", "meshsim");
    add_text_attr(&metadata, METADATA_ATTR, "plan", ms_plan_text(w->arena, plan));
    ms_proto_write(w->out, &metadata);
}

void ms_chakra_write(FILE *out, const ms_chakra *c, long rank)
{
    writer w = {.out = out, .arena = ms_arena_open(), .chakra = c, .rank = rank};
    write_metadata(&w);
    for (int task = 1; task <= c->simulation->graph->num_tasks; task++) {
        ms_arena_mark mark = ms_arena_save(w.arena);
        if (is_own(c, task))
            write_own(&w, task);
        else if (is_received(c, task))
            write_received(&w, task);
        ms_arena_rewind(w.arena, mark);
    }
    ms_arena_close(w.arena);
}

/* ---- groups ---- */

static bool has_written(const bool *is_written, const long *ranks, long num)
{
    for (long i = 0; i < num; i++)
        if (is_written[ranks[i]])
            return true;
    return false;
}

void ms_chakra_write_groups(FILE *out, const ms_rank_groups *groups,
                            const bool *is_written)
{
    ms_jout json = ms_jout_open(out);
    ms_jout_begin_object(&json);
    json.line_depth = json.depth;
    for (int which = 0; which < MS_NUM_TRAFFIC_GROUPS; which++) {
        const ms_fold_axis *axis = &groups->axis[which];
        bool used = groups->first_id[which] != 0 && which != MS_TRAFFIC_PP;
        for (long g = 0; used && g < axis->num_groups; g++) {
            const long *ranks = axis->ranks + g * axis->size;
            if (!has_written(is_written, ranks, axis->size))
                continue;
            char name[24];
            snprintf(name, sizeof name, "%ld", groups->first_id[which] + g);
            ms_jout_key(&json, name);
            ms_jout_integers(&json, ranks, axis->size);
        }
    }
    ms_jout_end_object(&json);
    ms_jout_close(&json);
}
