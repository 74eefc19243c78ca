#include "base/protobuf.h"

#include <string.h>

enum { /* wire types */
    WIRE_VARINT = 0,
    WIRE_BYTES = 2
};

#define MAX_VARINT 10 /* bytes of a varint of 64 bits */

ms_proto ms_proto_open(ms_arena *arena)
{
    return (ms_proto){.arena = arena};
}

static int encode(uint64_t value, unsigned char out[MAX_VARINT])
{
    int num = 0;
    for (; value >= 0x80; value >>= 7)
        out[num++] = (unsigned char)(value | 0x80);
    out[num++] = (unsigned char)value;
    return num;
}

static void append(ms_proto *message, const void *bytes, int num)
{
    while (message->capacity - message->num < num)
        MS_MAKE_ROOM(message->arena, message->bytes, message->capacity, message->capacity,
                     64);
    if (num > 0)
        memcpy(message->bytes + message->num, bytes, (size_t)num);
    message->num += num;
}

void ms_proto_varint(ms_proto *message, uint64_t value)
{
    unsigned char bytes[MAX_VARINT];
    append(message, bytes, encode(value, bytes));
}

static void append_key(ms_proto *message, int field, int wire)
{
    ms_proto_varint(message, (uint64_t)field << 3 | (uint64_t)wire);
}

void ms_proto_number_field(ms_proto *message, int field, uint64_t value)
{
    append_key(message, field, WIRE_VARINT);
    ms_proto_varint(message, value);
}

static void append_bytes_field(ms_proto *message, int field, const void *bytes, int num)
{
    append_key(message, field, WIRE_BYTES);
    ms_proto_varint(message, (uint64_t)num);
    append(message, bytes, num);
}

void ms_proto_text_field(ms_proto *message, int field, const char *text)
{
    append_bytes_field(message, field, text, (int)strlen(text));
}

void ms_proto_message_field(ms_proto *message, int field, const ms_proto *value)
{
    append_bytes_field(message, field, value->bytes, value->num);
}

void ms_proto_write(FILE *out, ms_proto *message)
{
    unsigned char length[MAX_VARINT];
    fwrite(length, 1, (size_t)encode((uint64_t)message->num, length), out);
    if (message->num > 0)
        fwrite(message->bytes, 1, (size_t)message->num, out);
}
