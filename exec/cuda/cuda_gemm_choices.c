#include "exec/cuda/cuda_gemm_choices.h"

#include "base/arena.h"
#include "exec/core/scalar.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* Another number once candidates of a GEMM change without a new version of cuBLASLt:
 * settings of its heuristic (vendor_cublaslt.c). */
#define SCHEMA         "meshsim.gemm-algorithms/1"
#define MOST_ELEMENTS  1e15
#define MOST_ALIGNMENT 256
#define FIRST_CAPACITY 64

struct ms_cuda_gemm_choices {
    pthread_mutex_t lock;
    ms_arena *arena;
    bool times;
    ms_cuda_gemm_choice *rows;
    int num, room, num_read;
};

/* ---- reading ---- */

/* A row of the file. */
typedef struct file_row {
    ms_cuda_gemm_choice choice;
    int type, type_b, result;
    bool transpose_a, transpose_b, add, fast;
} file_row;

#define AT(member) offsetof(file_row, member)
#define LONG(name, member, least, most)                                                  \
    {                                                                                    \
        .kind = MS_FIELD_INTEGER, .key = (name), .offset = AT(choice.member),            \
        .required = true, .low = (least), .high = (most)                                 \
    }
#define SIZE(member)      LONG(#member, key.member, 1, MOST_ELEMENTS)
#define STRIDE(member)    LONG(#member, key.member, 0, MOST_ELEMENTS)
#define ALIGNMENT(member) LONG(#member, key.member, 1, MOST_ALIGNMENT)
#define SCALAR(member)                                                                   \
    {                                                                                    \
        .kind = MS_FIELD_CHOICE, .key = #member, .offset = AT(member), .required = true, \
        .choices = ms_scalar_names                                                       \
    }
#define SWITCH(member)                                                                   \
    {                                                                                    \
        .kind = MS_FIELD_BOOL, .key = #member, .offset = AT(member), .required = true    \
    }
#define SECONDS(member)                                                                  \
    {                                                                                    \
        .kind = MS_FIELD_NUMBER, .key = #member, .offset = AT(choice.member),            \
        .required = true, .low = 0, .high = INFINITY                                     \
    }

static const ms_field row_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "device",
     .offset = AT(choice.device),
     .required = true},
    LONG("cublaslt_version", library_version, 1, MOST_ELEMENTS),
    SIZE(m),
    SIZE(n),
    SIZE(k),
    SIZE(ld_a),
    SIZE(ld_b),
    SIZE(ld_c),
    SIZE(num_batch),
    STRIDE(stride_a),
    STRIDE(stride_b),
    STRIDE(stride_c),
    ALIGNMENT(align_a),
    ALIGNMENT(align_b),
    ALIGNMENT(align_c),
    SCALAR(type),
    SCALAR(type_b),
    SCALAR(result),
    SWITCH(transpose_a),
    SWITCH(transpose_b),
    SWITCH(add),
    SWITCH(fast),
    LONG("candidate", candidate, 0, MS_CUDA_GEMM_CANDIDATES - 1),
    SECONDS(time_s),
    SECONDS(first_s),
    {0},
};

typedef struct file {
    const char *schema;
    ms_list rows;
} file;

static const ms_field file_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "schema",
     .offset = offsetof(file, schema),
     .required = true},
    {.kind = MS_FIELD_LIST,
     .key = "gemms",
     .offset = offsetof(file, rows),
     .required = true,
     .element = row_fields,
     .element_bytes = sizeof(file_row)},
    {0},
};

static ms_cuda_gemm_choices *make(bool times)
{
    ms_arena *arena = ms_arena_open();
    ms_cuda_gemm_choices *c = MS_NEW(arena, ms_cuda_gemm_choices);
    *c = (ms_cuda_gemm_choices){.arena = arena, .times = times};
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static ms_status read_rows(ms_ctx *cx, ms_jval root, ms_cuda_gemm_choices *to)
{
    file read = {0};
    MS_TRY(ms_json_read(cx, root, file_fields, &read));
    if (strcmp(read.schema, SCHEMA) != 0)
        return ms_json_fail(cx, root, "schema is \"%s\", must be \"" SCHEMA "\"",
                            read.schema);
    const file_row *rows = read.rows.rows;
    for (int i = 0; i < read.rows.num_rows; i++) {
        ms_cuda_gemm_choice choice = rows[i].choice;
        choice.key.type = rows[i].type;
        choice.key.type_b = rows[i].type_b;
        choice.key.result = rows[i].result;
        choice.key.transpose_a = rows[i].transpose_a;
        choice.key.transpose_b = rows[i].transpose_b;
        choice.key.add = rows[i].add;
        choice.key.fast = rows[i].fast;
        (void)ms_cuda_gemm_choices_add(to, &choice);
    }
    to->num_read = to->num;
    return MS_OK;
}

/* Makes the table of a parsed document, and closes the document. */
static ms_status table_of(ms_ctx *cx, ms_jdoc *doc, ms_jval root, bool times,
                          ms_cuda_gemm_choices **out)
{
    *out = make(times);
    ms_status status = read_rows(cx, root, *out);
    ms_json_close(doc);
    if (status == MS_OK)
        return MS_OK;
    ms_cuda_gemm_choices_close(*out);
    *out = NULL;
    return ms_hint(cx, "remove the file: algorithms are then timed anew");
}

ms_status ms_cuda_gemm_choices_parse(ms_ctx *cx, const char *name, const char *text,
                                     size_t length, ms_cuda_gemm_choices **out)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, name, text, length, &doc, &root));
    return table_of(cx, doc, root, false, out);
}

ms_status ms_cuda_gemm_choices_open(ms_ctx *cx, const char *path, bool times,
                                    ms_cuda_gemm_choices **out)
{
    struct stat info;
    ms_jdoc *doc;
    ms_jval root;
    if (stat(path, &info) != 0 && errno == ENOENT) {
        *out = make(times);
        return MS_OK;
    }
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    return table_of(cx, doc, root, times, out);
}

void ms_cuda_gemm_choices_close(ms_cuda_gemm_choices *c)
{
    if (c == NULL)
        return;
    pthread_mutex_destroy(&c->lock);
    ms_arena_close(c->arena);
}

/* ---- using ---- */

bool ms_cuda_gemm_choices_times(const ms_cuda_gemm_choices *c)
{
    return c->times;
}

static ms_cuda_gemm_choice *find(const ms_cuda_gemm_choices *c,
                                 const ms_cuda_gemm_choice *like)
{
    for (int i = 0; i < c->num; i++) {
        ms_cuda_gemm_choice *row = &c->rows[i];
        if (memcmp(&row->key, &like->key, sizeof like->key) == 0 &&
            row->library_version == like->library_version &&
            strcmp(row->device, like->device) == 0)
            return row;
    }
    return NULL;
}

bool ms_cuda_gemm_choices_find(ms_cuda_gemm_choices *c, const ms_cuda_gemm_choice *like,
                               ms_cuda_gemm_choice *out)
{
    pthread_mutex_lock(&c->lock);
    const ms_cuda_gemm_choice *found = find(c, like);
    if (found != NULL)
        *out = *found;
    pthread_mutex_unlock(&c->lock);
    return found != NULL;
}

ms_cuda_gemm_choice ms_cuda_gemm_choices_add(ms_cuda_gemm_choices *c,
                                             const ms_cuda_gemm_choice *choice)
{
    pthread_mutex_lock(&c->lock);
    ms_cuda_gemm_choice *stands = find(c, choice);
    if (stands == NULL) {
        MS_MAKE_ROOM(c->arena, c->rows, c->num, c->room, FIRST_CAPACITY);
        stands = &c->rows[c->num++];
        *stands = *choice;
        stands->device = ms_arena_strdup(c->arena, choice->device);
    }
    ms_cuda_gemm_choice found = *stands;
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* ---- writing ---- */

long ms_cuda_gemm_choices_num_new(const ms_cuda_gemm_choices *c)
{
    long num = 0;
    for (int i = c->num_read; i < c->num; i++)
        num += !isnan(c->rows[i].time_s);
    return num;
}

static void write_field(ms_jout *out, const ms_field *field, const file_row *row)
{
    const unsigned char *at = (const unsigned char *)row + field->offset;
    long number;
    int index;
    bool on;
    const char *text;
    double seconds;
    switch (field->kind) {
    case MS_FIELD_INTEGER:
        memcpy(&number, at, sizeof number);
        ms_jout_number_field(out, field->key, (double)number);
        break;
    case MS_FIELD_CHOICE:
        memcpy(&index, at, sizeof index);
        ms_jout_text_field(out, field->key, field->choices[index]);
        break;
    case MS_FIELD_BOOL:
        memcpy(&on, at, sizeof on);
        ms_jout_bool_field(out, field->key, on);
        break;
    case MS_FIELD_TEXT:
        memcpy(&text, at, sizeof text);
        ms_jout_text_field(out, field->key, text);
        break;
    case MS_FIELD_NUMBER:
        memcpy(&seconds, at, sizeof seconds);
        ms_jout_number_field(out, field->key, seconds);
        break;
    case MS_FIELD_END:
    case MS_FIELD_QUANTITY:
    case MS_FIELD_LIST:
    case MS_FIELD_ANY:
        break;
    }
}

void ms_cuda_gemm_choices_write(const ms_cuda_gemm_choices *c, ms_jout *out)
{
    out->line_depth = 2;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", SCHEMA);
    ms_jout_begin_array_field(out, "gemms");
    for (int i = 0; i < c->num; i++) {
        const ms_cuda_gemm_key *key = &c->rows[i].key;
        const file_row row = {.choice = c->rows[i],
                              .type = (int)key->type,
                              .type_b = (int)key->type_b,
                              .result = (int)key->result,
                              .transpose_a = key->transpose_a != 0,
                              .transpose_b = key->transpose_b != 0,
                              .add = key->add != 0,
                              .fast = key->fast != 0};
        if (isnan(row.choice.time_s))
            continue;
        ms_jout_begin_object(out);
        for (const ms_field *field = row_fields; field->kind != MS_FIELD_END; field++)
            write_field(out, field, &row);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
