/* libFuzzer on the scanner of Iggy's bytes, without an interpreter: each row must lie inside the bytes, behind the last row.
 *
 * An input is one byte for the layout, one byte of options, and the bytes to scan.
 */
#include "msgid/iggy/records/_scan.c"

#include "must.h"

static Tables tables;

int
LLVMFuzzerInitialize(int *Py_UNUSED(count), char ***Py_UNUSED(arguments))
{
    crc_fill(&tables);
    return 0;
}

static uint32_t
slow_crc32(const byte *at, size_t length)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (; length; at++, length--) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

static void
check_rows(const Scan *scan, int64_t first, int64_t length)
{
    int64_t end = first;
    for (int64_t i = 0; i < scan->count; i++) {
        const Row *row = &scan->rows[i];
        MUST(row->position >= end && row->end > row->position && row->end <= length);
        MUST(row->headers >= row->position && row->headers + (int64_t)row->headers_length <= row->end);
        MUST(row->payload >= row->position && row->payload + (int64_t)row->payload_length <= row->end);
        MUST(row->sum <= NO_SUM && row->batch_sum <= NO_SUM && row->layout == scan->layout && row->padding == 0);
        end = row->end;
    }
    MUST(scan->place <= length);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    if (size < 3)
        return 0;
    byte layout = input[0] % LAYOUTS, options = input[1];
    size_t length = size - 2;
    byte *data = copied(input + 2, length); /* of the exact size, so that a read behind it is seen */
    int64_t place = options & 1 ? data[0] % (length + 1) : 0;
    Scan scan = {
        .tables = &tables,
        .batch = -1,
        .layout = layout,
        .data = data,
        .end = (int64_t)length,
        .place = place,
        .known = options & 4 ? (int64_t)length + 100000 : options & 2 ? (int64_t)length : -1,
        .within = options & 128 ? INT64_MAX : options & 8 ? place + 16 * data[length / 2] : 0,
        .limit = options & 32 ? 300 : INT64_MAX,
        .strict = options & 16 ? data[length / 2] % (int64_t)(length + 1) : -1,
    };
    int64_t most = options & 64 ? 3 : INT64_MAX;
    int stop = 0;
    while (!stop && scan.place < scan.end && scan.count < most) {
        int64_t before = scan.place;
        stop = READERS[layout](&scan);
        MUST(stop >= 0 && stop <= NO_MEMORY);
        MUST(stop || scan.place > before); /* a step that stays in its place would never end */
    }
    check_rows(&scan, place, (int64_t)length);
    PyMem_RawFree(scan.rows);
    PyMem_RawFree(scan.sums);
    MUST(crc32_of(&tables, data, length) == slow_crc32(data, length));
    for (size_t from = 0; from < length && from < 300; from += 7)
        (void)xxh3_of(data + from, length - from); /* `compare_scan.py` compares its value */
    free(data);
    return 0;
}
