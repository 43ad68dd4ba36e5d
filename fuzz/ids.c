/* libFuzzer on the functions of the compiled core that read and write digits and rows, without an interpreter. */
#include "msgid/ids/_native/_speedups.c"

#include "must.h"

static int
slow_digit(unsigned char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

static int
slow_hex(unsigned char *raw, const unsigned char *text, Py_ssize_t length)
{
    for (Py_ssize_t i = 0; i < length; i++) {
        int high = slow_digit(text[2 * i]), low = slow_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        raw[i] = (unsigned char)(high << 4 | low);
    }
    return 1;
}

static void
check_id(const unsigned char *text, Py_ssize_t digits)
{
    unsigned char raw[MAX_LENGTH] = {0}, slow[MAX_LENGTH] = {0};
    Py_ssize_t length = digits / 2;
    int is_id = 0;
    if (!(digits & 1) && (length == 16 || length == 17 || length == 28 || length == 29)) {
        is_id = slow_hex(slow, text, length);
        if (length == 17)
            is_id = is_id && slow[0] <= 1;
        if (length == 29)
            is_id = is_id && slow[0] == 0;
    }
    MUST(read_id(raw, text, digits) == is_id);
    MUST(!is_id || !memcmp(raw, slow, (size_t)length));
}

static void
check_hex(const unsigned char *text, Py_ssize_t length)
{
    unsigned char raw[MAX_LENGTH], slow[MAX_LENGTH];
    char written[2 * MAX_LENGTH];
    int is_hex = slow_hex(slow, text, length);
    MUST(read_hex(raw, text, length) == is_hex);
    if (!is_hex)
        return;
    MUST(!memcmp(raw, slow, (size_t)length));
    write_hex(written, raw, length);
    for (Py_ssize_t i = 0; i < 2 * length; i++)
        MUST(written[i] == (text[i] >= 'a' ? text[i] - 'a' + 'A' : text[i]));
}

/* Rows and rows of digits must be the same IDs. */
static void
check_rows(const unsigned char *bytes)
{
    Part parts[2];
    const unsigned char *at = bytes + PREFIX_LENGTH;
    for (int i = 0; i < 2; i++, at += 12)
        parts[i] = (Part){.second = get32(at), .start = get32(at + 4), .step = (int8_t)at[8], .count = at[9] % 40};
    Py_ssize_t count = parts[0].count + parts[1].count;
    unsigned char *rows = malloc((size_t)(count ? count * ID_LENGTH : 1));
    char *digits = malloc((size_t)(count ? count * ID_DIGITS : 1)), expected[ID_DIGITS];
    MUST(rows != NULL && digits != NULL);
    fill_rows(rows, bytes, parts, 2);
    fill_hex_rows(digits, bytes, parts, 2);
    for (Py_ssize_t i = 0; i < count; i++) {
        write_hex(expected, rows + i * ID_LENGTH, ID_LENGTH);
        MUST(!memcmp(expected, digits + i * ID_DIGITS, ID_DIGITS));
    }
    free(rows);
    free(digits);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    unsigned char *text = copied(input, size);
    check_id(text, (Py_ssize_t)size);
    for (Py_ssize_t length = 0; length <= MAX_LENGTH && 2 * length <= (Py_ssize_t)size; length++)
        check_hex(text, length);
    if (size >= PREFIX_LENGTH + 2 * 12)
        check_rows(text);
    free(text);
    return 0;
}
