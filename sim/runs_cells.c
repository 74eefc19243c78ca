/* The columns of a file of published runs, and the cells of one row. */
#include "sim/runs_priv.h"

#include <ctype.h>
#include <string.h>

#define TEXT(title, member)                                                              \
    {                                                                                    \
        title, MS_CELL_TEXT, offsetof(ms_run_cells, member)                              \
    }
#define COUNT(member)                                                                    \
    {                                                                                    \
#member, MS_CELL_COUNT, offsetof(ms_run_cells, member)                           \
    }
#define OPTIONAL(member)                                                                 \
    {                                                                                    \
#member, MS_CELL_OPTIONAL_COUNT, offsetof(ms_run_cells, member)                  \
    }
#define POSITIVE(title, member)                                                          \
    {                                                                                    \
        title, MS_CELL_POSITIVE, offsetof(ms_run_cells, member)                          \
    }

static const ms_cell_rule columns[] = {
    TEXT("id", id),
    TEXT("source", source),
    TEXT("date", date),
    TEXT("model", model),
    TEXT("gpu_type", gpu_type),
    TEXT("inter_node_network", network),
    TEXT("vpp_or_schedule", schedule),
    TEXT("recompute", recompute),
    TEXT("precision", precision),
    TEXT("compile_or_fused", compile),
    TEXT("framework", framework),
    COUNT(layers),
    COUNT(hidden),
    COUNT(heads),
    COUNT(kv_heads),
    COUNT(head_dim),
    COUNT(ffn_hidden),
    COUNT(gated_ffn),
    COUNT(vocab),
    COUNT(tied_embeddings),
    COUNT(experts),
    COUNT(top_k),
    COUNT(moe_ffn_hidden),
    COUNT(shared_experts),
    COUNT(seq),
    COUNT(mbs),
    COUNT(gbs_seqs),
    COUNT(gpus),
    OPTIONAL(gpus_per_node),
    OPTIONAL(flash_attention),
    COUNT(dp_replicate),
    COUNT(dp_shard),
    COUNT(tp),
    COUNT(sp),
    COUNT(async_tp),
    COUNT(pp),
    COUNT(cp),
    COUNT(ep),
    COUNT(zero_stage),
    POSITIVE("measured_tokens_per_s_per_gpu", tokens_per_s_per_gpu),
    POSITIVE("measured_step_s", step_s),
    POSITIVE("measured_peak_mem_gib", peak_mem_gib),
};

ms_status ms_run_columns_find(ms_ctx *cx, const char *file, const ms_csv_row *header,
                              ms_cell_columns *out)
{
    return ms_cells_find(cx, file, header, columns, sizeof columns / sizeof columns[0],
                         out);
}

/* No run is measured beyond these; a cell that says so has another unit, or a slip. */
static const char *find_absurd(ms_arena *arena, const ms_run_cells *c)
{
    const struct {
        const char *name;
        double value, least, most;
    } measured[] = {
        {"measured_tokens_per_s_per_gpu", c->tokens_per_s_per_gpu, 1e-3, 1e8},
        {"measured_step_s", c->step_s, 1e-5, 1e6},
        {"measured_peak_mem_gib", c->peak_mem_gib, 1e-3, 1e5},
    };
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        if (measured[i].value < measured[i].least || measured[i].value > measured[i].most)
            return ms_arena_printf(arena, "%s is %g, must be between %g and %g",
                                   measured[i].name, measured[i].value, measured[i].least,
                                   measured[i].most);
    }
    return NULL;
}

/* ---- counts in words ---- */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

/* "no distributed optimizer", "distopt off" */
static bool is_denied(const char *plain)
{
    size_t length = strlen(plain);
    return strncmp(plain, "no", 2) == 0 || strncmp(plain, "without", 7) == 0 ||
           (length > 3 && strcmp(plain + length - 3, "off") == 0) ||
           (length > 5 && strcmp(plain + length - 5, "false") == 0);
}

/* The stage that words for ZeRO mean; -1: none. */
static long zero_in_words(const char *plain)
{
    static const char *const nothing[] = {"none", "no", "ddp", "false", NULL};
    static const char *const parameters[] = {"fsdp", "hsdp", "fsdp1", "fsdp2", NULL};
    const char *at = plain + strspn(plain, "zerostage=");
    if (is_one_of(plain, nothing))
        return 0;
    if (is_one_of(plain, parameters))
        return 3;
    if (strstr(plain, "distributedopt") != NULL || strstr(plain, "distopt") != NULL)
        return is_denied(plain) ? 0 : 1;
    return at > plain && *at >= '0' && *at <= '3' && at[1] == '\0' ? *at - '0' : -1;
}

/* Whether a comma stands before the last three digits, or three more with a comma behind. */
static bool is_thousands_comma(const char *at)
{
    return *at == ',' && strspn(at + 1, "0123456789") == 3;
}

/* The digits at *at, with commas between thousands, and what follows them; -1: none, or too many. */
static double read_digits(const char **at)
{
    const char *text = *at;
    double value = 0.0;
    int digits = 0;
    while (isdigit((unsigned char)*text) || (digits > 0 && is_thousands_comma(text))) {
        value = *text == ',' ? value : 10.0 * value + (*text - '0');
        digits += *text != ',';
        text++;
    }
    *at = text;
    return digits == 0 || digits > 8 ? -1.0 : value;
}

/* Letters of a sign of multiplication; 0: none. */
static size_t times_sign(const char *at)
{
    if (*at == 'x' || *at == '*')
        return 1;
    return strncmp(at, "\xc3\x97", 2) == 0 ? 2 : 0;
}

/* Whether leaving out gaps would join digits or a sign: "256-512", "-8", "8 16". */
static bool joins_digits(const char *text)
{
    for (const char *at = text; *at != '\0' && *at != '('; at++) {
        bool after_digit = at > text && isdigit((unsigned char)at[-1]);
        size_t gap = strspn(at, " -_");
        bool is_sign = gap > 0 && memchr(at, '-', gap) != NULL;
        if (gap > 0 && isdigit((unsigned char)at[gap]) && (after_digit || is_sign))
            return true;
    }
    return false;
}

/* "8 (vpp 5)" is 8, "4x2" and "4 * 2" are 8, "1,024" is 1024, "8k" of a sequence 8192; -1: none of these. */
static long number_in_words(const char *plain, bool is_length, bool is_degree)
{
    const double most = 16777216.0;
    double product = 1.0;
    for (const char *at = plain;;) {
        double value = read_digits(&at);
        if (is_length && *at == 'k') {
            value *= 1024.0;
            at++;
        }
        product *= value;
        if (value < 0.0 || product > most)
            return -1;
        if (*at == '\0' || *at == '(')
            return (long)product;
        size_t sign = is_degree ? times_sign(at) : 0;
        if (sign == 0)
            return -1;
        at += sign;
    }
}

/* What a cell of a count says in words, as digits or nothing; NULL: it is a number already, or no such words. */
static const char *count_of_words(ms_arena *arena, const char *column, const char *text)
{
    static const char *const yes[] = {"yes", "true", "y", "on", NULL};
    static const char *const no[] = {"no", "false", "off", "n", NULL};
    static const char *const nothing[] = {"",     "?",    "n/a",     "na",        "none",
                                          "null", "auto", "unknown", "notstated", NULL};
    if (*text == '\0' || text[strspn(text, "0123456789")] == '\0')
        return NULL;
    static const char *const flags[] = {"gated_ffn", "tied_embeddings", "flash_attention",
                                        "sp",        "async_tp",        NULL};
    static const char *const degrees[] = {"gpus", "dp_replicate", "dp_shard", "tp",
                                          "pp",   "cp",           "ep",       NULL};
    const char *plain = ms_plain_text(arena, text);
    bool is_flag = is_one_of(column, flags);
    long number = strcmp(column, "zero_stage") == 0 ? zero_in_words(plain) : -1;
    if (number < 0 && is_one_of(plain, nothing))
        return "";
    if (is_flag && is_one_of(plain, yes))
        return "1";
    if (is_flag && is_one_of(plain, no))
        return "0";
    if (number < 0 && !joins_digits(text))
        number = number_in_words(plain, strcmp(column, "seq") == 0,
                                 is_one_of(column, degrees));
    return number < 0 ? NULL : ms_arena_printf(arena, "%ld", number);
}

/* The row with its counts as numbers; what was read as what is in `words`, the remark of pp's in `remark`. */
static ms_csv_row read_words(ms_arena *arena, const ms_cell_columns *found,
                             const ms_csv_row *row, const char **words,
                             const char **remark)
{
    ms_csv_row plain = *row;
    if (row->fault != NULL || row->num_cells != found->num_columns)
        return plain;
    const char **cells = MS_NEW_ARRAY(arena, row->num_cells, const char *);
    memcpy(cells, row->cells, (size_t)row->num_cells * sizeof *cells);
    for (int i = 0; i < found->num_rules; i++) {
        const ms_cell_rule *rule = &found->rules[i];
        int place = found->place[i];
        if (place < 0 || rule->kind == MS_CELL_TEXT || rule->kind == MS_CELL_POSITIVE)
            continue;
        const char *count = count_of_words(arena, rule->name, cells[place]);
        if (count == NULL)
            continue;
        if (strcmp(rule->name, "pp") == 0)
            *remark = strchr(cells[place], '(');
        if (*count != '\0')
            *words = ms_arena_printf(
                arena, "%s%s%s \"%.40s\" read as %s", *words != NULL ? *words : "",
                *words != NULL ? ", " : "", rule->name, cells[place], count);
        cells[place] = count;
    }
    plain.cells = cells;
    return plain;
}

const char *ms_run_cells_read(ms_arena *arena, const ms_cell_columns *found,
                              const ms_csv_row *row, ms_run_cells *out)
{
    *out = (ms_run_cells){0};
    const char *words = NULL, *remark = NULL;
    ms_csv_row plain = read_words(arena, found, row, &words, &remark);
    const char *fault = ms_cells_read(arena, found, &plain, out);
    out->words = words;
    if (out->schedule == NULL && remark != NULL)
        out->schedule =
            ms_arena_printf(arena, "%.*s", (int)strcspn(remark + 1, ")"), remark + 1);
    if (fault == NULL && out->id == NULL)
        fault = "the row has no id";
    return fault != NULL ? fault : find_absurd(arena, out);
}

typedef struct named_cell {
    const char *name;
    long value;
} named_cell;

void ms_run_odd_cells_note(const ms_run_cells *c, ms_run_notes *notes)
{
    const long most_per_node = 64;
    const named_cell yes_or_no[] = {{"gated_ffn", c->gated_ffn},
                                    {"tied_embeddings", c->tied_embeddings},
                                    {"sp", c->sp},
                                    {"async_tp", c->async_tp}};
    const named_cell sizes[] = {{"dp_replicate", c->dp_replicate},
                                {"dp_shard", c->dp_shard},
                                {"cp", c->cp},
                                {"ep", c->ep}};
    if (c->words != NULL)
        ms_run_note(notes, "%s", c->words);
    for (size_t i = 0; i < sizeof yes_or_no / sizeof *yes_or_no; i++)
        if (yes_or_no[i].value > 1)
            ms_run_note(notes, "%s %ld taken as 1", yes_or_no[i].name,
                        yes_or_no[i].value);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value == 0)
            ms_run_note(notes, "%s 0 taken as 1", sizes[i].name);
    if (c->flash_attention == MS_CELL_UNREAD || c->flash_attention > 1)
        ms_run_note(notes, "flash_attention is neither 0 nor 1 and is passed over");
    if (c->gpus_per_node == MS_CELL_UNREAD || c->gpus_per_node == 0 ||
        c->gpus_per_node > most_per_node)
        ms_run_note(notes, "gpus_per_node is not 1 to %ld and is passed over",
                    most_per_node);
}
