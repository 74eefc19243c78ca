#include "topo/site_xml.h"

#include <limits.h>
#include <string.h>

const char *ms_xml_attribute(const ms_xml_element *element, const char *name)
{
    for (const char *const *a = element->attributes; *a != NULL; a += 2)
        if (strcmp(a[0], name) == 0)
            return a[1];
    return NULL;
}

#ifdef MS_WITH_EXPAT

#include <expat.h>

const bool ms_xml_is_built = true;

typedef struct reader {
    ms_ctx *cx;
    const char *name;
    XML_Parser parser;
    ms_xml *out;
    int open, depth; /* the innermost open element, and how many are open */
    ms_status status;
} reader;

static ms_loc place(const reader *r)
{
    return (ms_loc){.file = r->name,
                    .line = (int)XML_GetCurrentLineNumber(r->parser),
                    .column = (int)XML_GetCurrentColumnNumber(r->parser) + 1};
}

static void stop(reader *r, const char *message)
{
    if (r->status == MS_OK)
        r->status = ms_fail(r->cx, MS_EINPUT, place(r), "%s", message);
    XML_StopParser(r->parser, XML_FALSE);
}

/* A copy of an element's attributes, which expat keeps only during its call. */
static const char *const *copy_attributes(const reader *r, const char *const *from)
{
    int num = 0;
    while (from[num] != NULL)
        num++;
    const char **copy = MS_NEW_ARRAY(r->cx->arena, num + 1, const char *);
    for (int i = 0; i < num; i++)
        copy[i] = ms_arena_strdup(r->cx->arena, from[i]);
    return copy;
}

static void XMLCALL on_start(void *user, const XML_Char *name,
                             const XML_Char **attributes)
{
    reader *r = user;
    ms_xml *x = r->out;
    ms_loc at = place(r);
    if (r->status != MS_OK)
        return;
    if (x->num == MS_XML_MAX_ELEMENTS || r->depth == MS_XML_MAX_DEPTH) {
        stop(r, x->num == MS_XML_MAX_ELEMENTS ? "more than 65536 elements"
                                              : "more than 64 levels of elements");
        return;
    }
    MS_MAKE_ROOM(r->cx->arena, x->elements, x->num, x->capacity, 64);
    if (r->open >= 0)
        x->elements[r->open].num_children++;
    x->elements[x->num] = (ms_xml_element){.name = ms_arena_strdup(r->cx->arena, name),
                                           .attributes = copy_attributes(r, attributes),
                                           .parent = r->open,
                                           .line = at.line,
                                           .column = at.column};
    r->open = x->num++;
    r->depth++;
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    reader *r = user;
    (void)name;
    if (r->status != MS_OK)
        return;
    r->open = r->out->elements[r->open].parent;
    r->depth--;
}

static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int has_subset)
{
    (void)name, (void)system, (void)public, (void)has_subset;
    stop(user, "a DOCTYPE is not read");
}

ms_status ms_xml_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                      ms_xml *out)
{
    *out = (ms_xml){0};
    if (length > INT_MAX)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = name}, "the file is too large");
    reader r = {.cx = cx, .name = name, .out = out, .open = -1, .status = MS_OK};
    r.parser = XML_ParserCreate(NULL);
    if (r.parser == NULL)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = name}, "memory is exhausted");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    if (XML_Parse(r.parser, text, (int)length, 1) != XML_STATUS_OK && r.status == MS_OK)
        r.status = ms_fail(cx, MS_EINPUT, place(&r), "this is no XML: %s",
                           XML_ErrorString(XML_GetErrorCode(r.parser)));
    XML_ParserFree(r.parser);
    return r.status;
}

#else

const bool ms_xml_is_built = false;

ms_status ms_xml_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                      ms_xml *out)
{
    (void)text, (void)length;
    *out = (ms_xml){0};
    ms_fail(cx, MS_EINPUT, (ms_loc){.file = name},
            "XML is not read: this program was built without expat");
    return ms_hint(cx, "install libexpat1-dev (\"make deps\") and build again");
}

#endif
