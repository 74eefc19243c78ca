#include "tests/support/chakra_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- wire format ---- */

typedef struct reader {
    ms_arena *arena;
    const unsigned char *at, *end;
    const char *wrong;
} reader;

static void fail(reader *r, const char *wrong)
{
    if (r->wrong == NULL)
        r->wrong = wrong;
    r->at = r->end;
}

static uint64_t read_varint(reader *r)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end) {
            fail(r, "a varint ends early");
            return 0;
        }
        unsigned char byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    fail(r, "a varint is too long");
    return 0;
}

/* The next bytes, after their length. */
static reader read_bytes(reader *r)
{
    uint64_t length = read_varint(r);
    if (length > (uint64_t)(r->end - r->at)) {
        fail(r, "a length is beyond the end");
        length = 0;
    }
    reader inner = {r->arena, r->at, r->at + length, NULL};
    r->at += length;
    return inner;
}

static const char *read_text(reader *r)
{
    reader text = read_bytes(r);
    return ms_arena_strndup(r->arena, (const char *)text.at,
                            (size_t)(text.end - text.at));
}

/* Reads the key of a field; fails unless its wire type is that of `fields`, a text with a
 * 'v' (varint) or 'b' (bytes) at the index of each known field. Returns the field. */
static int read_key(reader *r, const char *fields)
{
    uint64_t key = read_varint(r), field = key >> 3;
    char wire = (char)((key & 7) == 0 ? 'v' : (key & 7) == 2 ? 'b' : '?');
    if (field >= strlen(fields) || fields[field] != wire) {
        fail(r, "an unknown field or wire type");
        return 0;
    }
    return (int)field;
}

/* ---- messages ---- */

/* Field of an attribute's value by name: int32 7, int64 9, uint64 13, bool 27, text 29. */
static const struct {
    const char *name;
    int field;
    size_t offset;
} attrs[] = {
    {"is_cpu_op", 27, offsetof(ms_chakra_node, is_cpu_op)},
    {"num_ops", 9, offsetof(ms_chakra_node, num_ops)},
    {"tensor_size", 13, offsetof(ms_chakra_node, tensor_size)},
    {"comm_type", 9, offsetof(ms_chakra_node, comm_type)},
    {"comm_size", 9, offsetof(ms_chakra_node, comm_size)},
    {"comm_src", 7, offsetof(ms_chakra_node, comm_src)},
    {"comm_dst", 7, offsetof(ms_chakra_node, comm_dst)},
    {"comm_tag", 7, offsetof(ms_chakra_node, comm_tag)},
    {"pg_name", 29, offsetof(ms_chakra_node, pg_name)},
    {"comm_priority", 7, 0},
};

static void read_attr(reader *outer, ms_chakra_node *node)
{
    static const char fields[] = ".b.....v.v...v.............v.b";
    reader r = read_bytes(outer);
    const char *name = "";
    int64_t value = 0;
    int type = 0;
    while (r.at < r.end) {
        int field = read_key(&r, fields);
        if (field == 1)
            name = read_text(&r);
        else if (field == 29)
            value = strtol(read_text(&r), NULL, 10);
        else if (field != 0)
            value = (int64_t)read_varint(&r);
        type = field > 1 ? field : type;
    }
    if (r.wrong != NULL)
        fail(outer, r.wrong);
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++) {
        if (strcmp(attrs[i].name, name) != 0)
            continue;
        if (attrs[i].field != type)
            fail(outer, "an attribute of another type");
        else if (attrs[i].offset != 0)
            *(int64_t *)((char *)node + attrs[i].offset) = value;
        return;
    }
    fail(outer, "an unknown attribute");
}

static void read_deps(reader *outer, ms_chakra_node *node)
{
    reader r = read_bytes(outer);
    node->deps = MS_NEW_ARRAY(r.arena, r.end - r.at, uint64_t);
    while (r.at < r.end)
        node->deps[node->num_deps++] = read_varint(&r);
    if (r.wrong != NULL)
        fail(outer, r.wrong);
}

static ms_chakra_node read_node(reader *outer)
{
    static const char fields[] = ".vbv.bvv..b";
    ms_chakra_node node = {.name = ""};
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++)
        if (attrs[i].offset != 0)
            *(int64_t *)((char *)&node + attrs[i].offset) = -1;
    reader r = read_bytes(outer);
    while (r.at < r.end) {
        int field = read_key(&r, fields);
        uint64_t *const numbers[] = {[1] = &node.id,
                                     [3] = &node.type,
                                     [6] = &node.start_us,
                                     [7] = &node.duration_us};
        if (field == 2)
            node.name = read_text(&r);
        else if (field == 5)
            read_deps(&r, &node);
        else if (field == 10)
            read_attr(&r, &node);
        else if (field != 0)
            *numbers[field] = read_varint(&r);
    }
    if (r.wrong != NULL)
        fail(outer, r.wrong);
    node.taken_us = (double)node.duration_us;
    return node;
}

static const char *read_metadata(reader *outer)
{
    reader r = read_bytes(outer);
    const char *version = "";
    while (r.at < r.end) {
        if (read_key(&r, ".bb") == 1)
            version = read_text(&r);
        else
            (void)read_bytes(&r);
    }
    if (r.wrong != NULL)
        fail(outer, r.wrong);
    return version;
}

/* ---- nodes ---- */

static const char *check_attrs(const ms_chakra_node *n)
{
    bool message = n->type == CHAKRA_SEND || n->type == CHAKRA_RECV;
    if (n->type < CHAKRA_COMP || n->type > CHAKRA_COLL || n->name[0] == '\0')
        return "a node without name or of another type";
    if (n->is_cpu_op != 0)
        return "a node that is no operation of the GPU";
    if (n->type == CHAKRA_COMP)
        return n->num_ops > 0 && n->tensor_size > 0 && n->comm_size == -1
                   ? NULL
                   : "a kernel without num_ops or tensor_size";
    if (n->comm_size < 0 || n->num_ops != -1)
        return "a transfer without size";
    bool has_ends = n->comm_src >= 0 && n->comm_dst >= 0 && n->comm_tag >= 0 &&
                    n->comm_src != n->comm_dst;
    if (message)
        return has_ends ? NULL : "a message without two ends";
    return n->comm_type >= 0 && n->pg_name > 0 ? NULL
                                               : "a collective without type or group";
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Gives nodes numbers from 0 by the order of the file, and replaces the ids of those that
 * they wait for. */
static const char *number_nodes(ms_arena *arena, ms_chakra_trace *t)
{
    typedef struct entry {
        uint64_t id;
        int index;
    } entry;
    entry *entries = MS_NEW_ARRAY(arena, t->num_nodes, entry);
    for (int i = 0; i < t->num_nodes; i++)
        entries[i] = (entry){t->nodes[i].id, i};
    qsort(entries, (size_t)t->num_nodes, sizeof entries[0], by_id);
    for (int i = 1; i < t->num_nodes; i++)
        if (entries[i].id == entries[i - 1].id)
            return "an id occurs twice";
    for (int i = 0; i < t->num_nodes; i++) {
        for (int d = 0; d < t->nodes[i].num_deps; d++) {
            uint64_t *dep = &t->nodes[i].deps[d];
            const entry *found =
                bsearch(dep, entries, (size_t)t->num_nodes, sizeof entries[0], by_id);
            if (found == NULL || found->index >= i)
                return "a node waits for none before it";
            *dep = (uint64_t)found->index;
        }
    }
    return NULL;
}

const char *ms_chakra_read(ms_arena *arena, const unsigned char *bytes, size_t num_bytes,
                           ms_chakra_trace *out)
{
    reader r = {arena, bytes, bytes + num_bytes, NULL};
    *out = (ms_chakra_trace){.version = read_metadata(&r)};
    int capacity = 0;
    while (r.at < r.end) {
        MS_MAKE_ROOM(arena, out->nodes, out->num_nodes, capacity, 1024);
        out->nodes[out->num_nodes] = read_node(&r);
        const char *wrong = check_attrs(&out->nodes[out->num_nodes++]);
        if (wrong != NULL)
            fail(&r, wrong);
    }
    return r.wrong != NULL ? r.wrong : number_nodes(arena, out);
}

/* ---- runs ---- */

typedef struct instance { /* one collective of a group */
    long num_come;
    int64_t type, size;
    double start_us;
    double least_us, most_us; /* how long its ranks take */
} instance;

typedef struct group {
    long num_ranks;
    bool *has; /* (num_ranks of the world) */
    int num, capacity;
    instance *instances;
} group;

typedef struct sent {
    const ms_chakra_node *node;
    double end_us;
    bool received;
} sent;

typedef struct rank {
    const ms_chakra_trace *trace;
    int next;       /* the node that runs next */
    bool has_come;  /* the rank waits in the collective that is that node */
    double *end_us; /* (nodes); below 0: a receive whose message has not come */
    int num_open, open_capacity;
    int *open; /* receives whose messages have not come */
    int num_sent, sent_capacity;
    sent *sent;
    int *num_of_group; /* (groups): collectives of each group that ended */
} rank;

typedef struct runner {
    ms_ctx *cx;
    long num_ranks;
    rank *ranks;
    int num_groups; /* greatest number of a group */
    group *groups;
    const char *wrong;
} runner;

static bool stop(runner *r, const char *wrong)
{
    r->wrong = wrong;
    return false;
}

/* Lets rank `own` come to a collective; true when all ranks of its group have. */
static bool meet(runner *r, long own, const ms_chakra_node *n, double *start_us)
{
    rank *me = &r->ranks[own];
    group *g = &r->groups[n->pg_name <= r->num_groups ? n->pg_name : 0];
    if (g->num_ranks == 0 || !g->has[own])
        return stop(r, "a collective of a group without the rank");
    int index = me->num_of_group[n->pg_name];
    while (g->num <= index) {
        MS_MAKE_ROOM(r->cx->arena, g->instances, g->num, g->capacity, 64);
        g->instances[g->num++] = (instance){.type = n->comm_type,
                                            .size = n->comm_size,
                                            .least_us = n->taken_us,
                                            .most_us = n->taken_us};
    }
    instance *i = &g->instances[index];
    if (i->type != n->comm_type || i->size != n->comm_size)
        return stop(r, "members of a collective disagree on its type or size");
    if (!me->has_come) {
        i->num_come++;
        i->least_us = fmin(i->least_us, n->taken_us);
        i->most_us = fmax(i->most_us, n->taken_us);
        i->start_us = *start_us > i->start_us ? *start_us : i->start_us;
        me->has_come = true;
    }
    if (i->num_come < g->num_ranks)
        return false;
    *start_us = i->start_us;
    me->num_of_group[n->pg_name]++;
    me->has_come = false;
    return true;
}

static bool receive(runner *r, long own, const ms_chakra_node *n, double *end_us)
{
    if (n->comm_dst != own || n->comm_src >= r->num_ranks)
        return stop(r, "a receive of another rank");
    rank *sender = &r->ranks[n->comm_src];
    for (int i = sender->num_sent - 1; i >= 0; i--) {
        sent *s = &sender->sent[i];
        if (s->node->comm_dst != own || s->node->comm_tag != n->comm_tag)
            continue;
        if (s->received || s->node->comm_size != n->comm_size)
            return stop(r, "a message is received twice, or in another size");
        s->received = true;
        *end_us = *end_us > s->end_us ? *end_us : s->end_us;
        return true;
    }
    return false;
}

static void send_message(runner *r, long own, const ms_chakra_node *n, double end_us)
{
    rank *me = &r->ranks[own];
    if (n->comm_src != own)
        r->wrong = "a send of another rank";
    MS_MAKE_ROOM(r->cx->arena, me->sent, me->num_sent, me->sent_capacity, 64);
    me->sent[me->num_sent++] = (sent){n, end_us, false};
}

/* Ends the receives of a rank whose messages have come. */
static void receive_all(runner *r, long own)
{
    rank *me = &r->ranks[own];
    int kept = 0;
    for (int i = 0; i < me->num_open; i++) {
        int node = me->open[i];
        double end_us = -1.0 - me->end_us[node]; /* when the receive began */
        if (receive(r, own, &me->trace->nodes[node], &end_us))
            me->end_us[node] = end_us;
        else
            me->open[kept++] = node;
    }
    me->num_open = kept;
}

/* When all nodes that a node waits for have ended, us; below 0: they have not. */
static double ready_us(const rank *me, const ms_chakra_node *n)
{
    double start_us = 0.0;
    for (int d = 0; d < n->num_deps; d++) {
        double end_us = me->end_us[n->deps[d]];
        if (end_us < 0.0)
            return -1.0;
        start_us = end_us > start_us ? end_us : start_us;
    }
    return start_us;
}

/* Runs the next node of a rank; false if it must wait for other ranks. */
static bool run_node(runner *r, long own)
{
    rank *me = &r->ranks[own];
    const ms_chakra_node *n = &me->trace->nodes[me->next];
    double start_us = ready_us(me, n);
    if (start_us < 0.0) {
        receive_all(r, own);
        start_us = ready_us(me, n);
    }
    if (start_us < 0.0 || (n->type == CHAKRA_COLL && !meet(r, own, n, &start_us)))
        return false;
    if (n->type == CHAKRA_RECV) {
        MS_MAKE_ROOM(r->cx->arena, me->open, me->num_open, me->open_capacity, 16);
        me->open[me->num_open++] = me->next;
        me->end_us[me->next++] = -1.0 - start_us;
        return true;
    }
    me->end_us[me->next++] = start_us + n->taken_us;
    if (n->type == CHAKRA_SEND)
        send_message(r, own, n, start_us + n->taken_us);
    return true;
}

static void run(runner *r)
{
    for (bool progress = true; progress && r->wrong == NULL;) {
        progress = false;
        for (long i = 0; i < r->num_ranks; i++)
            while (r->ranks[i].next < r->ranks[i].trace->num_nodes && r->wrong == NULL &&
                   run_node(r, i))
                progress = true;
    }
    for (long i = 0; i < r->num_ranks; i++)
        receive_all(r, i);
}

static double sum_differences(const runner *r)
{
    double sum_us = 0.0;
    for (int g = 0; g <= r->num_groups; g++)
        for (int i = 0; i < r->groups[g].num; i++)
            sum_us +=
                r->groups[g].instances[i].most_us - r->groups[g].instances[i].least_us;
    return sum_us;
}

static const char *check_end(const runner *r, ms_chakra_times *times)
{
    *times = (ms_chakra_times){.unequal_us = sum_differences(r)};
    for (long i = 0; i < r->num_ranks; i++) {
        const rank *me = &r->ranks[i];
        if (me->next < me->trace->num_nodes || me->num_open > 0)
            return "a deadlock";
        for (int s = 0; s < me->num_sent; s++)
            if (!me->sent[s].received)
                return "a message is not received";
        for (int n = 0; n < me->next; n++)
            times->end_us = me->end_us[n] > times->end_us ? me->end_us[n] : times->end_us;
    }
    return NULL;
}

static void read_group(runner *r, const char *key, ms_jval value)
{
    long id = strtol(key, NULL, 10);
    group *g = &r->groups[id];
    g->num_ranks = ms_json_length(value);
    g->has = MS_NEW_ARRAY(r->cx->arena, r->num_ranks, bool);
    for (int i = 0; i < g->num_ranks; i++) {
        long member;
        if (ms_json_integer(r->cx, ms_json_element(r->cx, value, i), 0, r->num_ranks - 1,
                            &member) != MS_OK)
            r->wrong = "a group of unknown ranks";
        else
            g->has[member] = true;
    }
}

static void read_groups(runner *r, const char *text)
{
    ms_jdoc *doc;
    ms_jval root;
    if (ms_json_parse(r->cx, "groups", text, strlen(text), &doc, &root) != MS_OK) {
        r->wrong = "groups are no JSON";
        return;
    }
    const char *key;
    for (int i = 0; i < ms_json_length(root); i++) {
        (void)ms_json_entry(r->cx, root, i, &key);
        int id = (int)strtol(key, NULL, 10);
        r->num_groups = id > r->num_groups ? id : r->num_groups;
    }
    r->groups = MS_NEW_ARRAY(r->cx->arena, r->num_groups + 1, group);
    for (int i = 0; i < ms_json_length(root); i++) {
        ms_jval value = ms_json_entry(r->cx, root, i, &key);
        read_group(r, key, value);
    }
    ms_json_close(doc);
}

const char *ms_chakra_run(ms_ctx *cx, const ms_chakra_trace *traces, long num_ranks,
                          const char *groups, ms_chakra_times *times)
{
    runner r = {.cx = cx,
                .num_ranks = num_ranks,
                .ranks = MS_NEW_ARRAY(cx->arena, num_ranks, rank)};
    read_groups(&r, groups);
    for (long i = 0; i < num_ranks; i++) {
        r.ranks[i] =
            (rank){.trace = &traces[i],
                   .end_us = MS_NEW_ARRAY(cx->arena, traces[i].num_nodes, double),
                   .num_of_group = MS_NEW_ARRAY(cx->arena, r.num_groups + 1, int)};
    }
    run(&r);
    return r.wrong != NULL ? r.wrong : check_end(&r, times);
}
