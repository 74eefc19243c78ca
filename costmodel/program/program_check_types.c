/* Checks the placements of each node by the algebra of its operation, axis by axis. */
#include "costmodel/program/program_check_priv.h"

#include <stdio.h>
#include <string.h>

/* Rules of one operation with one form of operands. `dims`: operands '>' results,
 * separated by commas, optional ones after '|'. Letters: those dims; '*' at the end: any
 * further dims; '_' any dims; '=' the first operand's dims, '~' its last few, '$' its
 * last one. Letters of einsums are checked against `einsum`. `spreads`: legal shardings
 * over one axis, a word each, a character per tensor: '.' whole, '+' partial sum, '^'
 * partial maximum, 'x' any, a letter: split by that dim. For any dim X: '*' split by X;
 * '#' split by X, not the last dim; ':' and '%' split by X or, without X, whole (':') or
 * partial sum ('%'). Marks before a word: only axis 0..2, '!' no ring, '~' ring only. */
typedef struct op_type {
    unsigned char op;
    const char *dims;
    const char *spreads;
    const char *never; /* letters that X in `spreads` cannot stand for */
} op_type;

static const op_type types[] = {
    {MS_OP_EINSUM, "_,_>_", "..>. ::>% +.>+ .+>+", ""},
    {MS_OP_GROUPED, "r*,e*,_>r*", "..x>. 0r.x>r 1rex>r ::x>% +.x>+ .+x>+", "re"},
    {MS_OP_GROUPED, "r*,r*,_>e*", "..x>. 0rrx>+ 1rrx>e ::x>% +.x>+ .+x>+", "re"},
    /* Where rows are partial sums over etp, each rank adds its share of the bias. */
    {MS_OP_EXPERT_BIAS, "r*,e*,_>=", "..x>. 0r.x>r 1rex>r iix>i +.x>+", ""},
    {MS_OP_EXPERT_BIAS_GRAD, "r*,_>e*", ".x>. 0rx>+ 1rx>e ix>i", ""},
    {MS_OP_BIAS, "_,~>=", "..>. *:>* ++>+", ""},
    {MS_OP_SUM_TO, "_>~", ".>. *>% +>+", ""},
    {MS_OP_ADD, "_,=>=", "..>. **>* ++>+", ""},
    {MS_OP_ADD, "_,=>=,=", "..>.. **>**", ""},
    {MS_OP_DROPOUT_GRAD, "_,=>=", "..>. **>* +.>+", ""},
    {MS_OP_NORM, "_,$|,$>=", "..|.>. #.|.>#", ""},
    {MS_OP_NORM, "bsnd,nd>bsnd", "..>. b.>b s.>s", ""},
    {MS_OP_NORM, "bsgd,gd>bsgd", "..>. b.>b s.>s", ""},
    {MS_OP_NORM_GRAD, "bsnd,nd,bsnd>bsnd,nd", "...>.. b.b>b+ s.s>s+ ..+>++", ""},
    {MS_OP_NORM_GRAD, "bsgd,gd,bsgd>bsgd,gd", "...>.. b.b>b+ s.s>s+ ..+>++", ""},
    {MS_OP_NORM_GRAD, "bsnd,nd,bsnd>bsnd", "...>. b.b>b s.s>s ..+>+", ""},
    {MS_OP_NORM_GRAD, "bsgd,gd,bsgd>bsgd", "...>. b.b>b s.s>s ..+>+", ""},
    {MS_OP_NORM_GRAD, "_,$,=>=,$|,$", "...>..|. #.#>#+|+ ..+>++|+", ""},
    {MS_OP_NORM_GRAD, "_,$,=>=", "...>. #.#># ..+>+", ""},
    {MS_OP_ROTARY, "_>=", ".>. #># +>+", ""},
    /* Attention: a query needs all keys before it, or in a ring gets them in turn. Key
     * heads are split like the query heads they serve. */
    {MS_OP_ATTENTION, "bsnd,bsgd,bsgw>bsnw,bsn|,bsnt",
     "...>..|. bbb>bb|b ngg>nn|n !s..>ss|s ~1sss>ss|s", ""},
    {MS_OP_ATTENTION, "bsnd,bsnd,bsnw>bsnw,bsn|,bsnt",
     "...>..|. bbb>bb|b nnn>nn|n !s..>ss|s ~1sss>ss|s", ""},
    {MS_OP_ATTENTION, "bsnd,bsgd,bsgw,n>bsnw,bsn|,bsnt",
     "....>..|. bbb.>bb|b nggn>nn|n 1ngg.>nn|n !s...>ss|s ~1sss.>ss|s", ""},
    {MS_OP_SINK_GRAD, "bsnw,bsn,bsnw,n>n", "....>. bbb.>+ sss.>+ nnnn>n 1nnn.>+ ..+.>+",
     ""},
    {MS_OP_ATTENTION_GRAD, "bsnd,bsgd,bsgw,bsnw,bsn,bsnw|,bsnt>bsnd,bsgd,bsgw",
     "......|.>... bbbbbb|b>bbb nggnnn|n>ngg !s..sss|s>s++ ~1ssssss|s>sss .....+|.>+++",
     ""},
    {MS_OP_ATTENTION_GRAD, "bsnd,bsnd,bsnw,bsnw,bsn,bsnw|,bsnt>bsnd,bsnd,bsnw",
     "......|.>... bbbbbb|b>bbb nnnnnn|n>nnn !s..sss|s>s++ ~1ssssss|s>sss .....+|.>+++",
     ""},
    /* MLA: all heads share the rotary key. */
    {MS_OP_MLA_KEYS, "bsnu,bso>bsnd,bsnw", "..>.. bb>bb ss>ss n.>nn ++>++", ""},
    {MS_OP_MLA_KEYS_GRAD, "bsnd,bsnw>bsnu,bso", "..>.. bb>bb ss>ss nn>n+ ++>++", ""},
    {MS_OP_ACTIVATION, "_>=", ".>. *>*", ""},
    {MS_OP_ACTIVATION, "_,=>=", "..>. **>* .+>+", ""},
    {MS_OP_ACTIVATION_GRAD, "_,=>=", "..>. **>* .+>+", ""},
    {MS_OP_ACTIVATION_GRAD, "_,=,=>=,=", "...>.. ***>** ..+>++ .+.>+.", ""},
    /* Embedding: every rank knows all tokens; rows of other ranks' tables add zero. */
    {MS_OP_EMBED, "vh>bsh", ".>. .>b .>s v>+ h>h +>+", ""},
    {MS_OP_EMBED, "ph>bsh", ".>. .>b .>s p>+ h>h +>+", ""},
    {MS_OP_EMBED_GRAD, "bsh>vh", ".>. b>+ s>+ h>h .>v +>+", ""},
    {MS_OP_EMBED_GRAD, "bsh>ph", ".>. b>+ s>+ h>h .>p +>+", ""},
    {MS_OP_LOSS_MAX, "bsv>bs", ".>. b>b s>s v>^", ""},
    {MS_OP_LOSS_SUM, "bsv,bs>bs,bs", "..>.. bb>bb ss>ss v.>++", ""},
    {MS_OP_LOSS, "bs,bs,bs>bs", "...>. bbb>b sss>s", ""},
    {MS_OP_LOSS_GRAD, "bsv,bs,bs>bsv", "...>. bbb>b sss>s v..>v", ""},
    {MS_OP_ROUTE, "bse|,e>bsk,bsk", ".|.>.. b|.>bb s|.>ss", ""},
    {MS_OP_ROUTE_GRAD, "bse,bsk,bsk,bsk>bse", "....>. bbbb>b ssss>s ...+>+", ""},
    /* Permutation: experts' rows are split like their tokens. */
    {MS_OP_PERMUTE, "bsh,bsk>rh", "..>. bb>r ss>r h.>h +.>+", ""},
    {MS_OP_PERMUTE_GRAD, "rh,bsk>bsh", "..>. rb>b rs>s h.>h +.>+", ""},
    {MS_OP_UNPERMUTE, "rh,bsk,bsk>bsh", "...>. rbb>b rss>s h..>h +..>+ .+.>+", ""},
    {MS_OP_UNPERMUTE_GRAD, "bsh,rh,bsk,bsk>rh,bsk",
     "....>.. brbb>rb srss>rs hh..>h+ +...>++ .+..>.+ ..+.>+.", ""},
    {MS_OP_GATE, "_,bs1>=", "..>. *:>* +.>+", ""},
    {MS_OP_GATE_GRAD, "_,bs1,=>=,bs1", "...>.. *:*>*% ..+>++ +..>.+", ""},
    /* Scan: heads and groups are split like their projections, sequences never. */
    {MS_OP_SCAN, "bsI,XK,X,M,M,M>bsD,bsD", "......>.. b.....>bb IXXMMM>DD", ""},
    {MS_OP_SCAN_GRAD, "bsI,XK,X,M,M,M,bsD,bsD>bsI,XK,X,M,M,M",
     "........>...... b.....bb>b+++++ IXXMMMDD>IXXMMM .......+>++++++", ""},
    {MS_OP_SCAN_GRAD, "bsI,XK,X,M,M,M,bsD,bsD>bsI",
     "........>. b.....bb>b IXXMMMDD>I .......+>+", ""},
    {MS_OP_GROUP_NORM, "bsD,D>bsD", "..>. b.>b s.>s DD>D", ""},
    {MS_OP_GROUP_NORM_GRAD, "bsD,D,bsD>bsD", "...>. b.b>b s.s>s DDD>D ..+>+", ""},
    {MS_OP_GROUP_NORM_GRAD, "bsD,D,bsD>bsD,D", "...>.. b.b>b+ s.s>s+ DDD>DD ..+>++", ""},
    {MS_OP_CONCAT, "bsh,bsh>bsH", "..>. bb>b ss>s ++>+", ""},
    {MS_OP_CONCAT_GRAD, "bsH>bsh,bsh", ".>.. b>bb s>ss +>++", ""},
    {MS_OP_ADAM, "_,=,=,=>=,=,=", "....>... ****>***", ""},
};
#define NUM_TYPES (sizeof types / sizeof *types)

/* ---- dims ---- */

static char last_dim(const ms_tensor *t)
{
    size_t rank = strlen(t->dims);
    return rank > 0 ? t->dims[rank - 1] : '\0';
}

static bool term_fits(const char *term, size_t length, const char *dims,
                      const ms_tensor *first)
{
    size_t rank = strlen(dims), whole = strlen(first->dims);
    if (length == 1 && *term == '_')
        return true;
    if (length == 1 && *term == '=')
        return strcmp(dims, first->dims) == 0;
    if (length == 1 && *term == '$')
        return rank == 1 && *dims == last_dim(first);
    if (length == 1 && *term == '~')
        return rank > 0 && rank <= whole && strcmp(dims, first->dims + whole - rank) == 0;
    if (term[length - 1] == '*')
        return strncmp(dims, term, length - 1) == 0;
    return rank == length && strncmp(dims, term, length) == 0;
}

/* Whether tensors have the dims that op_type.dims names up to `end`. */
static bool terms_fit(const ms_checker *c, const int *tensors, int count,
                      const char *terms, const char *end, const ms_tensor *first)
{
    bool optional = false;
    int i = 0;
    while (terms < end) {
        if (*terms == '|') {
            optional = true;
            terms++;
        }
        if (*terms == ',')
            terms++;
        size_t length = strcspn(terms, ",|>");
        if (i == count)
            return optional;
        if (!term_fits(terms, length, c->program->tensors[tensors[i]].dims, first))
            return false;
        terms += length;
        i++;
    }
    return i == count;
}

static bool dims_fit(const ms_checker *c, const ms_node *node, const op_type *type)
{
    const char *arrow = strchr(type->dims, '>');
    const ms_tensor *first = ms_checker_in(c, node, 0);
    return terms_fit(c, node->in, node->num_in, type->dims, arrow, first) &&
           terms_fit(c, node->out, node->num_out, arrow + 1, arrow + strlen(arrow),
                     first);
}

static const op_type *find_type(const ms_checker *c, const ms_node *node)
{
    for (size_t i = 0; i < NUM_TYPES; i++)
        if (types[i].op == node->op && dims_fit(c, node, &types[i]))
            return &types[i];
    return NULL;
}

/* Whether an einsum's text names the dims of its first two operands and its result. */
static bool einsum_fits(const ms_checker *c, const ms_node *node)
{
    char spelled[3 * MS_MAX_DIMS + 5];
    snprintf(spelled, sizeof spelled, "%s,%s->%s", ms_checker_in(c, node, 0)->dims,
             ms_checker_in(c, node, 1)->dims, ms_checker_out(c, node, 0)->dims);
    return node->einsum != NULL && strcmp(node->einsum, spelled) == 0;
}

/* ---- spreads ---- */

/* One sharding of an operation: a word of op_type.spreads, with `letter` as its X. */
typedef struct spread {
    const char *in, *out; /* characters of op_type.spreads for operands, for results */
    char letter;
    int pieces;
} spread;

/* Character for operand or result i in `slots`, '|' not counted; '\0': none. */
static char slot(const char *slots, int i)
{
    for (; *slots != '\0' && *slots != '>' && *slots != ' '; slots++) {
        if (*slots == '|')
            continue;
        if (i-- == 0)
            return *slots;
    }
    return '\0';
}

/* Whether `slots` is for `count` operands or results; those after '|' are optional. */
static bool count_fits(const char *slots, int count)
{
    int least = -1, most = 0;
    for (; *slots != '\0' && *slots != '>' && *slots != ' '; slots++) {
        if (*slots == '|')
            least = most;
        else
            most++;
    }
    return count <= most && count >= (least < 0 ? most : least);
}

/* Sets *at to the placement that character `s` requires of a tensor; false if none. */
static bool slot_placement(const spread *way, char s, const ms_tensor *t,
                           ms_placement *at)
{
    bool by_letter = ms_tensor_has(t, way->letter);
    *at = ms_replicate;
    if (s == '+' || s == '^') {
        at->kind = s == '+' ? MS_PARTIAL_SUM : MS_PARTIAL_MAX;
        return true;
    }
    if (s == '.' || (s == ':' && !by_letter))
        return true;
    if (s == '%' && !by_letter) {
        at->kind = MS_PARTIAL_SUM;
        return true;
    }
    char letter = strchr("*#:%", s) != NULL ? way->letter : s;
    *at = ms_shard(letter);
    at->split_factor = way->pieces;
    return ms_tensor_has(t, letter) && !(s == '#' && letter == last_dim(t));
}

static bool slot_fits(const spread *way, char s, const ms_tensor *t, int axis)
{
    ms_placement want;
    return s == 'x' ||
           (slot_placement(way, s, t, &want) && ms_placement_equal(want, t->at[axis]));
}

static bool operand_fits(const ms_checker *c, const spread *way, const ms_node *node,
                         int operand, int axis)
{
    return slot_fits(way, slot(way->in, operand), ms_checker_in(c, node, operand), axis);
}

/* Sum over operands that fit `way`: 5 if split, else 2; -1: not that many operands. */
static int score(const ms_checker *c, const spread *way, const ms_node *node, int axis)
{
    int sum = 0;
    if (!count_fits(way->in, node->num_in))
        return -1;
    for (int i = 0; i < node->num_in; i++)
        if (operand_fits(c, way, node, i, axis))
            sum += ms_checker_in(c, node, i)->at[axis].kind == MS_SHARD ? 5 : 2;
    return sum;
}

static bool slots_fit(const ms_checker *c, const spread *way, const char *slots,
                      const int *tensors, int count, int axis)
{
    if (!count_fits(slots, count))
        return false;
    for (int i = 0; i < count; i++)
        if (!slot_fits(way, slot(slots, i), &c->program->tensors[tensors[i]], axis))
            return false;
    return true;
}

/* Split factor of the first operand that is split over an axis; 0 if none is. */
static int split_pieces(const ms_checker *c, const ms_node *node, int axis)
{
    for (int i = 0; i < node->num_in; i++) {
        ms_placement at = ms_checker_in(c, node, i)->at[axis];
        if (at.kind == MS_SHARD)
            return at.split_factor;
    }
    return 0;
}

/* Lists the dim letters of a node's operands, each once, except those in `never`. */
static void list_letters(const ms_checker *c, const ms_node *node, const char *never,
                         char letters[MS_MAX_OPERANDS * MS_MAX_DIMS + 1])
{
    int count = 0;
    letters[0] = '\0';
    for (int i = 0; i < node->num_in; i++) {
        for (const char *d = ms_checker_in(c, node, i)->dims; *d != '\0'; d++) {
            if (strchr(letters, *d) == NULL && strchr(never, *d) == NULL) {
                letters[count++] = *d;
                letters[count] = '\0';
            }
        }
    }
}

/* Skips a word's marks (op_type.spreads); returns whether they fit node and axis. */
static bool mark_applies(const ms_node *node, int axis, const char **text)
{
    bool applies = true;
    for (;; ++*text) {
        char mark = **text;
        if (mark >= '0' && mark < '0' + MS_MESH_AXES)
            applies = applies && mark - '0' == axis;
        else if (mark == '!' || mark == '~')
            applies = applies && node->ring == (mark == '~');
        else
            return applies;
    }
}

static bool uses_letter(const char *text)
{
    return strcspn(text, "*#:%") < strcspn(text, " ");
}

/* Iterator over all shardings of an operation, with every letter that may be split. */
typedef struct spread_walk {
    const char *next;
    const char *letter; /* next letter for X; NULL before the first */
    char letters[MS_MAX_OPERANDS * MS_MAX_DIMS + 1];
} spread_walk;

static bool next_spread(spread_walk *walk, const ms_node *node, int axis, spread *way)
{
    while (*walk->next != '\0') {
        const char *text = walk->next;
        bool applies = mark_applies(node, axis, &text);
        bool lettered = uses_letter(text);
        const char *from = walk->letter != NULL ? walk->letter : walk->letters;
        if (applies && (lettered ? *from != '\0' : walk->letter == NULL)) {
            way->in = text;
            way->out = strchr(text, '>') + 1;
            way->letter = lettered ? *from : '\0';
            walk->letter = lettered ? from + 1 : "";
            return true;
        }
        walk->letter = NULL;
        walk->next += strcspn(walk->next, " ");
        walk->next += *walk->next == ' ';
    }
    return false;
}

/* ---- findings ---- */

/* Reports that operand `other` is not placed as `way` requires beside `sharded`. */
static void report_operand_pair(ms_checker *c, int n, int axis, const spread *way,
                                int sharded, int other)
{
    const ms_node *node = &c->program->nodes[n];
    const ms_tensor *x = ms_checker_in(c, node, sharded),
                    *y = ms_checker_in(c, node, other);
    ms_placement a = x->at[axis], b = y->at[axis], want;
    if (!slot_placement(way, slot(way->in, other), y, &want))
        want = ms_replicate;
    bool strided = b.kind == MS_SHARD && want.kind == MS_SHARD && want.dim == b.dim;
    ms_checker_report(c, strided ? MS_CHECK_STRIDED : MS_CHECK_SPLIT, n, axis,
                      "its operands do not lie together: %s[%s] is %s, so %s[%s] must be "
                      "%s, but it is %s",
                      x->name, x->dims, ms_checker_describe(a).text, y->name, y->dims,
                      ms_checker_describe(want).text, ms_checker_describe(b).text);
}

static void report_partial(ms_checker *c, int n, int axis, int num_partial, int partial)
{
    const ms_node *node = &c->program->nodes[n];
    const ms_tensor *t = ms_checker_in(c, node, partial);
    if (t->role == MS_ROLE_GRADIENT || t->role == MS_ROLE_WEIGHT_GRADIENT) {
        ms_checker_report(c, MS_CHECK_FORGOTTEN_REDUCTION, n, axis,
                          "the gradient of %s[%s] is still %s here: its reduction is "
                          "missing",
                          t->name, t->dims, ms_checker_describe(t->at[axis]).text);
    } else if (num_partial > 1 && ms_node_is_product(node)) {
        ms_checker_report(
            c, MS_CHECK_PARTIAL_PRODUCT, n, axis,
            "both %s[%s] and %s[%s] are partial sums: the product of sums "
            "is not the sum of products",
            ms_checker_in(c, node, 0)->name, ms_checker_in(c, node, 0)->dims,
            ms_checker_in(c, node, 1)->name, ms_checker_in(c, node, 1)->dims);
    } else {
        ms_checker_report(c, MS_CHECK_PARTIAL_OPERAND, n, axis,
                          "%s[%s] is %s: %s takes it whole, or all operands it is linear "
                          "in partial",
                          t->name, t->dims, ms_checker_describe(t->at[axis]).text,
                          ms_op_names[node->op]);
    }
}

/* Counts operands that are partial sums or maxima; *last is the index of the last one. */
static int count_partial(const ms_checker *c, const ms_node *node, int axis, int *last)
{
    int count = 0;
    for (int i = 0; i < node->num_in; i++) {
        const ms_tensor *t = ms_checker_in(c, node, i);
        if (t->mesh == ms_checker_in(c, node, 0)->mesh &&
            ms_placement_is_partial(t->at[axis])) {
            count++;
            *last = i;
        }
    }
    return count;
}

/* Reports why no sharding fits a node's operands; `best` fits most of them. */
static void report_operands(ms_checker *c, int n, int axis, const spread *best)
{
    const ms_node *node = &c->program->nodes[n];
    int sharded = -1, other = -1, partial = -1;
    if (node->op == MS_OP_ADAM &&
        ms_placement_is_partial(ms_checker_in(c, node, 1)->at[axis]))
        return; /* reported by ms_check_updates */
    int num_partial = count_partial(c, node, axis, &partial);
    if (num_partial > 0) {
        report_partial(c, n, axis, num_partial, partial);
        return;
    }
    for (int i = node->num_in - 1; i >= 0; i--) {
        bool fits = operand_fits(c, best, node, i, axis);
        if (!fits)
            other = i;
        else if (ms_checker_in(c, node, i)->at[axis].kind == MS_SHARD)
            sharded = i;
    }
    if (sharded >= 0)
        report_operand_pair(c, n, axis, best, sharded, other);
    else {
        ms_checker_report(
            c, MS_CHECK_SPLIT, n, axis, "the ranks cannot share it: %s[%s] is %s",
            ms_checker_in(c, node, other)->name, ms_checker_in(c, node, other)->dims,
            ms_checker_describe(ms_checker_in(c, node, other)->at[axis]).text);
    }
}

/* Reports the first result whose placement does not follow from sharding `way`. */
static void report_results(ms_checker *c, int n, int axis, const spread *way)
{
    const ms_node *node = &c->program->nodes[n];
    for (int i = 0; i < node->num_out; i++) {
        const ms_tensor *t = ms_checker_out(c, node, i);
        ms_placement want, at = t->at[axis];
        if (slot_placement(way, slot(way->out, i), t, &want) &&
            ms_placement_equal(want, at))
            continue;
        bool forgotten = ms_placement_is_partial(want) && !ms_placement_is_partial(at);
        ms_checker_report(c, forgotten ? MS_CHECK_FORGOTTEN_REDUCTION : MS_CHECK_RESULT,
                          n, axis, "%s[%s] is %s by its operands, but claimed to be %s%s",
                          t->name, t->dims, ms_checker_describe(want).text,
                          ms_checker_describe(at).text,
                          forgotten ? ": a reduction is missing" : "");
        return;
    }
}

/* ---- one node ---- */

static void check_axis(ms_checker *c, int n, const op_type *type, int axis)
{
    const ms_node *node = &c->program->nodes[n];
    spread_walk walk = {.next = type->spreads};
    spread way = {.pieces = split_pieces(c, node, axis)}, fits = {0},
           best = {.in = type->spreads};
    int best_score = -1;
    list_letters(c, node, type->never, walk.letters);
    while (next_spread(&walk, node, axis, &way)) {
        if (!slots_fit(c, &way, way.in, node->in, node->num_in, axis)) {
            int its_score = score(c, &way, node, axis);
            if (its_score > best_score) {
                best = way;
                best_score = its_score;
            }
            continue;
        }
        if (slots_fit(c, &way, way.out, node->out, node->num_out, axis))
            return;
        if (fits.in == NULL)
            fits = way;
    }
    if (fits.in != NULL)
        report_results(c, n, axis, &fits);
    else
        report_operands(c, n, axis, &best);
}

static bool on_one_mesh(const ms_checker *c, const ms_node *node)
{
    int mesh = ms_checker_in(c, node, 0)->mesh;
    /* the last operand, the routing choice, is on the dense mesh */
    bool grouped = node->op == MS_OP_GROUPED || node->op == MS_OP_EXPERT_BIAS ||
                   node->op == MS_OP_EXPERT_BIAS_GRAD;
    for (int i = 0; i < node->num_in; i++)
        if (ms_checker_in(c, node, i)->mesh !=
            (grouped && i == node->num_in - 1 ? MS_DENSE_MESH : mesh))
            return false;
    for (int i = 0; i < node->num_out; i++)
        if (ms_checker_out(c, node, i)->mesh != mesh)
            return false;
    return !grouped || mesh == MS_SPARSE_MESH;
}

void ms_check_operation(ms_checker *c, int n)
{
    const ms_node *node = &c->program->nodes[n];
    const op_type *type = node->num_in > 0 ? find_type(c, node) : NULL;
    if (type == NULL || (ms_node_is_product(node) && !einsum_fits(c, node))) {
        ms_checker_report(c, MS_CHECK_STRUCTURE, n, -1,
                          "%s does not take operands or give results of these dims",
                          ms_op_names[node->op]);
        return;
    }
    if (!on_one_mesh(c, node)) {
        ms_checker_report(c, MS_CHECK_STRUCTURE, n, -1,
                          "operands and results lie on different meshes");
        return;
    }
    int mesh = ms_checker_in(c, node, 0)->mesh;
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (ms_checker_is_active(c->program, mesh, axis))
            check_axis(c, n, type, axis);
}
