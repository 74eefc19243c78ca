/* Reads meshes from text: every axis is checked before the product of sizes. */
#include "topo/mesh_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 32
#define REST     (-1)

typedef struct parsed {
    const char *text;
    bool takes_rest;
    int num_axes;
    const char *names[MS_MAX_AXES];
    long sizes[MS_MAX_AXES];
} parsed;

static char *trimmed(ms_arena *arena, const char *text, size_t length)
{
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return ms_arena_strndup(arena, text, length);
}

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char others[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return strspn(text, letters) > 0 && strspn(text, others) == strlen(text) &&
           strlen(text) <= MAX_NAME;
}

static bool is_size(const char *text, long *size)
{
    if (strcmp(text, "-1") == 0) {
        *size = REST;
        return true;
    }
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *size = strtol(text, NULL, 10);
    return errno == 0 && *size >= 1;
}

static ms_status refuse_item(ms_ctx *cx, const parsed *mesh, const char *item)
{
    ms_status status =
        item[0] == '\0'
            ? ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                      "--mesh is \"%s\", where an axis is missing", mesh->text)
            : ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                      "--mesh is \"%s\", where \"%s\" is no axis with a size", mesh->text,
                      item);
    ms_hint(cx, "names and sizes outer to inner, for example pp=2,dp_shard=4,tp=8");
    return status;
}

static ms_status refuse_name(ms_ctx *cx, const char *name)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--mesh names an axis \"%s\"", name);
    return ms_hint(
        cx, "a name is a letter, then letters, digits, _ and -, at most %d characters",
        MAX_NAME);
}

static ms_status read_item(ms_ctx *cx, parsed *mesh, const char *item)
{
    const char *equals = strchr(item, '=');
    if (equals == NULL)
        return refuse_item(cx, mesh, item);
    const char *name = trimmed(cx->arena, item, (size_t)(equals - item));
    const char *value = trimmed(cx->arena, equals + 1, strlen(equals + 1));
    if (!is_name(name))
        return refuse_name(cx, name);
    for (int i = 0; i < mesh->num_axes; i++)
        if (strcmp(mesh->names[i], name) == 0)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--mesh names the axis %s twice",
                           name);
    if (mesh->num_axes == MS_MAX_AXES)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--mesh is \"%s\", which has more than %d axes", mesh->text,
                       MS_MAX_AXES);
    long *size = &mesh->sizes[mesh->num_axes];
    if (!is_size(value, size) || (*size == REST && !mesh->takes_rest)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--mesh gives the axis %s the size \"%s\"",
                name, value);
        return ms_hint(cx, "a whole number from 1%s",
                       mesh->takes_rest ? ", or -1 for the rest of --gpus" : "");
    }
    mesh->names[mesh->num_axes++] = name;
    return MS_OK;
}

static ms_status read_items(ms_ctx *cx, parsed *mesh)
{
    const char *rest = mesh->text;
    ms_status status = MS_OK;
    while (rest != NULL && status == MS_OK) {
        size_t length = strcspn(rest, ",");
        status = read_item(cx, mesh, trimmed(cx->arena, rest, length));
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return status;
}

/* ---- the product ---- */

/* Product of all sizes except -1; *rest: index of the axis with size -1, or -1. */
static ms_status multiply(ms_ctx *cx, const parsed *mesh, long most, int *rest,
                          long *product)
{
    *rest = -1;
    *product = 1;
    for (int i = 0; i < mesh->num_axes; i++) {
        if (mesh->sizes[i] == REST && *rest >= 0)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "--mesh asks for the rest twice: %s=-1 and %s=-1",
                           mesh->names[*rest], mesh->names[i]);
        if (mesh->sizes[i] == REST) {
            *rest = i;
        } else if (__builtin_mul_overflow(*product, mesh->sizes[i], product) ||
                   *product > most) {
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "--mesh is \"%s\", which has more than %ld ranks", mesh->text,
                           most);
        }
    }
    return MS_OK;
}

static ms_status take_rest(ms_ctx *cx, parsed *mesh, int rest, long product,
                           long num_ranks)
{
    ms_status status;
    if (num_ranks == 0) {
        status =
            ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                    "%s=-1 is the rest of --gpus, which is not given", mesh->names[rest]);
        ms_hint(cx, "for example --gpus %ld", 8 * product);
        return status;
    }
    if (num_ranks % product == 0) {
        mesh->sizes[rest] = num_ranks / product;
        return MS_OK;
    }
    status = ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                     "%s=-1 is the rest of %ld GPUs, but the other axes have %ld ranks, "
                     "which do not divide them",
                     mesh->names[rest], num_ranks, product);
    long below = num_ranks / product * product;
    if (below > 0)
        ms_hint(cx, "--gpus %ld or --gpus %ld fits these axes", below, below + product);
    else
        ms_hint(cx, "these axes need at least --gpus %ld", product);
    return status;
}

static ms_status check_product(ms_ctx *cx, const parsed *mesh, long product,
                               long num_ranks)
{
    if (num_ranks == 0 || product == num_ranks)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--mesh is \"%s\" = %ld ranks, but --gpus is %ld",
            mesh->text, product, num_ranks);
    return ms_hint(cx, "leave out --gpus, or give one axis the size -1: the rest");
}

ms_status ms_mesh_parse(ms_ctx *cx, const char *text, const ms_mesh_limits *limits,
                        ms_mesh *out)
{
    parsed mesh = {.text = text, .takes_rest = !limits->takes_no_rest};
    int rest;
    long product;
    MS_TRY(read_items(cx, &mesh));
    MS_TRY(multiply(cx, &mesh, limits->most_ranks, &rest, &product));
    if (rest >= 0)
        MS_TRY(take_rest(cx, &mesh, rest, product, limits->num_ranks));
    else
        MS_TRY(check_product(cx, &mesh, product, limits->num_ranks));
    *out = ms_mesh_make(mesh.names, mesh.sizes, mesh.num_axes);
    return MS_OK;
}

char *ms_mesh_text(ms_arena *arena, const ms_mesh *mesh)
{
    char *text = ms_arena_strdup(arena, "");
    for (int i = 0; i < mesh->num_axes; i++)
        text = ms_arena_printf(arena, "%s%s%s %ld", text, i == 0 ? "" : " x ",
                               mesh->axes[i].name, mesh->axes[i].size);
    return text;
}
