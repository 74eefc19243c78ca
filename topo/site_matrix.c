/* Reads the matrix of `nvidia-smi topo -m`: columns GPU0.. and NICs, of older drivers by
 * their own names; ANSI escapes, affinities behind the devices, and a legend of NICs. */
#include "topo/site_priv.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS (2 * MS_SITE_MAX_DEVICES)

typedef struct cell {
    const char *text; /* zero-terminated copy */
    int column;
} cell;

typedef struct matrix {
    ms_site_reader *r;
    ms_lines lines;
    const char *names[MAX_COLUMNS];
    int num, num_gpus;
    int *values; /* (num, num): NVLinks above 0; -ms_site_path below; 0: itself */
    bool *has_row;
} matrix;

static ms_status fail(matrix *m, int column, const char *message)
{
    return ms_fail(m->r->cx, MS_EINPUT, ms_site_loc(m->r, m->lines.number, column), "%s",
                   message);
}

/* The length of an ANSI escape ("ESC[4m") at a text; 0: none is there. */
static size_t escape_length(const char *text, size_t length)
{
    size_t n = 2;
    if (length < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (n < length && strchr("0123456789;", text[n]) != NULL && text[n] != '\0')
        n++;
    return n < length ? n + 1 : 0;
}

/* Splits the next line at blanks and tabs, without escapes; at most `most` cells, the rest
 * of the line is skipped. Cells that it lacks are empty. Returns -1 at the end of the text. */
static int next_cells(matrix *m, cell *cells, int most)
{
    const char *line;
    size_t length;
    int num = 0;
    if (!ms_lines_next(&m->lines, &line, &length))
        return -1;
    for (int i = 0; i < most; i++)
        cells[i] = (cell){"", 1};
    for (size_t i = 0; i < length && num < most;) {
        char word[64];
        size_t used = 0, start = i, skipped = escape_length(line + i, length - i);
        if (skipped > 0 || line[i] == ' ' || line[i] == '\t') {
            i += skipped > 0 ? skipped : 1;
            continue;
        }
        while (i < length && line[i] != ' ' && line[i] != '\t' &&
               escape_length(line + i, length - i) == 0) {
            if (used + 1 < sizeof word)
                word[used++] = line[i];
            i++;
        }
        cells[num++] =
            (cell){ms_arena_strndup(m->r->cx->arena, word, used), (int)start + 1};
    }
    return num;
}

/* Whether a word is "GPU" and a number. */
static bool is_gpu(const char *word)
{
    return strncmp(word, "GPU", 3) == 0 && word[3] != '\0' &&
           word[3 + strspn(word + 3, "0123456789")] == '\0';
}

/* Reads up to the line of titles, whose first word is a GPU. Devices end where titles of
 * two words begin: "CPU Affinity". */
static ms_status read_titles(matrix *m)
{
    cell cells[MAX_COLUMNS + 1];
    int num;
    do
        num = next_cells(m, cells, MAX_COLUMNS + 1);
    while (num == 0 || (num > 0 && !is_gpu(cells[0].text)));
    if (num < 0) {
        ms_fail(m->r->cx, MS_EINPUT, ms_site_loc(m->r, 1, 1),
                "no line of titles \"GPU0 GPU1 ...\" was found");
        return ms_hint(m->r->cx, "nvidia-smi topo -m > topo.txt");
    }
    for (int i = 0;
         i < num && strcmp(cells[i].text, "CPU") != 0 &&
         strcmp(cells[i].text, "NUMA") != 0 && strcmp(cells[i].text, "GPU") != 0;
         i++) {
        bool gpu = is_gpu(cells[i].text);
        if (gpu && m->num_gpus < m->num)
            return fail(m, cells[i].column, "a GPU stands behind a NIC");
        for (int j = 0; j < m->num; j++)
            if (strcmp(m->names[j], cells[i].text) == 0)
                return fail(m, cells[i].column, "a device stands twice");
        m->num_gpus += gpu;
        m->names[m->num++] = cells[i].text;
        if (m->num_gpus > MS_SITE_MAX_DEVICES ||
            m->num - m->num_gpus > MS_SITE_MAX_DEVICES)
            return fail(m, cells[i].column, "a node has at most 128 GPUs and 128 NICs");
    }
    return MS_OK;
}

/* Reads one cell of the matrix: "X", "NV18" or a class of paths. */
static ms_status read_value(matrix *m, const cell *c, int row, int column)
{
    int *value = &m->values[row * m->num + column];
    int path = ms_choice_find(c->text, ms_site_path_names);
    if ((path == 0) != (row == column))
        return fail(m, c->column, "X stands where a device meets itself, and only there");
    if (path >= 0) {
        *value = -path;
        return MS_OK;
    }
    char *end = NULL;
    long links = strncmp(c->text, "NV", 2) == 0 ? strtol(c->text + 2, &end, 10) : 0;
    if (links < 1 || links > 1000 || *end != '\0') {
        return fail(m, c->column,
                    ms_arena_printf(m->r->cx->arena,
                                    "\"%s\" is no connection: NV and a number, PIX, PXB, "
                                    "PHB, NODE, SYS, or X",
                                    c->text));
    }
    *value = (int)links;
    return MS_OK;
}

static int find_device(const matrix *m, const char *name)
{
    for (int i = 0; i < m->num; i++)
        if (strcmp(m->names[i], name) == 0)
            return i;
    return -1;
}

static ms_status read_row(matrix *m, const cell *cells, int num, int row)
{
    if (m->has_row[row])
        return fail(m, cells[0].column, "a device has two rows");
    if (num < m->num + 1)
        return fail(m, cells[num - 1].column,
                    ms_arena_printf(m->r->cx->arena, "%s has %d cells, must have %d",
                                    m->names[row], num - 1, m->num));
    m->has_row[row] = true;
    for (int i = 0; i < m->num; i++) {
        MS_TRY(read_value(m, &cells[i + 1], row, i));
        if (m->has_row[i] && m->values[row * m->num + i] != m->values[i * m->num + row]) {
            return fail(m, cells[i + 1].column,
                        ms_arena_printf(m->r->cx->arena, "%s to %s is unlike %s to %s",
                                        m->names[row], m->names[i], m->names[i],
                                        m->names[row]));
        }
    }
    return MS_OK;
}

/* Rows of devices, then the legend, whose lines "NIC0: mlx5_0" give names. */
static ms_status read_rows(matrix *m)
{
    cell cells[MAX_COLUMNS + 1];
    int num;
    const char *names[MAX_COLUMNS];
    memcpy(names, m->names, sizeof names);
    while ((num = next_cells(m, cells, m->num + 1)) >= 0) {
        if (num == 0)
            continue;
        int row = find_device(m, cells[0].text);
        size_t length = strlen(cells[0].text);
        if (row >= 0) {
            MS_TRY(read_row(m, cells, num, row));
        } else if (num == 2 && length > 0 && cells[0].text[length - 1] == ':') {
            row = find_device(
                m, ms_arena_strndup(m->r->cx->arena, cells[0].text, length - 1));
            if (row >= m->num_gpus)
                names[row] = cells[1].text;
        }
    }
    for (int i = 0; i < m->num; i++) {
        if (!m->has_row[i])
            return fail(m, 1,
                        ms_arena_printf(m->r->cx->arena, "the row of %s is missing",
                                        m->names[i]));
    }
    memcpy(m->names, names, sizeof names);
    return MS_OK;
}

static ms_status apply(const matrix *m)
{
    ms_site_node node;
    ms_site_node_open(m->r->cx->arena, m->num_gpus, m->num - m->num_gpus, &node);
    for (int i = 0; i < m->num_gpus; i++) {
        for (int j = 0; j < m->num; j++) {
            int value = m->values[i * m->num + j];
            if (j < m->num_gpus)
                node.links[i * m->num_gpus + j] = value > 0 ? value : 0;
            else
                node.paths[i * node.num_nics + j - m->num_gpus] =
                    value < 0 ? -value : MS_PATH_PIX;
        }
    }
    for (int n = 0; n < node.num_nics; n++)
        node.nics[n] = m->names[m->num_gpus + n];
    return ms_site_node_apply(m->r, &node);
}

ms_status ms_site_read_matrix(ms_site_reader *r, const char *text, size_t length)
{
    matrix m = {.r = r, .lines = {.text = text, .length = length}};
    MS_TRY(read_titles(&m));
    m.values = MS_NEW_ARRAY(r->cx->arena, m.num * m.num, int);
    m.has_row = MS_NEW_ARRAY(r->cx->arena, m.num, bool);
    MS_TRY(read_rows(&m));
    return apply(&m);
}
