/* Converts cells of published runs as tables write them, "8 (vpp 5)", "4x2", "yes",
 * "12.3*", "2048 ms", into the plain numbers of their columns. A cell in no known form
 * makes its row malformed. */
#include "sim/validate/pubrun_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

/* Whether a text denies a feature: "no distributed optimizer", "distopt off". */
static bool is_denied(const char *plain)
{
    size_t length = strlen(plain);
    return strncmp(plain, "no", 2) == 0 || strncmp(plain, "without", 7) == 0 ||
           (length > 3 && strcmp(plain + length - 3, "off") == 0) ||
           (length > 5 && strcmp(plain + length - 5, "false") == 0);
}

static bool names_optimizer(const char *plain)
{
    return strstr(plain, "distributedopt") != NULL || strstr(plain, "distopt") != NULL;
}

/* Whether `rest`, the text behind a ZeRO stage, names no other stage, as in "1/2", "1 or
 * 2", "1+". */
static bool ends_stage(const char *rest)
{
    static const char *const others[] = {"or", "to", "vs", "x", "/", ".", NULL};
    for (const char *const *other = others; *other != NULL; other++)
        if (strncmp(rest, *other, strlen(*other)) == 0)
            return false;
    size_t mark = strncmp(rest, "and", 3) == 0 ? 3 : *rest != '\0';
    bool is_last = mark > 0 && rest[mark] == '\0' && *rest != ')';
    return !isdigit((unsigned char)*rest) && !isdigit((unsigned char)rest[mark]) &&
           !is_last;
}

static bool is_preceded_by(const char *text, const char *at, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(at - text) >= length && memcmp(at - length, word, length) == 0;
}

/* Counts the ZeRO stages that a cell states: digits after "zero" or "stage", or a bare
 * digit beside "distributed optimizer". Sets *stage to the last. -1 if several differ. */
static int stated_stages(const char *plain, long *stage)
{
    int stages = 0;
    for (const char *at = plain; *at != '\0'; at++) {
        const char *digit = at + strspn(at, "zerostage=:");
        bool is_word = strncmp(at, "zero", 4) == 0 || strncmp(at, "stage", 5) == 0 ||
                       (at == plain && (digit > at || names_optimizer(plain)));
        if (!is_word || *digit < '0' || *digit > '3')
            continue;
        bool is_denied_here = is_preceded_by(plain, at, "no") ||
                              is_preceded_by(plain, at, "not") ||
                              is_preceded_by(plain, at, "without");
        at = digit;
        if (is_denied_here)
            continue;
        if (!ends_stage(digit + 1) || (stages > 0 && *stage != *digit - '0'))
            return -1;
        *stage = *digit - '0';
        stages++;
    }
    return stages;
}

/* Whether a text up to its bracketed remark is one of `words`. */
static bool matches_before_remark(const char *plain, const char *const *words)
{
    size_t length = strcspn(plain, "(");
    for (; *words != NULL; words++)
        if (strlen(*words) == length && strncmp(plain, *words, length) == 0)
            return true;
    return false;
}

/* The ZeRO stage that a cell means in words, including PyTorch's ShardingStrategy; -1 if
 * none. A stated stage takes precedence over other words. */
static long zero_stage_in_words(const char *plain)
{
    static const char *const nothing[] = {"none", "no", "ddp", "false", "noshard", NULL};
    static const char *const gradients[] = {"shardgradop", "hybridshardzero2", NULL};
    static const char *const parameters[] = {"fsdp",      "hsdp",        "fsdp1", "fsdp2",
                                             "fullshard", "hybridshard", NULL};
    long stage = -1;
    int stages = stated_stages(plain, &stage);
    if (stages != 0)
        return stages > 0 ? stage : -1;
    if (matches_before_remark(plain, nothing))
        return 0;
    if (matches_before_remark(plain, gradients))
        return 2;
    if (matches_before_remark(plain, parameters))
        return 3;
    if (names_optimizer(plain))
        return is_denied(plain) ? 0 : 1;
    return -1;
}

/* Whether `at` is a comma followed by exactly three digits. */
static bool is_thousands_comma(const char *at)
{
    return *at == ',' && strspn(at + 1, "0123456789") == 3;
}

/* Reads the number at *at, with commas between thousands, and moves *at behind it; -1 if
 * there are no digits or more than 8. */
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

/* Bytes of a multiplication sign at `at`; 0 if there is none. */
static size_t times_sign(const char *at)
{
    if (*at == 'x' || *at == '*')
        return 1;
    return strncmp(at, "\xc3\x97", 2) == 0 ? 2 : 0;
}

/* Whether removing gaps (" -_") would join separate numbers or drop a sign: "256-512",
 * "-8", "8 16", "8-". */
static bool joins_digits(const char *text)
{
    for (const char *at = text; *at != '\0' && *at != '('; at++) {
        bool after_digit = at > text && isdigit((unsigned char)at[-1]);
        size_t gap = strspn(at, " -_");
        bool is_sign = gap > 0 && memchr(at, '-', gap) != NULL;
        bool before_digit = isdigit((unsigned char)at[gap]);
        if (gap > 0 && before_digit && (after_digit || is_sign))
            return true;
        if (after_digit && is_sign && at[gap] == '\0')
            return true;
    }
    return false;
}

/* Bytes of a footnote's mark that ends at `end`, "12*", "12†", "12[3]"; 0 if there is
 * none. */
static size_t mark_before(const char *text, const char *end)
{
    static const char *const marks[] = {"*", "\xe2\x80\xa0", "\xe2\x80\xa1", "\xc2\xa7",
                                        NULL};
    size_t length = (size_t)(end - text);
    for (const char *const *mark = marks; *mark != NULL; mark++)
        if (length > strlen(*mark) &&
            memcmp(end - strlen(*mark), *mark, strlen(*mark)) == 0)
            return strlen(*mark);
    if (length < 4 || end[-1] != ']')
        return 0;
    size_t num_letters = 1;
    while (num_letters < 3 && isalnum((unsigned char)end[-1 - (long)num_letters]))
        num_letters++;
    return num_letters > 1 && end[-1 - (long)num_letters] == '[' ? num_letters + 1 : 0;
}

/* The text as ms_plain_text writes it, without marks of footnotes and approximation:
 * "~12", "**12**", "12*". */
static const char *bare_text(ms_arena *arena, const char *text)
{
    static const char *const about[] = {"~", "*", "\xe2\x89\x88", NULL};
    const char *plain = ms_plain_text(arena, text);
    for (const char *const *sign = about; *sign != NULL; sign++)
        while (strncmp(plain, *sign, strlen(*sign)) == 0)
            plain += strlen(*sign);
    const char *end = plain + strlen(plain);
    for (size_t mark; (mark = mark_before(plain, end)) > 0;)
        end -= mark;
    return ms_arena_strndup(arena, plain, (size_t)(end - plain));
}

/* ---- counts ---- */

static bool is_degree(const char *column)
{
    static const char *const degrees[] = {"gpus", "dp_replicate", "dp_shard", "tp",
                                          "pp",   "cp",           "ep",       NULL};
    return is_one_of(column, degrees);
}

/* Whether `rest`, the text behind a number, is empty, a bracketed remark, or the unit
 * that the column counts. */
static bool ends_count(const char *column, const char *rest)
{
    static const struct {
        const char *column, *unit;
    } units[] = {{"layers", "layers"},      {"heads", "heads"},
                 {"experts", "experts"},    {"seq", "tokens"},
                 {"gbs_seqs", "seqs"},      {"gbs_seqs", "sequences"},
                 {"gbs_seqs", "samples"},   {"gpus", "gpus"},
                 {"gpus_per_node", "gpus"}, {"gpus_per_node", "pernode"}};
    if (*rest == '\0' || *rest == '(')
        return true;
    if (strcmp(rest, "way") == 0)
        return is_degree(column);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(column, units[i].column) == 0 && strcmp(rest, units[i].unit) == 0)
            return true;
    return false;
}

/* Skips the column's own name before a number: "TP4", "tp=4". */
static const char *skip_column_name(ms_arena *arena, const char *column,
                                    const char *plain)
{
    const char *name = ms_plain_text(arena, column);
    if (strncmp(plain, name, strlen(name)) != 0)
        return plain;
    const char *rest = plain + strlen(name);
    rest += *rest == '=' || *rest == ':';
    return isdigit((unsigned char)*rest) ? rest : plain;
}

/* The number that a cell means: "8 (vpp 5)" is 8, "4x2" and "4 * 2" are 8, "1,024" is
 * 1024, "8k" of a sequence 8192; -1 for any other text, and for a product with 0, since
 * hexadecimal numbers look like one. */
static long number_in_words(const char *column, const char *plain)
{
    const double most = 16777216.0;
    double product = 1.0;
    bool is_first = true;
    for (const char *at = plain;;) {
        double value = read_digits(&at);
        if (*at == 'k' && strcmp(column, "seq") == 0) {
            value *= 1024.0;
            at++;
        }
        product *= value;
        if (value < 0.0 || product > most)
            return -1;
        if (ends_count(column, at))
            return product > 0.0 || is_first ? (long)product : -1;
        is_first = false;
        size_t sign = is_degree(column) ? times_sign(at) : 0;
        if (sign == 0 || !(product > 0.0))
            return -1;
        at += sign;
    }
}

/* 1 if a flag's cell means yes (or names a version of FlashAttention), 0 if it means no;
 * -1 otherwise. */
static long flag_in_words(const char *column, const char *plain)
{
    static const char *const flags[] = {"gated_ffn", "tied_embeddings", "flash_attention",
                                        "sp",        "async_tp",        NULL};
    static const char *const yes[] = {"yes",          "true",         "y", "on",
                                      "\xe2\x9c\x93", "\xe2\x9c\x94", NULL};
    static const char *const no[] = {"no",           "false",        "off", "n",
                                     "\xe2\x9c\x97", "\xe2\x9c\x98", NULL};
    if (!is_one_of(column, flags))
        return -1;
    if (is_one_of(plain, yes) || is_one_of(plain, no))
        return is_one_of(plain, yes);
    bool is_flash = strcmp(column, "flash_attention") == 0 &&
                    (strstr(plain, "flash") != NULL ||
                     (strncmp(plain, "fa", 2) == 0 && isdigit((unsigned char)plain[2])));
    return is_flash ? !is_denied(plain) : -1;
}

static bool is_not_stated(const char *plain)
{
    static const char *const nothing[] = {
        "",     "?",       "n/a",       "na",           "none",         "null",
        "auto", "unknown", "notstated", "\xe2\x80\x93", "\xe2\x80\x94", NULL};
    return is_one_of(plain, nothing);
}

/* Converts a count's cell from words to digits, or to "" if it states nothing; NULL if it
 * is a number already, or cannot be converted. */
static const char *count_of_words(ms_arena *arena, const char *column, const char *text)
{
    if (*text == '\0' || text[strspn(text, "0123456789")] == '\0')
        return NULL;
    const char *plain = bare_text(arena, text);
    long number = strcmp(column, "zero_stage") == 0 ? zero_stage_in_words(plain) : -1;
    if (number < 0 && is_not_stated(plain))
        return "";
    if (number < 0)
        number = flag_in_words(column, plain);
    if (number < 0 && !joins_digits(text))
        number = number_in_words(column, skip_column_name(arena, column, plain));
    return number < 0 ? NULL : ms_arena_printf(arena, "%ld", number);
}

/* ---- measurements ---- */

#define RATE "measured_tokens_per_s_per_gpu"
#define TIME "measured_step_s"
#define PEAK "measured_peak_mem_gib"

/* Whether `remark`, behind a measurement without a unit, names the unit of another column
 * or of no column: "380 (TFLOPs)", but not "4096 (380 TFLOPs)" or "4096 (sequence
 * parallel)". */
static bool is_of_another_unit(const char *column, const char *remark)
{
    static const struct {
        const char *word, *column; /* column that the unit belongs to; NULL if none */
    } units[] = {
        {"tflop", NULL}, {"pflop", NULL},       {"gflop", NULL},  {"flop", NULL},
        {"mfu", NULL},   {"hfu", NULL},         {"sample", NULL}, {"seq", NULL},
        {"image", NULL}, {"sequence", NULL},    {"step/s", NULL}, {"steps/s", NULL},
        {"it/s", NULL},  {"iter/s", NULL},      {"ms", NULL},     {"msec", NULL},
        {"us", NULL},    {"millisecond", NULL}, {"min", NULL},    {"minute", NULL},
        {"hour", NULL},  {"gb", NULL},          {"mb", NULL},     {"mib", NULL},
        {"%", NULL},     {"pernode", NULL},     {"tok", RATE},    {"token", RATE},
        {"tps", RATE},   {"s", TIME},           {"sec", TIME},    {"second", TIME},
        {"gib", PEAK}};
    const char *at = remark + (*remark == '(');
    at += strncmp(at, "in", 2) == 0 ? 2 : 0;
    at += strncmp(at, "model", 5) == 0 ? 5 : 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i].word);
        if (strncmp(at, units[i].word, length) != 0)
            continue;
        const char *end = at + length;
        end += *end == 's';
        if (*end == '\0' || strchr(")/,;", *end) != NULL || strncmp(end, "per", 3) == 0)
            return units[i].column == NULL || strcmp(units[i].column, column) != 0;
    }
    return false;
}

/* The factor from the unit `rest` behind a measurement to the column's unit; 0 if it is
 * no known unit, as for bounds ("<45"), ranges, and GB instead of GiB. */
static double measure_unit(const char *column, const char *rest)
{
    static const struct {
        const char *column, *unit;
        double factor;
    } units[] = {{RATE, "k", 1e3},
                 {RATE, "tok/s", 1.0},
                 {RATE, "tokens/s", 1.0},
                 {RATE, "tok/s/gpu", 1.0},
                 {RATE, "tokens/s/gpu", 1.0},
                 {RATE, "tps", 1.0},
                 {TIME, "s", 1.0},
                 {TIME, "sec", 1.0},
                 {TIME, "seconds", 1.0},
                 {TIME, "ms", 1e-3},
                 {PEAK, "gib", 1.0},
                 {PEAK, "mib", 1.0 / 1024.0}};
    size_t length = strcspn(rest, "(");
    const char *spread = strstr(rest, "\xc2\xb1");
    if (spread != NULL && (size_t)(spread - rest) < length)
        length = (size_t)(spread - rest);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(column, units[i].column) == 0 && strlen(units[i].unit) == length &&
            strncmp(rest, units[i].unit, length) == 0)
            return units[i].factor;
    const char *remark = strchr(rest, '(');
    bool is_other = remark != NULL && is_of_another_unit(column, remark);
    return length == 0 && !is_other ? 1.0 : 0.0;
}

/* Converts a measurement's cell from words to a number, or to "" if it states nothing;
 * NULL if it is a number already, or cannot be converted. Commas may separate thousands
 * of tokens/s only: in seconds or GiB they may be decimal points. */
static const char *measure_of_words(ms_arena *arena, const char *column, const char *text)
{
    char number[32];
    size_t length = 0;
    char *end = NULL;
    (void)strtod(text, &end);
    if (end[strspn(end, " ")] == '\0')
        return *end == '\0' ? NULL : ms_arena_strndup(arena, text, (size_t)(end - text));
    const char *at = bare_text(arena, text);
    if (is_not_stated(at))
        return "";
    if (joins_digits(text))
        return NULL;
    for (bool has_commas = strcmp(column, RATE) == 0; length + 1 < sizeof number; at++) {
        if (isdigit((unsigned char)*at) || *at == '.')
            number[length++] = *at;
        else if (!has_commas || length == 0 || !is_thousands_comma(at))
            break;
    }
    number[length] = '\0';
    double value = strtod(number, &end);
    double factor = measure_unit(column, at);
    if (length == 0 || *end != '\0' || !(factor > 0.0))
        return NULL;
    return ms_arena_printf(arena, "%.10g", value * factor);
}

/* ---- rows ---- */

/* Converts a cell to a plain number, or to "" if it states nothing; NULL if unchanged. */
static const char *cell_of_words(ms_arena *arena, const ms_cell_rule *rule,
                                 const char *text)
{
    if (rule->kind == MS_CELL_TEXT)
        return NULL;
    return rule->kind == MS_CELL_POSITIVE ? measure_of_words(arena, rule->name, text)
                                          : count_of_words(arena, rule->name, text);
}

/* Replaces the blanks of web pages (no-break, narrow no-break and thin spaces) by plain
 * ones. */
static const char *plain_blanks(ms_arena *arena, const char *text)
{
    static const char *const blanks[] = {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89"};
    if (strpbrk(text, "\xc2\xe2") == NULL)
        return text;
    char *out = ms_arena_strdup(arena, text), *end = out;
    for (const char *at = out; *at != '\0';) {
        size_t length = 0;
        for (size_t i = 0; i < sizeof blanks / sizeof *blanks && length == 0; i++)
            if (strncmp(at, blanks[i], strlen(blanks[i])) == 0)
                length = strlen(blanks[i]);
        *end++ = length > 0 ? ' ' : *at;
        at += length > 0 ? length : 1;
    }
    *end = '\0';
    return out;
}

ms_csv_row ms_pubrun_words_read(ms_arena *arena, const ms_cell_columns *found,
                                const ms_csv_row *row, const char **words,
                                const char **remark)
{
    ms_csv_row plain = *row;
    if (row->fault != NULL || row->num_cells != found->num_columns)
        return plain;
    const char **cells = MS_NEW_ARRAY(arena, row->num_cells, const char *);
    for (int i = 0; i < row->num_cells; i++)
        cells[i] = plain_blanks(arena, row->cells[i]);
    for (int i = 0; i < found->num_rules; i++) {
        const ms_cell_rule *rule = &found->rules[i];
        int place = found->place[i];
        const char *number = place < 0 ? NULL : cell_of_words(arena, rule, cells[place]);
        if (number == NULL)
            continue;
        if (strcmp(rule->name, "pp") == 0)
            *remark = strchr(cells[place], '(');
        if (*number != '\0') {
            *words =
                ms_arena_printf(arena, "%s%s%s \"%s\" read as %s",
                                *words != NULL ? *words : "", *words != NULL ? ", " : "",
                                rule->name, ms_cell_text(arena, cells[place]), number);
        }
        cells[place] = number;
    }
    plain.cells = cells;
    return plain;
}
