/* JSON documents and their values, the only user of cJSON. Documents use malloc, since
 * they are closed before the arena of their context. */
#include "base/json_priv.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)64 << 20)
/* 2^53: whole numbers up to it are exact in a double */
#define EXACT_INTEGERS 9007199254740992.0

/* Remembers the last child read in an array or object, a linked list in cJSON. */
typedef struct cursor {
    const cJSON *container;
    const cJSON *child;
    int index;
    int length;            /* number of children; -1: not counted yet */
    unsigned long used_at; /* counter of accesses, to replace the oldest cursor */
} cursor;

#define MAX_CURSORS 8
struct cursors {
    cursor cached[MAX_CURSORS];
    unsigned long num_uses;
};

struct ms_jdoc {
    char *name;
    char *text; /* source text, zero-terminated */
    cJSON *root;
    struct cursors *cursors;
    ms_json_fault bare_word; /* the first NaN or Infinity; message NULL: none */
};

static const cJSON *node_of(ms_jval value)
{
    return value.node;
}

/* ---- loading ---- */

void ms_json_close(ms_jdoc *doc)
{
    if (doc == NULL)
        return;
    cJSON_Delete(doc->root);
    free(doc->name);
    free(doc->text);
    free(doc->cursors);
    free(doc);
}

static ms_loc loc_at(const ms_jdoc *doc, size_t offset, const char *path)
{
    ms_loc loc = {.file = doc->name, .path = path};
    ms_json_position(doc->text, offset, &loc.line, &loc.column);
    return loc;
}

static int compare_keys(const void *a, const void *b)
{
    const cJSON *left = *(const cJSON *const *)a, *right = *(const cJSON *const *)b;
    return strcmp(left->string, right->string);
}

/* The first member whose key an earlier member has; NULL if all keys differ. */
static const cJSON *find_repeated(ms_ctx *cx, const cJSON *object)
{
    size_t count = (size_t)cJSON_GetArraySize(object), i = 0;
    const cJSON *repeated = NULL, *child;
    ms_arena_mark mark = ms_arena_save(cx->arena);
    const cJSON **members = MS_NEW_ARRAY(cx->arena, count, const cJSON *);
    cJSON_ArrayForEach (child, object) {
        members[i++] = child;
    }
    qsort(members, count, sizeof *members, compare_keys);
    for (i = 1; i < count && repeated == NULL; i++) {
        if (strcmp(members[i - 1]->string, members[i]->string) != 0)
            continue;
        for (child = members[i]->next; child != NULL; child = child->next)
            /* the later of two equal keys is the repetition */
            if (child == members[i - 1])
                repeated = child;
        if (repeated == NULL)
            repeated = members[i];
    }
    ms_arena_rewind(cx->arena, mark);
    return repeated;
}

static const char *child_path(ms_ctx *cx, const char *parent, const cJSON *child,
                              int index)
{
    if (child->string == NULL)
        return ms_arena_printf(cx->arena, "%s/%d", parent, index);
    /* JSON pointer (RFC 6901) writes '~' as ~0 and '/' as ~1 */
    const char *key = child->string;
    char *path = ms_arena_alloc(cx->arena, strlen(parent) + 2 * strlen(key) + 2);
    char *p = path + sprintf(path, "%s/", parent);
    for (; *key != '\0'; key++) {
        if (*key == '~' || *key == '/') {
            *p++ = '~';
            *p++ = *key == '~' ? '0' : '1';
        } else {
            *p++ = *key;
        }
    }
    return path;
}

/* Finds a node by counting nodes in text order; true if found, with *index its number. */
static bool find_node_index(const cJSON *node, const cJSON *target, size_t *index)
{
    if (node == target)
        return true;
    ++*index;
    const cJSON *child;
    cJSON_ArrayForEach (child, node) {
        if (find_node_index(child, target, index))
            return true;
    }
    return false;
}

static ms_loc loc_of(const ms_jdoc *doc, const cJSON *node, const char *path,
                     bool want_key)
{
    size_t index = 0;
    bool found = find_node_index(doc->root, node, &index);
    assert(found);
    const char *at = ms_json_find(doc->text, found ? index : 0, want_key);
    return loc_at(doc, (size_t)(at - doc->text), path);
}

static ms_status check_repeated(ms_ctx *cx, const ms_jdoc *doc, const cJSON *node,
                                const char *path)
{
    const cJSON *child;
    if (cJSON_IsObject(node)) {
        const cJSON *repeated = find_repeated(cx, node);
        if (repeated != NULL)
            return ms_fail(cx, MS_EINPUT,
                           loc_of(doc, repeated, child_path(cx, path, repeated, 0), true),
                           "key \"%s\" stands twice in one object", repeated->string);
    }
    int index = 0;
    cJSON_ArrayForEach (child, node) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        if (child->child != NULL)
            MS_TRY(check_repeated(cx, doc, child, child_path(cx, path, child, index)));
        ms_arena_rewind(cx->arena, mark);
        index++;
    }
    return MS_OK;
}

static void *allocate(size_t size)
{
    void *memory;
    while ((memory = calloc(1, size)) == NULL)
        ms_memory_exhausted(size);
    return memory;
}

/* Parses a text without bare words; NULL: memory is exhausted. */
static cJSON *parse_plain(const char *text, size_t length)
{
    /* cJSON notes the place of an error in a variable of all threads */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    cJSON *root = cJSON_ParseWithLength(text, length + 1);
    pthread_mutex_unlock(&lock);
    return root;
}

static ms_status parse_text(ms_ctx *cx, ms_jdoc *doc, size_t length)
{
    /* some editors put a byte order mark before UTF-8 text */
    static const char mark[] = "\xEF\xBB\xBF";
    size_t skip = strncmp(doc->text, mark, 3) == 0 ? 3 : 0;
    memmove(doc->text, doc->text + skip, length - skip + 1);
    length -= skip;
    ms_json_fault fault = ms_json_check(doc->text, length, &doc->bare_word);
    if (fault.message != NULL)
        return ms_fail(cx, MS_EINPUT, loc_at(doc, fault.offset, NULL), "%s",
                       fault.message);
    char *plain = NULL;
    if (doc->bare_word.message != NULL) {
        plain = allocate(2 * length + 1);
        ms_json_replace_bare_words(doc->text, plain);
    }
    while ((doc->root = plain == NULL ? parse_plain(doc->text, length)
                                      : parse_plain(plain, strlen(plain))) == NULL)
        ms_memory_exhausted(length); /* the text is valid */
    free(plain);
    return check_repeated(cx, doc, doc->root, "");
}

ms_status ms_json_require_strict(ms_ctx *cx, ms_jval root)
{
    const ms_json_fault *bare = &root.doc->bare_word;
    if (bare->message == NULL)
        return MS_OK;
    ms_loc loc = loc_at(root.doc, bare->offset, NULL);
    loc.file = ms_arena_strdup(cx->arena, loc.file);
    return ms_fail(cx, MS_EINPUT, loc, "%s", bare->message);
}

/* Makes a document that owns `text`; frees it on errors. */
static ms_status open_doc(ms_ctx *cx, const char *name, char *text, size_t length,
                          ms_jdoc **doc, ms_jval *root)
{
    ms_jdoc *opened = allocate(sizeof *opened);
    opened->name = allocate(strlen(name) + 1);
    memcpy(opened->name, name, strlen(name) + 1);
    opened->text = text;
    opened->cursors = allocate(sizeof *opened->cursors);
    ms_status status = parse_text(cx, opened, length);
    if (status != MS_OK) {
        ms_json_close(opened);
        return status;
    }
    *doc = opened;
    *root = (ms_jval){opened, opened->root, ""};
    return MS_OK;
}

static ms_status fail_too_large(ms_ctx *cx, const char *name)
{
    return ms_fail(cx, MS_EINPUT, (ms_loc){.file = name}, "larger than 64 MiB");
}

ms_status ms_json_parse_python(ms_ctx *cx, const char *name, const char *text,
                               size_t length, ms_jdoc **doc, ms_jval *root)
{
    *doc = NULL;
    if (length > MAX_FILE_BYTES)
        return fail_too_large(cx, name);
    char *copy = allocate(length + 1);
    if (length > 0)
        memcpy(copy, text, length);
    return open_doc(cx, name, copy, length, doc, root);
}

/* Reads the file, or just more than MAX_FILE_BYTES of it. NULL if memory is exhausted. */
static char *read_all(FILE *file, size_t *length)
{
    size_t capacity = (size_t)64 << 10;
    char *text = allocate(capacity + 1);
    *length = 0;
    for (;;) {
        *length += fread(text + *length, 1, capacity - *length, file);
        if (*length < capacity || *length > MAX_FILE_BYTES)
            break;
        capacity *= 2;
        char *grown = realloc(text, capacity + 1);
        if (grown == NULL) {
            free(text);
            return NULL;
        }
        text = grown;
    }
    text[*length] = '\0';
    return text;
}

ms_status ms_json_load_python(ms_ctx *cx, const char *path, ms_jdoc **doc, ms_jval *root)
{
    *doc = NULL;
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (file == NULL)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = name}, "cannot be opened: %s",
                       strerror(errno));
    size_t length;
    errno = 0;
    char *text = read_all(file, &length);
    int read_errno = text == NULL ? ENOMEM : ferror(file) ? errno : 0;
    if (!is_stdin)
        fclose(file);
    if (read_errno != 0) {
        free(text);
        return ms_fail(cx, MS_EIO, (ms_loc){.file = name}, "cannot be read: %s",
                       strerror(read_errno));
    }
    if (length > MAX_FILE_BYTES) {
        free(text);
        return fail_too_large(cx, name);
    }
    return open_doc(cx, name, text, length, doc, root);
}

/* Closes a document that was opened with bare words and has some. */
static ms_status close_unless_strict(ms_ctx *cx, ms_jdoc **doc, ms_jval root)
{
    ms_status status = ms_json_require_strict(cx, root);
    if (status != MS_OK) {
        ms_json_close(*doc);
        *doc = NULL;
    }
    return status;
}

ms_status ms_json_parse(ms_ctx *cx, const char *name, const char *text, size_t length,
                        ms_jdoc **doc, ms_jval *root)
{
    MS_TRY(ms_json_parse_python(cx, name, text, length, doc, root));
    return close_unless_strict(cx, doc, *root);
}

ms_status ms_json_load(ms_ctx *cx, const char *path, ms_jdoc **doc, ms_jval *root)
{
    MS_TRY(ms_json_load_python(cx, path, doc, root));
    return close_unless_strict(cx, doc, *root);
}

/* ---- one value ---- */

bool ms_json_is_null(ms_jval value)
{
    return cJSON_IsNull(node_of(value)) != 0;
}

bool ms_json_is_object(ms_jval value)
{
    return cJSON_IsObject(node_of(value)) != 0;
}

bool ms_json_is_array(ms_jval value)
{
    return cJSON_IsArray(node_of(value)) != 0;
}

bool ms_json_is_string(ms_jval value)
{
    return cJSON_IsString(node_of(value)) != 0;
}

bool ms_json_is_bool(ms_jval value)
{
    return cJSON_IsBool(node_of(value));
}

static bool is_number(ms_jval value)
{
    return cJSON_IsNumber(node_of(value)) != 0;
}

static ms_jval child_value(ms_ctx *cx, ms_jval parent, const cJSON *child, int index)
{
    return (ms_jval){parent.doc, child, child_path(cx, parent.path, child, index)};
}

bool ms_json_member(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out)
{
    if (!ms_json_is_object(object))
        return false;
    const cJSON *child = cJSON_GetObjectItemCaseSensitive(node_of(object), key);
    if (child == NULL)
        return false;
    *out = child_value(cx, object, child, 0);
    return true;
}

/* The cursor of an array or object; one without takes the cursor used least recently. */
static cursor *cursor_of(ms_jval container)
{
    cursor *all = container.doc->cursors->cached, *found = all;
    for (cursor *c = all; c < all + MAX_CURSORS; c++) {
        if (c->container == container.node) {
            found = c;
            break;
        }
        if (c->used_at < found->used_at)
            found = c;
    }
    if (found->container != container.node)
        *found = (cursor){.container = container.node,
                          .child = node_of(container)->child,
                          .length = -1};
    found->used_at = ++container.doc->cursors->num_uses;
    return found;
}

int ms_json_length(ms_jval container)
{
    cursor *at = cursor_of(container);
    if (at->length < 0)
        at->length = cJSON_GetArraySize(node_of(container));
    return at->length;
}

static const cJSON *child_at(ms_jval container, int index)
{
    cursor *last = cursor_of(container);
    assert(index >= 0);
    if (last->index > index) {
        last->child = node_of(container)->child;
        last->index = 0;
    }
    while (last->index < index && last->child != NULL) {
        last->child = last->child->next;
        last->index++;
    }
    assert(last->child != NULL);
    return last->child;
}

ms_jval ms_json_element(ms_ctx *cx, ms_jval array, int index)
{
    return child_value(cx, array, child_at(array, index), index);
}

ms_jval ms_json_entry(ms_ctx *cx, ms_jval object, int index, const char **key)
{
    const cJSON *child = child_at(object, index);
    *key = ms_arena_strdup(cx->arena, child->string);
    return child_value(cx, object, child, index);
}

/* The name of a value in messages: its key, its index, or "the document". */
static const char *name_of(ms_ctx *cx, ms_jval value)
{
    const cJSON *node = node_of(value);
    if (node->string != NULL)
        return ms_arena_printf(cx->arena, "\"%s\"", node->string);
    if (node == value.doc->root)
        return "the document";
    return ms_arena_printf(cx->arena, "element %s", strrchr(value.path, '/') + 1);
}

static const char *kind_of(ms_jval value)
{
    const cJSON *node = node_of(value);
    if (cJSON_IsNull(node))
        return "null";
    if (cJSON_IsBool(node))
        return "a boolean";
    if (cJSON_IsNumber(node))
        return "a number";
    if (cJSON_IsString(node))
        return "a string";
    return cJSON_IsArray(node) ? "an array" : "an object";
}

static ms_status fail_kind(ms_ctx *cx, ms_jval value, const char *wanted)
{
    return ms_json_fail(cx, value, "%s is %s, must be %s", name_of(cx, value),
                        kind_of(value), wanted);
}

ms_status ms_json_text(ms_ctx *cx, ms_jval value, const char **out)
{
    if (!ms_json_is_string(value))
        return fail_kind(cx, value, "a string");
    *out = ms_arena_strdup(cx->arena, node_of(value)->valuestring);
    return MS_OK;
}

ms_status ms_json_bool(ms_ctx *cx, ms_jval value, bool *out)
{
    if (!cJSON_IsBool(node_of(value)))
        return fail_kind(cx, value, "true or false");
    *out = cJSON_IsTrue(node_of(value)) != 0;
    return MS_OK;
}

static ms_status fail_range(ms_ctx *cx, ms_jval value, double low, double high)
{
    char is[32], from[32], to[32];
    const char *name = name_of(cx, value);
    ms_json_number_text(node_of(value)->valuedouble, is);
    if (!isfinite(node_of(value)->valuedouble))
        return ms_json_fail(cx, value, "%s is too large for a number", name);
    if (isfinite(low))
        ms_json_number_text(low, from);
    if (isfinite(high))
        ms_json_number_text(high, to);
    if (!isfinite(high))
        return ms_json_fail(cx, value, "%s is %s, must be at least %s", name, is, from);
    if (!isfinite(low))
        return ms_json_fail(cx, value, "%s is %s, must be at most %s", name, is, to);
    return ms_json_fail(cx, value, "%s is %s, must be between %s and %s", name, is, from,
                        to);
}

ms_status ms_json_number(ms_ctx *cx, ms_jval value, double low, double high, double *out)
{
    if (!is_number(value))
        return fail_kind(cx, value, "a number");
    double number = node_of(value)->valuedouble;
    if (!isfinite(number) || !(number >= low && number <= high))
        return fail_range(cx, value, low, high);
    *out = number;
    return MS_OK;
}

ms_status ms_json_integer(ms_ctx *cx, ms_jval value, long low, long high, long *out)
{
    if (!is_number(value))
        return fail_kind(cx, value, "a whole number");
    double number = node_of(value)->valuedouble;
    if (isfinite(number) && number != floor(number)) {
        char is[32];
        return ms_json_fail(cx, value, "%s is %s, must be a whole number",
                            name_of(cx, value), ms_json_number_text(number, is));
    }
    /* whole numbers above 2^53 are not exact in a double */
    double least = fmax((double)low, -EXACT_INTEGERS);
    double most = fmin((double)high, EXACT_INTEGERS);
    if (!isfinite(number) || number < least || number > most)
        return fail_range(cx, value, least, most);
    *out = (long)number;
    return MS_OK;
}

ms_status ms_json_quantity(ms_ctx *cx, ms_jval value, ms_unit unit, double *out)
{
    const char *example = ms_unit_example(unit);
    if (unit == MS_UNIT_COUNT && is_number(value))
        return ms_json_number(cx, value, 0.0, INFINITY, out);
    if (is_number(value)) {
        char is[32];
        double number = node_of(value)->valuedouble;
        ms_json_fail(cx, value, "%s is a number without a unit%s%s", name_of(cx, value),
                     isfinite(number) ? ": " : "",
                     isfinite(number) ? ms_json_number_text(number, is) : "");
        return ms_hint(cx, "write a string with the unit, for instance \"%s\"", example);
    }
    if (!ms_json_is_string(value))
        return fail_kind(cx, value, "a string with a unit");
    if (ms_parse_quantity(node_of(value)->valuestring, unit, out))
        return MS_OK;
    ms_json_fail(cx, value, "%s is \"%s\", must be a quantity such as \"%s\"",
                 name_of(cx, value), node_of(value)->valuestring, example);
    return MS_EINPUT;
}

ms_loc ms_json_loc(ms_ctx *cx, ms_jval value)
{
    if (value.doc == NULL)
        return MS_NOWHERE;
    ms_loc loc = loc_of(value.doc, node_of(value), value.path, false);
    /* copied: the error outlives the document */
    loc.file = ms_arena_strdup(cx->arena, loc.file);
    return loc;
}

ms_loc ms_json_key_loc(ms_ctx *cx, ms_jval object, const char *key)
{
    ms_jval member;
    if (object.doc == NULL || !ms_json_member(cx, object, key, &member))
        return ms_json_loc(cx, object);
    ms_loc loc = loc_of(member.doc, node_of(member), member.path, true);
    loc.file = ms_arena_strdup(cx->arena, loc.file);
    return loc;
}

ms_status ms_json_fail(ms_ctx *cx, ms_jval value, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return ms_fail(cx, MS_EINPUT, ms_json_loc(cx, value), "%s", message);
}
