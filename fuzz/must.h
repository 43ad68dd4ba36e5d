/* What both C programs need: a check that ends the program, and copies of an exact size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(rule)                                                                                                     \
    do {                                                                                                               \
        if (!(rule)) {                                                                                                 \
            fprintf(stderr, "does not hold: %s (%s:%d)\n", #rule, __FILE__, __LINE__);                                 \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static unsigned char *
copied(const unsigned char *bytes, size_t length)
{
    unsigned char *copy = malloc(length ? length : 1);
    MUST(copy != NULL);
    memcpy(copy, bytes, length);
    return copy;
}
