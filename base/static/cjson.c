/* The functions of cJSON that base/json.c uses, for static linking where only a shared
 * cJSON is installed. Texts are valid (base/json_check.c): only memory can run out. */
#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

void cJSON_Delete(cJSON *item)
{
    while (item != NULL) {
        cJSON *next = item->next;
        cJSON_Delete(item->child);
        free(item->valuestring);
        free(item->string);
        free(item);
        item = next;
    }
}

/* ---- texts ---- */

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The number that four hexadecimal digits stand for. */
static unsigned hex_value(const char *digits)
{
    const char four[5] = {digits[0], digits[1], digits[2], digits[3], '\0'};
    const int base = 16;
    return (unsigned)strtoul(four, NULL, base);
}

/* UTF-8 (RFC 3629) of a code point; returns its number of bytes. */
static size_t put_utf8(char *to, unsigned code)
{
    const size_t num = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = num; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(first[num] | code);
    return num;
}

/* Appends the character of an escape, read behind "\u", to *to in UTF-8 (RFC 8259, 7). */
static const char *read_code(const char *at, char **to)
{
    unsigned code = hex_value(at);
    at += 4;
    if (code >= 0xD800 && code <= 0xDBFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (hex_value(at + 2) - 0xDC00);
        at += 6;
    }
    *to += put_utf8(*to, code);
    return at;
}

/* Reads a string from its opening quote into *out (NULL: no memory); returns its end. */
static const char *read_string(const char *at, char **out)
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    const char *end = at + 1;
    while (*end != '"')
        end += *end == '\\' ? 2 : 1;
    char *to = malloc((size_t)(end - at)); /* an escape is no shorter than its bytes */
    *out = to;
    for (at++; to != NULL && at < end;) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        const char *letter = strchr(letters, at[1]);
        if (at[1] == 'u') {
            at = read_code(at + 2, &to);
            continue;
        }
        *to++ = letter != NULL ? meanings[letter - letters] : at[1];
        at += 2;
    }
    if (to != NULL)
        *to = '\0';
    return end + 1;
}

/* ---- values ---- */

static const char *read_value(const char *at, cJSON *item);

/* Reads elements or members from behind the bracket that opens them; NULL: no memory. */
static const char *read_children(const char *at, cJSON *parent, char closing)
{
    cJSON *last = NULL;
    at = skip_space(at);
    while (*at != closing) {
        cJSON *child = calloc(1, sizeof *child);
        if (child == NULL)
            return NULL;
        if (last == NULL)
            parent->child = child;
        else
            last->next = child;
        last = child;
        if (closing == '}') {
            at = skip_space(read_string(at, &child->string)) + 1;
            if (child->string == NULL)
                return NULL;
        }
        at = read_value(skip_space(at), child);
        if (at == NULL)
            return NULL;
        at = skip_space(at);
        if (*at == ',')
            at = skip_space(at + 1);
    }
    return at + 1;
}

/* Reads one value into `item`; returns the text behind it, NULL: no memory. */
static const char *read_value(const char *at, cJSON *item)
{
    static const struct {
        const char *word;
        int type;
    } words[] = {{"null", cJSON_NULL}, {"true", cJSON_True}, {"false", cJSON_False}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (*at != words[i].word[0])
            continue;
        item->type = words[i].type;
        return at + strlen(words[i].word);
    }
    if (*at == '{' || *at == '[') {
        item->type = *at == '{' ? cJSON_Object : cJSON_Array;
        return read_children(at + 1, item, *at == '{' ? '}' : ']');
    }
    if (*at == '"') {
        item->type = cJSON_String;
        at = read_string(at, &item->valuestring);
        return item->valuestring != NULL ? at : NULL;
    }
    char *end;
    item->type = cJSON_Number;
    item->valuedouble = strtod(at, &end);
    return end;
}

cJSON *cJSON_ParseWithLength(const char *value, size_t buffer_length)
{
    (void)buffer_length; /* the text ends with a zero byte */
    cJSON *root = calloc(1, sizeof *root);
    if (root == NULL || read_value(skip_space(value), root) != NULL)
        return root;
    cJSON_Delete(root);
    return NULL;
}

/* ---- questions ---- */

static cJSON_bool is_type(const cJSON *item, int types)
{
    return item != NULL && (item->type & types) != 0;
}

cJSON_bool cJSON_IsNull(const cJSON *const item)
{
    return is_type(item, cJSON_NULL);
}

cJSON_bool cJSON_IsBool(const cJSON *const item)
{
    return is_type(item, cJSON_True | cJSON_False);
}

cJSON_bool cJSON_IsTrue(const cJSON *const item)
{
    return is_type(item, cJSON_True);
}

cJSON_bool cJSON_IsNumber(const cJSON *const item)
{
    return is_type(item, cJSON_Number);
}

cJSON_bool cJSON_IsString(const cJSON *const item)
{
    return is_type(item, cJSON_String);
}

cJSON_bool cJSON_IsArray(const cJSON *const item)
{
    return is_type(item, cJSON_Array);
}

cJSON_bool cJSON_IsObject(const cJSON *const item)
{
    return is_type(item, cJSON_Object);
}

int cJSON_GetArraySize(const cJSON *array)
{
    int size = 0;
    for (const cJSON *child = array->child; child != NULL; child = child->next)
        size++;
    return size;
}

cJSON *cJSON_GetObjectItemCaseSensitive(const cJSON *const object,
                                        const char *const string)
{
    for (cJSON *child = object->child; child != NULL; child = child->next)
        if (child->string != NULL && strcmp(child->string, string) == 0)
            return child;
    return NULL;
}
