/* Writer of Protocol Buffers messages. Encoding: protobuf.dev/programming-guides/encoding.
 * Fields are varints or bytes; messages in messages, texts and packed lists are bytes. */
#ifndef MS_BASE_PROTOBUF_H
#define MS_BASE_PROTOBUF_H

#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>

/* A message while it is written; its bytes live in the arena. */
typedef struct ms_proto {
    ms_arena *arena;
    unsigned char *bytes;
    int num, capacity;
} ms_proto;

ms_proto ms_proto_open(ms_arena *arena);
/* Appends a varint without a field: an entry of a packed list. */
void ms_proto_varint(ms_proto *message, uint64_t value);
/* Append a field: a whole number (int32, int64: cast to uint64_t), bool or enum; a text; a
 * message or packed list. */
void ms_proto_number_field(ms_proto *message, int field, uint64_t value);
void ms_proto_text_field(ms_proto *message, int field, const char *text);
void ms_proto_message_field(ms_proto *message, int field, const ms_proto *value);

/* Writes a message after its length as a varint, as streams of messages have it. */
void ms_proto_write(FILE *out, ms_proto *message);

#endif
