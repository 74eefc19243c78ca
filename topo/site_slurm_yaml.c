/* Reads Slurm's topology.yaml. */
#include "topo/site_slurm_priv.h"

#include <string.h>
#include <yaml.h>

/* libyaml keeps a hundred bytes and more for each value; this is room for 100,000 switches,
 * far more than a cluster has. */
#define MAX_LENGTH ((size_t)8 << 20)

typedef struct yaml {
    ms_slurm_reader *r;
    yaml_document_t *document;
} yaml;

/* A kind of topology: its keys, and those of a part; NULL: there is none. */
typedef struct kind {
    const char *key, *list, *unread, *name, *children;
} kind;

static const kind kinds[] = {
    {"tree", "switches", NULL, "switch", "children"},
    {"block", "blocks", "block_sizes", "block", NULL},
};

/* One item of the outermost list. */
typedef struct topology {
    const char *name;
    const kind *kind;        /* NULL: none that is read */
    const yaml_node_t *node; /* the value of the kind, or the item */
    bool is_default;
} topology;

static ms_loc loc_of(const yaml *y, yaml_mark_t mark)
{
    return ms_site_loc(y->r->out, (int)mark.line + 1, (int)mark.column + 1);
}

static ms_status fail(const yaml *y, const yaml_node_t *node, const char *message)
{
    return ms_fail(y->r->out->cx, MS_EINPUT, loc_of(y, node->start_mark), "%s", message);
}

static yaml_node_t *node_at(const yaml *y, int index)
{
    return yaml_document_get_node(y->document, index);
}

/* The text of a scalar in the arena; NULL: it is a list or mapping, or has a zero byte. */
static const char *text_of(const yaml *y, const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length
               ? ms_arena_strdup(y->r->out->cx->arena, text)
               : NULL;
}

/* A value of a mapping; NULL: it lacks the key. */
static const yaml_node_t *member(const yaml *y, const yaml_node_t *mapping,
                                 const char *key)
{
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_at(y, pair->key);
        if (name->type == YAML_SCALAR_NODE &&
            strcmp((const char *)name->data.scalar.value, key) == 0)
            return node_at(y, pair->value);
    }
    return NULL;
}

/* MS_EINPUT: a node is no mapping, has a key that is not listed, or one twice. */
static ms_status check_keys(const yaml *y, const yaml_node_t *node,
                            const char *const *keys)
{
    unsigned seen = 0;
    if (node->type != YAML_MAPPING_NODE)
        return fail(y, node, "a mapping is expected");
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_at(y, pair->key);
        const char *text = text_of(y, name);
        int i = 0;
        while (text != NULL && keys[i] != NULL && strcmp(text, keys[i]) != 0)
            i++;
        if (text == NULL || keys[i] == NULL)
            return fail(y, name, "unknown key of a topology");
        if ((seen >> i & 1U) != 0)
            return fail(y, name, "this key stands twice");
        seen |= 1U << i;
    }
    return MS_OK;
}

/* Sets a list of hosts or switches, which is one text: "gpu[001-016],login1". */
static ms_status set_list(const yaml *y, const yaml_node_t *node, ms_slurm_part *p,
                          const char **from, const char **end)
{
    const char *text = text_of(y, node);
    if (text == NULL || text[0] == '\0')
        return fail(y, node, "a list of names is expected, as \"node[01-16]\"");
    bool is_quoted = node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    p->line = (int)node->start_mark.line + 1;
    p->column = (int)node->start_mark.column + 1 + is_quoted;
    p->start = *from = text;
    *end = text + strlen(text);
    return MS_OK;
}

static ms_status add_part(const yaml *y, const kind *k, const yaml_node_t *node)
{
    const char *const keys[] = {k->name, "nodes", k->children, NULL};
    ms_slurm_part p = {0};
    MS_TRY(check_keys(y, node, keys));
    const yaml_node_t *name = member(y, node, k->name), *nodes = member(y, node, "nodes");
    const yaml_node_t *children =
        k->children == NULL ? NULL : member(y, node, k->children);
    const char *text = name == NULL ? NULL : text_of(y, name);
    if (text == NULL || text[0] == '\0')
        return fail(y, name == NULL ? node : name, "a switch or block needs a name");
    if ((nodes == NULL) == (children == NULL))
        return fail(y, node,
                    k->children == NULL ? "a block needs nodes"
                                        : "a switch needs either nodes or children");
    if (nodes != NULL)
        MS_TRY(set_list(y, nodes, &p, &p.nodes, &p.nodes_end));
    else
        MS_TRY(set_list(y, children, &p, &p.children, &p.children_end));
    return ms_slurm_add_part(y->r, p, text, strlen(text), loc_of(y, name->start_mark));
}

/* ---- topologies ---- */

static ms_status read_topology(const yaml *y, const yaml_node_t *item, topology *out)
{
    static const char *const keys[] = {
        "topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d", NULL};
    *out = (topology){.node = item};
    MS_TRY(check_keys(y, item, keys));
    const yaml_node_t *name = member(y, item, "topology");
    const yaml_node_t *mark = member(y, item, "cluster_default");
    out->name = name == NULL ? NULL : text_of(y, name);
    if (out->name == NULL)
        return fail(y, name == NULL ? item : name,
                    "a topology needs a name: \"topology: NAME\"");
    if (mark != NULL) {
        const char *word = text_of(y, mark);
        out->is_default = word != NULL && strcmp(word, "true") == 0;
        if (!out->is_default && (word == NULL || strcmp(word, "false") != 0))
            return fail(y, mark, "cluster_default is true or false");
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const yaml_node_t *value = member(y, item, kinds[i].key);
        if (value != NULL && out->kind != NULL)
            return fail(y, value, "a topology is a tree or blocks, not both");
        if (value != NULL) {
            out->kind = &kinds[i];
            out->node = value;
        }
    }
    return MS_OK;
}

/* The default topology, or the only one. */
static ms_status choose(const yaml *y, const yaml_node_t *root, topology *out)
{
    ms_site_reader *site = y->r->out;
    if (root == NULL || root->type != YAML_SEQUENCE_NODE ||
        root->data.sequence.items.start == root->data.sequence.items.top) {
        yaml_mark_t begin = {0};
        return ms_fail(site->cx, MS_EINPUT,
                       loc_of(y, root == NULL ? begin : root->start_mark),
                       "a list of topologies is expected: \"- topology: NAME\"");
    }
    const yaml_node_item_t *first = root->data.sequence.items.start;
    const yaml_node_item_t *end = root->data.sequence.items.top;
    *out = (topology){0};
    for (const yaml_node_item_t *item = first; item < end; item++) {
        topology t;
        MS_TRY(read_topology(y, node_at(y, *item), &t));
        if (t.is_default && out->is_default)
            return fail(y, node_at(y, *item), "two topologies are the cluster's default");
        if (t.is_default || end - first == 1)
            *out = t;
        else
            ms_texts_print(site->cx->arena, &site->out->ignored,
                           "topology %s, which is not the cluster's default", t.name);
    }
    if (out->node != NULL)
        return MS_OK;
    fail(y, root, "several topologies, and none is the cluster's default");
    return ms_hint(site->cx, "mark the one to import: \"cluster_default: true\"");
}

static ms_status read_parts(const yaml *y, const topology *t)
{
    const kind *k = t->kind;
    if (k == NULL) {
        fail(y, t->node, "this topology has neither tree nor block");
        return ms_hint(y->r->out->cx,
                       "flat ones have no switches; rings and tori are not read");
    }
    const char *const keys[] = {k->list, k->unread, NULL};
    MS_TRY(check_keys(y, t->node, keys));
    const yaml_node_t *list = member(y, t->node, k->list);
    if (list == NULL || list->type != YAML_SEQUENCE_NODE ||
        list->data.sequence.items.start == list->data.sequence.items.top)
        return fail(y, list == NULL ? t->node : list,
                    k == kinds ? "a list of switches is expected: \"switches:\""
                               : "a list of blocks is expected: \"blocks:\"");
    y->r->has_switches = k == kinds;
    y->r->has_blocks = k != kinds;
    const yaml_node_item_t *item = list->data.sequence.items.start;
    for (; item < list->data.sequence.items.top; item++)
        MS_TRY(add_part(y, k, node_at(y, *item)));
    ms_texts_print(y->r->out->cx->arena, &y->r->out->out->found, "topology %s", t->name);
    return MS_OK;
}

bool ms_slurm_is_yaml(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '#')
            while (i < length && text[i] != '\n')
                i++;
        else if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0')
            return strchr("-%[{", text[i]) != NULL && text[i] != '\0';
    }
    return false;
}

ms_status ms_slurm_read_yaml(ms_slurm_reader *r, const char *text, size_t length)
{
    ms_ctx *cx = r->out->cx;
    yaml_parser_t parser;
    yaml_document_t document;
    if (length > MAX_LENGTH)
        return ms_fail(cx, MS_EINPUT, ms_site_loc(r->out, 0, 0),
                       "a topology.yaml has at most 8 MiB");
    if (!yaml_parser_initialize(&parser))
        return ms_fail(cx, MS_EIO, ms_site_loc(r->out, 0, 0), "memory is exhausted");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    yaml y = {r, &document};
    topology chosen = {0};
    ms_status status = MS_OK;
    if (!yaml_parser_load(&parser, &document)) {
        status = ms_fail(cx, MS_EINPUT, loc_of(&y, parser.problem_mark), "%s",
                         parser.problem == NULL ? "this is no YAML" : parser.problem);
    } else {
        status = choose(&y, yaml_document_get_root_node(&document), &chosen);
        if (status == MS_OK && chosen.node != NULL)
            status = read_parts(&y, &chosen);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return status;
}
