/* The scanner of Iggy's bytes in C: records of every layout, with their checksums.
 *
 * The reference is reference.py beside this file, with rows.py; the same tests hold the two equal, bit for bit. Rows and
 * stops have the numbers that rows.py gives them. XXH3 is written from its published specification (xxHash, "XXH3
 * algorithm overview"), for 64 bits, seed 0 and the default secret.
 *
 * The module has no static variable that changes: the tables of CRC-32 are in the state of the module.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if PY_BIG_ENDIAN
#error "the scanner reads little-endian integers as they are; the Python reference serves other machines"
#endif

#define VERSION 4

enum { PREVIOUS, M45, BATCH24, H56_CRC, H56_XXH3, H64, BATCH256, LAYOUTS };
enum { END, MORE, CUT, LONG_, STATE, RESERVED, SIZE, FRAME, BATCH, COUNT, FLAGS, SUM, PRODUCER, NO_MEMORY };
enum { SUM_WRONG, SUM_RIGHT, NO_SUM };

typedef unsigned char byte;

typedef struct {
    int64_t position, end, headers, payload, batch;
    uint32_t headers_length, payload_length;
    uint64_t offset, timestamp, origin;
    byte id[16];
    uint64_t checksum;
    uint8_t state, sum, batch_sum, layout;
    uint32_t padding;
} Row;

typedef struct {
    uint32_t crc[8][256];
} Tables;

static inline uint32_t
u32(const byte *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

static inline uint64_t
u64(const byte *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

/* --- CRC-32 (IEEE), eight bytes at a time -------------------------------------------------------------------------- */

static void
crc_fill(Tables *tables)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1)));
        tables->crc[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++) {
            uint32_t crc = tables->crc[k - 1][i];
            tables->crc[k][i] = (crc >> 8) ^ tables->crc[0][crc & 255];
        }
}

static uint32_t
crc32_of(const Tables *tables, const byte *at, size_t length)
{
    const uint32_t(*t)[256] = tables->crc;
    uint32_t crc = 0xFFFFFFFFu;
    for (; length >= 8; at += 8, length -= 8) {
        uint32_t low = crc ^ u32(at), high = u32(at + 4);
        crc = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^ t[3][high & 255] ^
              t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
    for (; length; at++, length--)
        crc = (crc >> 8) ^ t[0][(crc ^ *at) & 255];
    return ~crc;
}

/* --- XXH3, 64 bits, seed 0 ----------------------------------------------------------------------------------------- */

#define P32_1 0x9E3779B1u
#define P32_2 0x85EBCA77u
#define P32_3 0xC2B2AE3Du
#define P64_1 0x9E3779B185EBCA87u
#define P64_2 0xC2B2AE3D27D4EB4Fu
#define P64_3 0x165667B19E3779F9u
#define P64_4 0x85EBCA77C2B2AE63u
#define P64_5 0x27D4EB2F165667C5u

static const byte SECRET[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d,
    0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0,
    0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0,
    0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b,
    0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac,
    0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51,
    0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34,
    0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49,
    0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8,
    0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b,
    0x40, 0x7e,
};

#define STRIPE 64
#define STRIPES 16 /* in a block: the secret moves on by 8 bytes for each */

static inline uint64_t
rotated(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline uint64_t
swapped(uint64_t value)
{
    value = (value & 0x00FF00FF00FF00FFu) << 8 | (value >> 8 & 0x00FF00FF00FF00FFu);
    value = (value & 0x0000FFFF0000FFFFu) << 16 | (value >> 16 & 0x0000FFFF0000FFFFu);
    return value << 32 | value >> 32;
}

/* The two halves of a product of 128 bits, combined by XOR. */
static inline uint64_t
folded(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t low = (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu), cross = (a >> 32) * (b & 0xFFFFFFFFu) + (low >> 32);
    uint64_t other = (a & 0xFFFFFFFFu) * (b >> 32) + (cross & 0xFFFFFFFFu);
    uint64_t high = (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32);
    return (other << 32 | (low & 0xFFFFFFFFu)) ^ high;
#endif
}

static inline uint64_t
avalanche(uint64_t hash)
{
    hash = (hash ^ hash >> 37) * 0x165667919E3779F9u;
    return hash ^ hash >> 32;
}

static inline uint64_t
avalanche_xxh64(uint64_t hash)
{
    hash = (hash ^ hash >> 33) * P64_2;
    hash = (hash ^ hash >> 29) * P64_3;
    return hash ^ hash >> 32;
}

static inline uint64_t
mixed(const byte *at, const byte *secret)
{
    return folded(u64(at) ^ u64(secret), u64(at + 8) ^ u64(secret + 8));
}

static uint64_t
xxh3_short(const byte *at, size_t length)
{
    if (length > 8) {
        uint64_t low = u64(at) ^ u64(SECRET + 24) ^ u64(SECRET + 32);
        uint64_t high = u64(at + length - 8) ^ u64(SECRET + 40) ^ u64(SECRET + 48);
        return avalanche(length + swapped(low) + high + folded(low, high));
    }
    if (length >= 4) {
        uint64_t hash = u32(at + length - 4) + ((uint64_t)u32(at) << 32);
        hash ^= u64(SECRET + 8) ^ u64(SECRET + 16);
        hash ^= rotated(hash, 49) ^ rotated(hash, 24);
        hash *= 0x9FB21C651E98DF25u;
        hash ^= (hash >> 35) + length;
        hash *= 0x9FB21C651E98DF25u;
        return hash ^ hash >> 28;
    }
    if (length) {
        uint32_t all = (uint32_t)at[0] << 16 | (uint32_t)at[length >> 1] << 24 | at[length - 1] | (uint32_t)length << 8;
        return avalanche_xxh64((uint64_t)(all ^ u32(SECRET) ^ u32(SECRET + 4)));
    }
    return avalanche_xxh64(u64(SECRET + 56) ^ u64(SECRET + 64));
}

static uint64_t
xxh3_middle(const byte *at, size_t length)
{
    uint64_t hash = length * P64_1;
    if (length <= 128) {
        for (size_t i = (length - 1) / 32 + 1; i--;) {
            hash += mixed(at + 16 * i, SECRET + 32 * i);
            hash += mixed(at + length - 16 * (i + 1), SECRET + 32 * i + 16);
        }
        return avalanche(hash);
    }
    for (size_t i = 0; i < 8; i++)
        hash += mixed(at + 16 * i, SECRET + 16 * i);
    hash = avalanche(hash);
    for (size_t i = 8; i < length / 16; i++)
        hash += mixed(at + 16 * i, SECRET + 16 * (i - 8) + 3);
    hash += mixed(at + length - 16, SECRET + 136 - 17);
    return avalanche(hash);
}

static inline void
accumulate(uint64_t *sums, const byte *at, const byte *secret)
{
    for (int i = 0; i < 8; i++) {
        uint64_t value = u64(at + 8 * i), key = value ^ u64(secret + 8 * i);
        sums[i ^ 1] += value;
        sums[i] += (key & 0xFFFFFFFFu) * (key >> 32);
    }
}

static uint64_t
xxh3_long(const byte *at, size_t length)
{
    uint64_t sums[8] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};
    const byte *last = at + length - STRIPE;
    size_t blocks = (length - 1) / (STRIPE * STRIPES);
    for (size_t block = 0; block < blocks; block++, at += STRIPE * STRIPES) {
        for (int i = 0; i < STRIPES; i++)
            accumulate(sums, at + STRIPE * i, SECRET + 8 * i);
        for (int i = 0; i < 8; i++)
            sums[i] = (sums[i] ^ sums[i] >> 47 ^ u64(SECRET + 128 + 8 * i)) * P32_1;
    }
    size_t stripes = (length - 1 - blocks * STRIPE * STRIPES) / STRIPE;
    for (size_t i = 0; i < stripes; i++)
        accumulate(sums, at + STRIPE * i, SECRET + 8 * i);
    accumulate(sums, last, SECRET + 128 - 7);
    uint64_t hash = length * P64_1;
    for (int i = 0; i < 4; i++)
        hash += folded(sums[2 * i] ^ u64(SECRET + 11 + 16 * i), sums[2 * i + 1] ^ u64(SECRET + 19 + 16 * i));
    return avalanche(hash);
}

static uint64_t
xxh3_of(const byte *at, size_t length)
{
    return length <= 16 ? xxh3_short(at, length) : length <= 240 ? xxh3_middle(at, length) : xxh3_long(at, length);
}

/* --- the scan ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const Tables *tables;
    const byte *data;
    int64_t place, end, known, within, batch, limit, strict;
    int layout;
    Row *rows;
    int64_t count, room;
    byte *sums; /* what a batch's checksum covers */
    size_t sums_room;
    int64_t at;
    uint64_t value;
} Scan;

static int
stopped(Scan *scan, int stop, int64_t at, uint64_t value)
{
    scan->at = at;
    scan->value = value;
    return stop;
}

/* Return 0 if so many bytes are there, or why the scan stops. */
static inline int
need(Scan *scan, uint64_t length)
{
    if (length <= (uint64_t)(scan->end - scan->place))
        return 0;
    if (scan->known >= 0 && (scan->known < scan->place || length > (uint64_t)(scan->known - scan->place)))
        return stopped(scan, CUT, scan->place, length);
    return stopped(scan, length > (uint64_t)scan->limit ? LONG_ : MORE, scan->place, length);
}

#define NEED(length)                                                                                                   \
    do {                                                                                                               \
        int short_ = need(scan, (length));                                                                             \
        if (short_)                                                                                                    \
            return short_;                                                                                             \
    } while (0)

static Row *
new_row(Scan *scan)
{
    if (scan->count == scan->room) {
        int64_t room = scan->room ? 2 * scan->room : 1024;
        Row *rows = PyMem_RawRealloc(scan->rows, (size_t)room * sizeof(Row));
        if (rows == NULL)
            return NULL;
        scan->rows = rows;
        scan->room = room;
    }
    Row *row = &scan->rows[scan->count++];
    memset(row, 0, sizeof(Row));
    row->batch = -1;
    row->sum = row->batch_sum = NO_SUM;
    row->layout = (uint8_t)scan->layout;
    return row;
}

static inline int
is_state(byte state)
{
    return state == 1 || state == 10 || state == 20 || state == 30;
}

static int
read_old(Scan *scan)
{
    int64_t place = scan->place, fixed = scan->layout == PREVIOUS ? 36 : 41;
    NEED(fixed + 4);
    const byte *at = scan->data + place, *rest = at + (scan->layout == PREVIOUS ? 8 : 9);
    if (scan->layout == M45 && !is_state(at[8]))
        return stopped(scan, STATE, place + 8, at[8]);
    uint32_t headers = u32(at + fixed - 4);
    NEED((uint64_t)fixed + 4 + headers);
    int64_t payload = place + fixed + headers + 4;
    uint32_t length = u32(scan->data + payload - 4);
    NEED((uint64_t)(payload - place) + length);
    Row *row = new_row(scan);
    if (row == NULL)
        return NO_MEMORY;
    row->position = place;
    row->end = scan->place = payload + length;
    row->headers = place + fixed;
    row->payload = payload;
    row->headers_length = headers;
    row->payload_length = length;
    row->offset = u64(at);
    row->timestamp = u64(rest);
    memcpy(row->id, rest + 8, 16);
    if (scan->layout == M45) {
        uint32_t checksum = u32(at + 33);
        row->state = at[8];
        row->checksum = checksum;
        row->sum = crc32_of(scan->tables, scan->data + payload, length) == checksum;
    }
    return 0;
}

static int
read_batch24(Scan *scan)
{
    int64_t place = scan->place;
    const byte *at = scan->data + place;
    if (place >= scan->within) {
        NEED(24);
        uint64_t size = 24 + (uint64_t)u32(at + 8);
        if (scan->known < 0 || size > (uint64_t)(scan->known - place))
            NEED(size);
        scan->batch = place;
        scan->within = place + (int64_t)size;
        scan->place = place + 24;
        return 0;
    }
    uint64_t room = (uint64_t)(scan->within - place);
    if (room < 4)
        return stopped(scan, FRAME, place, 4);
    NEED(4);
    uint64_t size = 4 + (uint64_t)u32(at);
    if (size < 45)
        return stopped(scan, SIZE, place, size - 4);
    if (size > room)
        return stopped(scan, FRAME, place, size);
    NEED(size);
    if (!is_state(at[12]))
        return stopped(scan, STATE, place + 12, at[12]);
    uint32_t headers = u32(at + 41), checksum = u32(at + 37);
    if (headers > size - 45)
        return stopped(scan, SIZE, place, size - 4);
    Row *row = new_row(scan);
    if (row == NULL)
        return NO_MEMORY;
    row->position = place;
    row->end = scan->place = place + (int64_t)size;
    row->headers = place + 45;
    row->payload = place + 45 + headers;
    row->batch = scan->batch;
    row->headers_length = headers;
    row->payload_length = (uint32_t)(size - 45 - headers);
    row->offset = u64(at + 4);
    row->state = at[12];
    row->timestamp = u64(at + 13);
    memcpy(row->id, at + 21, 16);
    row->checksum = checksum;
    row->sum = crc32_of(scan->tables, scan->data + row->payload, row->payload_length) == checksum;
    return 0;
}

static int
read_new(Scan *scan)
{
    int64_t place = scan->place, fixed = scan->layout == H64 ? 64 : 56;
    NEED(fixed);
    const byte *at = scan->data + place;
    if (scan->layout == H64 && u64(at + 56))
        return stopped(scan, RESERVED, place + 56, 0);
    uint32_t headers = u32(at + 48), length = u32(at + 52);
    uint64_t size = (uint64_t)fixed + headers + length, checksum = u64(at);
    NEED(size);
    uint64_t found = scan->layout == H56_CRC ? crc32_of(scan->tables, at + 8, size - 8) : xxh3_of(at + 8, size - 8);
    if (found != checksum && scan->strict >= 0 && place != scan->strict)
        return stopped(scan, SUM, place, 0);
    Row *row = new_row(scan);
    if (row == NULL)
        return NO_MEMORY;
    row->position = place;
    row->end = scan->place = place + (int64_t)size;
    row->payload = place + fixed;
    row->headers = row->payload + length;
    row->headers_length = headers;
    row->payload_length = length;
    row->offset = u64(at + 24);
    row->timestamp = u64(at + 32);
    row->origin = u64(at + 40);
    memcpy(row->id, at + 8, 16);
    row->checksum = checksum;
    row->sum = found == checksum;
    return 0;
}

/* The frames of a batch; the rows of a batch with a wrong frame are taken back by the caller. */
static int
read_frames(Scan *scan, int64_t end, uint64_t *frames)
{
    const byte *header = scan->data + scan->place;
    int64_t batch = scan->place, place = batch + 256;
    uint64_t count = 0;
    for (; place < end; count++) {
        const byte *at = scan->data + place;
        if (end - place < 48)
            return stopped(scan, FRAME, place, 48);
        uint32_t headers = u32(at + 32), length = u32(at + 36);
        uint64_t size = 48 + (uint64_t)headers + length;
        if (size > (uint64_t)(end - place))
            return stopped(scan, FRAME, place, size);
        if (u64(at + 40))
            return stopped(scan, RESERVED, place + 40, 0);
        Row *row = new_row(scan);
        if (row == NULL)
            return NO_MEMORY;
        row->position = place;
        row->end = place + (int64_t)size;
        row->payload = place + 48;
        row->headers = row->payload + length;
        row->batch = batch;
        row->headers_length = headers;
        row->payload_length = length;
        row->offset = u64(header + 8) + u32(at + 24);
        row->timestamp = u64(header + 16);
        row->origin = u64(header + 24) + u32(at + 28);
        memcpy(row->id, at + 8, 16);
        row->checksum = u64(at);
        row->sum = xxh3_of(at + 8, size - 8) == row->checksum;
        place = row->end;
    }
    *frames = count;
    return 0;
}

/* Flags and producer section of a batch header, bytes 52 to 255. */
static int
check_producer(Scan *scan)
{
    const byte *at = scan->data + scan->place;
    byte flags = at[52];
    if (flags > 1)
        return stopped(scan, FLAGS, scan->place + 52, flags);
    for (int i = 53; i < 256; i++)
        if (at[i] && !(flags && ((i >= 56 && i < 66) || (i >= 68 && i < 72))))
            return stopped(scan, RESERVED, scan->place + i, 0);
    if (u64(at + 56) >> 63)
        return stopped(scan, PRODUCER, scan->place + 56, u64(at + 56));
    if (at[65] >> 7)
        return stopped(scan, PRODUCER, scan->place + 64, (uint64_t)at[64] | (uint64_t)at[65] << 8);
    if (u32(at + 68) >> 31)
        return stopped(scan, PRODUCER, scan->place + 68, u32(at + 68));
    return 0;
}

static int
read_batch256(Scan *scan)
{
    int64_t batch = scan->place, before = scan->count;
    NEED(256);
    int stop = check_producer(scan);
    if (stop)
        return stop;
    const byte *at = scan->data + batch;
    uint64_t length = u64(at + 32), frames = 0;
    if (length < 256)
        return stopped(scan, BATCH, batch + 32, length);
    NEED(length);
    int64_t end = batch + (int64_t)length;
    stop = read_frames(scan, end, &frames);
    if (!stop && frames != u32(at + 48))
        stop = stopped(scan, COUNT, batch + 48, frames);
    if (stop) {
        scan->count = before;
        return stop;
    }
    size_t head = at[52] ? 59 : 44, size = head + 8 * (size_t)frames;
    if (size > scan->sums_room) {
        byte *sums = PyMem_RawRealloc(scan->sums, 2 * size);
        if (sums == NULL)
            return NO_MEMORY;
        scan->sums = sums;
        scan->sums_room = 2 * size;
    }
    memcpy(scan->sums, at, 40);
    memcpy(scan->sums + 40, at + 48, 4);
    if (at[52]) {
        scan->sums[44] = at[52];
        memcpy(scan->sums + 45, at + 56, 10);
        memcpy(scan->sums + 55, at + 68, 4);
    }
    for (uint64_t i = 0; i < frames; i++)
        memcpy(scan->sums + head + 8 * i, &scan->rows[before + (int64_t)i].checksum, 8);
    uint8_t sum = xxh3_of(scan->sums, size) == u64(at + 40);
    for (int64_t i = before; i < scan->count; i++)
        scan->rows[i].batch_sum = sum;
    scan->place = end;
    return 0;
}

static int (*const READERS[LAYOUTS])(Scan *) = {read_old, read_old, read_batch24, read_new,
                                                read_new, read_new, read_batch256};

PyDoc_STRVAR(scan_doc, "Find the messages of bytes, as msgid.iggy.records.reference.scan does.");

static PyObject *
scan_bytes(PyObject *module, PyObject *args)
{
    Py_buffer view;
    Scan scan = {.tables = PyModule_GetState(module), .batch = -1};
    long long place, known, within, limit, most, strict;
    if (!PyArg_ParseTuple(args, "y*iLLLLLL:scan", &view, &scan.layout, &place, &known, &within, &limit, &most, &strict))
        return NULL;
    PyObject *result = NULL;
    if (scan.layout < 0 || scan.layout >= LAYOUTS || place < 0 || place > view.len || within < 0) {
        PyErr_SetString(PyExc_ValueError, "layout, place or within is out of range");
        PyBuffer_Release(&view);
        return NULL;
    }
    scan.data = view.buf;
    scan.end = view.len;
    scan.place = place;
    scan.known = known;
    scan.within = within;
    scan.limit = limit;
    scan.strict = strict;
    int stop = 0;
    Py_BEGIN_ALLOW_THREADS
    int (*const step)(Scan *) = READERS[scan.layout];
    while (!stop && scan.place < scan.end && scan.count < most)
        stop = step(&scan);
    Py_END_ALLOW_THREADS
    if (stop == NO_MEMORY)
        PyErr_NoMemory();
    else
        result = Py_BuildValue("(y#LLiLK)", scan.rows ? (const char *)scan.rows : "", (Py_ssize_t)(scan.count * (int64_t)sizeof(Row)),
                               (long long)scan.place, (long long)(scan.place < scan.within ? scan.within : 0), stop,
                               (long long)scan.at, (unsigned long long)scan.value);
    PyMem_RawFree(scan.rows);
    PyMem_RawFree(scan.sums);
    PyBuffer_Release(&view);
    return result;
}

PyDoc_STRVAR(xxh3_doc, "Return the XXH3 checksum of bytes, of 64 bits and with seed 0.");

static PyObject *
xxh3_bytes(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE))
        return NULL;
    uint64_t hash = xxh3_of(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLongLong(hash);
}

/* --- the module ---------------------------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"scan", scan_bytes, METH_VARARGS, scan_doc},
    {"xxh3", xxh3_bytes, METH_O, xxh3_doc},
    {NULL, NULL, 0, NULL},
};

/* The numbers that Python repeats: checksums.py uses this module only if its own are the same. */
static const int NUMBERS[] = {
    VERSION,
    PREVIOUS, M45, BATCH24, H56_CRC, H56_XXH3, H64, BATCH256,
    END, MORE, CUT, LONG_, STATE, RESERVED, SIZE, FRAME, BATCH, COUNT, FLAGS, SUM, PRODUCER,
    SUM_WRONG, SUM_RIGHT, NO_SUM,
    sizeof(Row),
};
#define NUMBERS_COUNT ((Py_ssize_t)(sizeof NUMBERS / sizeof *NUMBERS))

static int
module_exec(PyObject *module)
{
    crc_fill(PyModule_GetState(module));
    PyObject *numbers = PyTuple_New(NUMBERS_COUNT);
    if (numbers == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < NUMBERS_COUNT; i++) {
        PyObject *number = PyLong_FromLong(NUMBERS[i]);
        if (number == NULL) {
            Py_DECREF(numbers);
            return -1;
        }
        PyTuple_SET_ITEM(numbers, i, number);
    }
    int failed = PyModule_AddObjectRef(module, "NUMBERS", numbers);
    Py_DECREF(numbers);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "msgid.iggy.records._scan",
    .m_size = sizeof(Tables),
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__scan(void)
{
    return PyModuleDef_Init(&module_def);
}
