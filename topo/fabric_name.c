/* Link names: words, then numbers: "xgmi 3-5", "ici +x 5", "leaf uplink out 3 rail 2".
 * Fewer words stand for all links that match. */
#include "topo/fabric_priv.h"

#include <stdlib.h>
#include <string.h>

static const char dim_letters[] = "xyz";

static const char *direction(const ms_link *link)
{
    return link->out ? "out" : "in";
}

/* The links that a name stands for; -1 in a member matches every value. */
typedef struct link_pattern {
    int kind, level, out, dim;
    /* `first`: number of the GPU, NIC, torus position or domain in a link's name;
     * `second`: that of the receiving GPU or of the rail */
    long first, second;
} link_pattern;

static link_pattern pattern_of_link(const ms_fabric *fabric, const ms_link *link)
{
    const ms_fabric_details *d = fabric->details;
    link_pattern p = {(int)link->kind, link->level, link->out, -1, link->index, -1};
    if (link->kind == MS_LINK_PEER) {
        p.first = link->index / d->place.domain_ranks[0];
        p.second = p.first / d->place.domain_ranks[0] * d->place.domain_ranks[0] +
                   link->index % d->place.domain_ranks[0];
        p.out = -1;
    }
    if (link->kind == MS_LINK_TORUS) {
        p.first = link->index / MS_MAX_TORUS_DIMS;
        p.dim = (int)(link->index % MS_MAX_TORUS_DIMS);
    }
    if (link->kind == MS_LINK_UPLINK) {
        p.first = link->index / d->place.rails[link->level];
        p.second = link->index % d->place.rails[link->level];
    }
    return p;
}

char *ms_fabric_link_name(ms_arena *arena, const ms_fabric *fabric, int link)
{
    const ms_link *l = &fabric->links[link];
    const char *level = fabric->cluster->levels[l->level].name;
    link_pattern p = pattern_of_link(fabric, l);
    switch (l->kind) {
    case MS_LINK_PEER:
        return ms_arena_printf(arena, "%s %ld-%ld", level, p.first, p.second);
    case MS_LINK_TORUS:
        return ms_arena_printf(arena, "%s %c%c %ld", level, l->out ? '+' : '-',
                               dim_letters[p.dim], p.first);
    case MS_LINK_NIC:
        return ms_arena_printf(arena, "nic %s %ld", direction(l), p.first);
    case MS_LINK_UPLINK:
        if (fabric->details->place.rails[l->level] > 1)
            return ms_arena_printf(arena, "%s uplink %s %ld rail %ld", level,
                                   direction(l), p.first, p.second);
        return ms_arena_printf(arena, "%s uplink %s %ld", level, direction(l), p.first);
    case MS_LINK_PORT:
    case MS_NUM_LINK_KINDS:
    default:
        return ms_arena_printf(arena, "%s %s %ld", level, direction(l), p.first);
    }
}

/* ---- finding ---- */

/* If *text starts with a word, advances past it and blanks and returns true. */
static bool take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0 ||
        ((*text)[length] != '\0' && (*text)[length] != ' '))
        return false;
    *text += length;
    while (**text == ' ')
        ++*text;
    return true;
}

/* Reads a number up to a blank, the character `stop` or the end. */
static bool take_number(const char **text, char stop, long *out)
{
    if (**text < '0' || **text > '9' || strspn(*text, "0123456789") > 15)
        return false;
    char *end;
    long value = strtol(*text, &end, 10);
    if (*end != '\0' && *end != ' ' && *end != stop)
        return false;
    *out = value;
    while (*end == ' ')
        end++;
    *text = end;
    return true;
}

/* Reads the first words of a name, which determine the kind and level of the links. */
static bool take_kind(const ms_fabric *fabric, const char **text, link_pattern *p)
{
    static const int inner[] = {MS_LINK_PORT, MS_LINK_PEER, MS_LINK_TORUS};
    const ms_cluster *cluster = fabric->cluster;
    for (int level = 0; level < cluster->num_levels; level++) {
        const char *rest = *text;
        if (!take_word(&rest, cluster->levels[level].name))
            continue;
        bool is_uplink = take_word(&rest, "uplink");
        if (!is_uplink && level > 0)
            continue;
        p->kind = is_uplink ? MS_LINK_UPLINK : inner[cluster->levels[0].topology];
        p->level = level;
        *text = rest;
        return true;
    }
    p->kind = MS_LINK_NIC;
    p->level = 1;
    return take_word(text, "nic");
}

static void take_direction(const char **text, link_pattern *p)
{
    static const char *const torus_words[] = {"-x", "+x", "-y", "+y", "-z", "+z"};
    if (p->kind == MS_LINK_TORUS) {
        for (int i = 0; i < 2 * MS_MAX_TORUS_DIMS; i++) {
            if (take_word(text, torus_words[i])) {
                p->dim = i / 2;
                p->out = i % 2;
                return;
            }
        }
    } else if (p->kind != MS_LINK_PEER) {
        p->out = take_word(text, "out") ? 1 : take_word(text, "in") ? 0 : -1;
    }
}

static bool parse_pattern(const ms_fabric *fabric, const char *name, link_pattern *p)
{
    *p = (link_pattern){-1, -1, -1, -1, -1, -1};
    while (*name == ' ')
        name++;
    if (!take_kind(fabric, &name, p))
        return false;
    take_direction(&name, p);
    if (*name == '\0')
        return true;
    if (!take_number(&name, '-', &p->first))
        return false;
    if (p->kind == MS_LINK_PEER && *name == '-') {
        name++;
        return take_number(&name, ' ', &p->second) && *name == '\0';
    }
    if (p->kind == MS_LINK_UPLINK && take_word(&name, "rail"))
        return take_number(&name, ' ', &p->second) && *name == '\0';
    return *name == '\0';
}

static bool pattern_matches(const link_pattern *want, const link_pattern *have)
{
    /* "xgmi 3", one GPU of a full mesh, matches its links in both directions */
    bool first =
        want->first < 0 || want->first == have->first ||
        (want->kind == MS_LINK_PEER && want->second < 0 && want->first == have->second);
    return want->kind == have->kind && want->level == have->level && first &&
           (want->second < 0 || want->second == have->second) &&
           (want->out < 0 || want->out == have->out) &&
           (want->dim < 0 || want->dim == have->dim);
}

int ms_fabric_find(const ms_fabric *fabric, const char *name, int most, int *links)
{
    link_pattern want;
    int num = 0;
    if (!parse_pattern(fabric, name, &want))
        return 0;
    for (int i = 0; i < fabric->num_links; i++) {
        link_pattern have = pattern_of_link(fabric, &fabric->links[i]);
        if (!pattern_matches(&want, &have))
            continue;
        if (num < most)
            links[num] = i;
        num++;
    }
    return num;
}
