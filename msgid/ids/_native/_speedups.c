/* The hot paths of msgid in C: values, minting, reading, rows.
 *
 * The reference is pure Python: msgid/ids/_base.py (Core), _pure_minter.py (Minter), parsing.py, bulk.py and _batch_bytes.py.
 * The same tests run on both. The C code handles only the common cases: errors and unusual types are passed to the
 * Python reference.
 *
 * No static variable changes after the module is loaded, but for the life of the process, so subinterpreters and
 * free-threaded builds are safe. All other state is in the module or in an object. The interpreter's lock protects a
 * Minter; in free-threaded builds its own mutex does.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#ifndef MS_WINDOWS
#include <pthread.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include "_docstrings.h"
#ifdef __linux__
#include <sys/mman.h>
#define PAGE 4096
#define HUGE_FROM (8 << 20)
#endif

/* The layout, as in msgid/layout.py. LAYOUT below contains every number by its Python name. Python compares the numbers
 * when it loads the core, and does not use a core with a different number. */
#define EPOCH_UNIX 1609459200
#define VERSION_0 0
#define VERSION_1 1
#define ID_LENGTH 17
#define ID_DIGITS (2 * ID_LENGTH)
#define PREFIX_LENGTH 9
#define NODE_START 1
#define NODE_WIDTH 6
#define PID_START 7
#define PID_WIDTH 2
#define SECONDS_START 9
#define SECONDS_WIDTH 4
#define SEQUENCE_START 13
#define SEQUENCE_WIDTH 4
#define IPV4_LENGTH 4
#define IPV6_LENGTH 16
#define TAIL_LENGTH 12
#define IPV4_ID_LENGTH (IPV4_LENGTH + TAIL_LENGTH)
#define IPV6_ID_LENGTH (IPV6_LENGTH + TAIL_LENGTH)
#define MAX_LENGTH (1 + IPV6_ID_LENGTH)
#define UINT32_SPAN ((uint64_t)1 << 32)
#define MAX_BEHIND 86400

/* Assumptions of the code below: the fields are adjacent, and each width is that of the integer type of the field. */
_Static_assert(NODE_START == 1 && NODE_WIDTH == 6, "a node is read as 16 and 32 bits after the version");
_Static_assert(PID_START == NODE_START + NODE_WIDTH && PID_WIDTH == 2, "a pid is 16 bits after the node");
_Static_assert(SECONDS_START == PID_START + PID_WIDTH && SECONDS_WIDTH == 4, "seconds are 32 bits after the pid");
_Static_assert(SEQUENCE_START == SECONDS_START + SECONDS_WIDTH && SEQUENCE_WIDTH == 4, "a sequence is 32 bits, last");
_Static_assert(PREFIX_LENGTH == SECONDS_START && ID_LENGTH == SEQUENCE_START + SEQUENCE_WIDTH, "nothing else is there");

#ifdef Py_GIL_DISABLED
#define LOCK(self) PyMutex_Lock(&(self)->mutex)
#define UNLOCK(self) PyMutex_Unlock(&(self)->mutex)
#else /* the interpreter's lock is held, and is not released between the two */
#define LOCK(self)
#define UNLOCK(self)
#endif
#if PY_VERSION_HEX < 0x030D0000
#define Py_BEGIN_CRITICAL_SECTION(op) {
#define Py_END_CRITICAL_SECTION() }
#endif

/* --- hex ---------------------------------------------------------------------------------------------------------- */

#define SIXTEEN(h) h "0" h "1" h "2" h "3" h "4" h "5" h "6" h "7" h "8" h "9" h "A" h "B" h "C" h "D" h "E" h "F"
static const char PAIRS[] = SIXTEEN("0") SIXTEEN("1") SIXTEEN("2") SIXTEEN("3") SIXTEEN("4") SIXTEEN("5") SIXTEEN("6")
    SIXTEEN("7") SIXTEEN("8") SIXTEEN("9") SIXTEEN("A") SIXTEEN("B") SIXTEEN("C") SIXTEEN("D") SIXTEEN("E") SIXTEEN("F");

/* The value of a digit; BAD for other characters, which is above the sum of any two valid values. */
#define BAD 0x100
#define B8 BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD
#define B16 B8, B8
#define LETTERS BAD, 10, 11, 12, 13, 14, 15, BAD, B8
static const uint16_t VALUE[256] = {B16, B16, B16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, BAD, BAD, BAD, BAD, BAD, BAD,
                                    LETTERS, B16, LETTERS, B16, B16, B16, B16, B16, B16, B16, B16, B16};

static inline void
write_hex(char *out, const unsigned char *raw, Py_ssize_t length)
{
    for (Py_ssize_t i = 0; i < length; i++) {
        memcpy(out + 2 * i, PAIRS + 2 * raw[i], 2);
    }
}

/* One number in each of eight bytes: eight digits are processed at once, and no sum carries into the next byte. */
#define EACH(number) (0x0101010101010101u * (number))

/* Read 8 digits; sets bits in *bad if a character is not a hex digit. */
static inline void
read_hex_block(unsigned char *raw, const unsigned char *text, uint64_t *bad)
{
    uint64_t all = 0;
    for (int i = 0; i < 8; i++) { /* compilers make one load of this */
        all |= (uint64_t)text[i] << 8 * i;
    }
    uint64_t ascii = all & EACH(0x7F);
    uint64_t no_digit = (ascii ^ EACH(0x30)) + EACH(0x80 - 10);    /* the top bit of a byte is set if it is above 9 */
    uint64_t letter = (ascii | EACH(0x20)) ^ EACH(0x60);           /* 1 to 6 */
    letter = (letter + EACH(0x80 - 1)) & ~(letter + EACH(0x80 - 7)); /* the top bit is set if it is at least 1, and below 7 */
    *bad |= ((no_digit & ~letter) | all) & EACH(0x80);
    uint64_t values = (all & EACH(0x0F)) + 9 * (all >> 6 & EACH(1));
    uint64_t pairs = values << 4 | values >> 8; /* every second byte is one of the result */
    for (int i = 0; i < 4; i++) {
        raw[i] = (unsigned char)(pairs >> 16 * i);
    }
}

#if defined(__SSE2__)
/* Return the values of 16 digits, as eight numbers of 16 bits; clears bits in *good where a character is not a digit. */
static inline __m128i
read_hex_lanes(const unsigned char *text, __m128i *good)
{
    __m128i all = _mm_loadu_si128((const __m128i *)text);
    __m128i number = _mm_sub_epi8(all, _mm_set1_epi8('0'));
    __m128i letter = _mm_sub_epi8(_mm_or_si128(all, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
    __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(number, _mm_set1_epi8(9)), number);
    __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
    *good = _mm_and_si128(*good, _mm_or_si128(is_digit, is_letter));
    letter = _mm_add_epi8(letter, _mm_set1_epi8(10));
    __m128i values = _mm_or_si128(_mm_and_si128(is_digit, number), _mm_and_si128(is_letter, letter));
    /* The first digit of a pair is the low byte of its number, because the processor is little-endian. */
    __m128i pairs = _mm_or_si128(_mm_slli_epi16(values, 4), _mm_srli_epi16(values, 8));
    return _mm_and_si128(pairs, _mm_set1_epi16(0xFF));
}
#endif

/* Read 2 * length digits; returns 0 if a character is not a hex digit. */
static inline int
read_hex(unsigned char *raw, const unsigned char *text, Py_ssize_t length)
{
    uint64_t bad = 0;
    Py_ssize_t i = 0;
#if defined(__SSE2__)
    for (; i + 16 <= length; i += 16) { /* every processor of x86-64 has these instructions */
        __m128i good = _mm_set1_epi8(-1);
        __m128i first = read_hex_lanes(text + 2 * i, &good), second = read_hex_lanes(text + 2 * i + 16, &good);
        _mm_storeu_si128((__m128i *)(raw + i), _mm_packus_epi16(first, second));
        bad |= _mm_movemask_epi8(good) != 0xFFFF;
    }
#endif
    for (; i + 4 <= length; i += 4) {
        read_hex_block(raw + i, text + 2 * i, &bad);
    }
    for (; i < length; i++) {
        unsigned int high = VALUE[text[2 * i]], low = VALUE[text[2 * i + 1]];
        bad |= (high | low) & BAD;
        raw[i] = (unsigned char)(high << 4 | low);
    }
    return !bad;
}

static inline void
put32(unsigned char *out, uint32_t number)
{
    out[0] = (unsigned char)(number >> 24);
    out[1] = (unsigned char)(number >> 16);
    out[2] = (unsigned char)(number >> 8);
    out[3] = (unsigned char)number;
}

static inline uint16_t
get16(const unsigned char *raw)
{
    return (uint16_t)(raw[0] << 8 | raw[1]);
}

static inline uint32_t
get32(const unsigned char *raw)
{
    return (uint32_t)raw[0] << 24 | (uint32_t)raw[1] << 16 | (uint32_t)raw[2] << 8 | raw[3];
}

/* --- Core: an immutable value of bytes ----------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    unsigned char length;
    unsigned char raw[MAX_LENGTH];
} Core;

static PyObject *
core_make(PyTypeObject *type, const unsigned char *raw, Py_ssize_t length)
{
    Core *self = PyObject_New(Core, type); /* every byte is written below, so no zeroing is needed */
    if (self != NULL) {
        self->length = (unsigned char)length;
        memcpy(self->raw, raw, (size_t)length);
    }
    return (PyObject *)self;
}

static int is_id_type(PyObject *type);

static PyObject *
core_of(PyObject *type, PyObject *raw)
{
    if (!is_id_type(type)) {
        PyErr_SetString(PyExc_TypeError, "one of this module's types of ids is expected");
        return NULL;
    }
    if (!PyBytes_Check(raw) || PyBytes_GET_SIZE(raw) > MAX_LENGTH) {
        PyErr_SetString(PyExc_TypeError, "the bytes of an id are expected");
        return NULL;
    }
    return core_make((PyTypeObject *)type, (unsigned char *)PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw));
}

static void
core_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
core_str(PyObject *op)
{
    Core *self = (Core *)op;
    PyObject *text = PyUnicode_New(2 * self->length, 127);
    if (text != NULL) {
        write_hex((char *)PyUnicode_1BYTE_DATA(text), self->raw, self->length);
    }
    return text;
}

static PyObject *
core_hex(PyObject *self, void *Py_UNUSED(closure))
{
    return core_str(self);
}

static PyObject *
core_bytes(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBytes_FromStringAndSize((char *)((Core *)self)->raw, ((Core *)self)->length);
}

static PyObject *
core_get_bytes(PyObject *self, void *Py_UNUSED(closure))
{
    return core_bytes(self, NULL);
}

/* The hash of the bytes, equal to that of the reference. */
static Py_hash_t
core_hash(PyObject *self)
{
#if PY_VERSION_HEX >= 0x030E0000
    return Py_HashBuffer(((Core *)self)->raw, ((Core *)self)->length);
#else
    Py_hash_t hash = PyHash_GetFuncDef()->hash(((Core *)self)->raw, ((Core *)self)->length);
    return hash == -1 ? -2 : hash; /* -1 means an error */
#endif
}

static PyObject *
core_compare(PyObject *one, PyObject *other, int operation)
{
    if (Py_TYPE(one) != Py_TYPE(other)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    Core *a = (Core *)one, *b = (Core *)other;
    unsigned char shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->raw, b->raw, shorter);
    if (order == 0) {
        order = (a->length > b->length) - (a->length < b->length);
    }
    Py_RETURN_RICHCOMPARE(order, 0, operation);
}

static int
core_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    PyErr_Format(PyExc_AttributeError, "%s is immutable: cannot %s %R", Py_TYPE(self)->tp_name,
                 value == NULL ? "delete" : "set", name);
    return -1;
}

static PyMethodDef core_methods[] = {
    {"_of", core_of, METH_O | METH_CLASS, DOC_CORE__OF},
    {"__bytes__", core_bytes, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef core_getset[] = {
    {"_bytes", core_get_bytes, NULL, NULL, NULL},
    {"hex", core_hex, NULL, DOC_CORE_HEX, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot core_slots[] = {
    {Py_tp_doc, (void *)DOC_CORE},
    {Py_tp_dealloc, core_dealloc},
    {Py_tp_str, core_str},
    {Py_tp_hash, core_hash},
    {Py_tp_richcompare, core_compare},
    {Py_tp_setattro, core_setattr},
    {Py_tp_methods, core_methods},
    {Py_tp_getset, core_getset},
    {0, NULL},
};

/* core_make does not support the size and the garbage collection of a subclass made in Python. So the module removes
 * Py_TPFLAGS_BASETYPE after it has created the classes of IDs. */
static PyType_Spec core_spec = {
    .name = "msgid.ids._native._speedups.Core",
    .basicsize = sizeof(Core),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = core_slots,
};

/* The classes of IDs. Python adds their methods (see msgid/ids/_base.py). They are created here because the garbage
 * collector tracks every object of a class made in Python. This costs time and memory, and an ID refers to no object. */
static PyType_Slot id_slots[] = {
    {Py_tp_dealloc, core_dealloc},
    {0, NULL},
};

#define ID_SPEC(id_name)                                                                                               \
    {                                                                                                                  \
        .name = "msgid." id_name, .basicsize = sizeof(Core),                                                           \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = id_slots                             \
    }
static PyType_Spec message_id_spec = ID_SPEC("MessageId");
static PyType_Spec broker_offset_id_spec = ID_SPEC("BrokerOffsetId");
static PyType_Spec client_unique_id_spec = ID_SPEC("ClientUniqueId");

static int
is_id_type(PyObject *type)
{
    return PyType_Check(type) && ((PyTypeObject *)type)->tp_dealloc == core_dealloc;
}

#define NO_HEAD UINT64_MAX
#define NEARLY_A_SECOND 900000000 /* nanoseconds */

/* --- Minter: the seconds and sequence numbers of one generator ------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    PyObject *id_type; /* MessageId */
    PyObject *run_type; /* msgid.ids._sequence.SecondOfIds */
    PyObject *clock; /* a function giving whole Unix seconds; NULL for the system's clock */
    PyObject *choice; /* NodeChoice, of the node in the prefix; NULL before the first ID */
    int64_t second; /* of the last ID, since the epoch; 0 before the first ID, so that no ID is dated before the epoch */
    uint64_t sequence; /* of the next ID; UINT32_SPAN if it wraps next */
    unsigned long life; /* of the process in which the generator may make IDs; 0 if it must begin */
    unsigned long made; /* the life in which the generator was made, or began */
    unsigned long forks; /* the number of forks, as below, when the mutex was made */
    int why; /* why it begins, unless it is a copy: FIRST or BEHIND */
    unsigned char prefix[PREFIX_LENGTH];
    uint64_t head; /* the second and the sequence but for its last byte, of the digits below; NO_HEAD before the first */
    char head_digits[2 * (ID_LENGTH - 1)];
#ifdef Py_GIL_DISABLED
    PyMutex mutex;
#endif
} Minter;

/* Why a generator begins, as in msgid/ids/_pure_minter.py. */
#define FIRST 0
#define COPIED 1
#define BEHIND 2

/* The life of this process: a number that is not 0 and differs from the life of every process that it is a copy of. Two
 * detectors see a fork. The C library calls count_fork, and Linux clears the page of the number, so that a fork without
 * the C library is seen, too. `reseed` is for the copies that neither of them sees. Threads that change the number at once
 * do no harm: a generator begins anew once more. */
static volatile unsigned long own_life = 1;
static volatile unsigned long *life = &own_life;
static volatile unsigned long lives = 1;
static volatile unsigned long forks = 0; /* between the process that loaded this module and this process */

static void
new_life(void)
{
    lives++;
    *life = lives;
}

#ifndef MS_WINDOWS
static void
count_fork(void)
{
    forks++;
    new_life();
}
#endif

#ifdef __linux__
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
/* Move the number to a page that Linux clears in a child. If the kernel accepts an advice that does not exist, it accepts
 * everything and does nothing, as old emulators do; then the hook alone sees a fork. */
static void
wipe_life_on_fork(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return;
    }
    if (madvise(page, PAGE, -1) == 0 || madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        munmap(page, PAGE);
        return;
    }
    *(volatile unsigned long *)page = own_life;
    life = page;
}
#endif

static int
watch_forks(void)
{
#ifndef MS_WINDOWS
    static int watched = 0;
    if (watched) {
        return 0;
    }
    if (pthread_atfork(NULL, NULL, count_fork) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    watched = 1;
#ifdef __linux__
    wipe_life_on_fork();
#endif
#endif
    return 0;
}

/* The life of this process, which is new if a fork was seen by the page alone. */
static unsigned long
this_life(void)
{
    if (*life == 0) {
        forks++;
        new_life();
    }
    return *life;
}

/* begin_life(): every generator of this process begins anew with its next ID. */
static PyObject *
begin_life(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    new_life();
    Py_RETURN_NONE;
}

static int
minter_traverse(PyObject *op, visitproc visit, void *arg)
{
    Minter *self = (Minter *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->id_type);
    Py_VISIT(self->run_type);
    Py_VISIT(self->clock);
    Py_VISIT(self->choice);
    return 0;
}

static int
minter_clear(PyObject *op)
{
    Minter *self = (Minter *)op;
    Py_CLEAR(self->id_type);
    Py_CLEAR(self->run_type);
    Py_CLEAR(self->clock);
    Py_CLEAR(self->choice);
    return 0;
}

static void
minter_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    minter_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* _begin(id_type, run_type, clock or None): called by __init__ of the Python class. */
static PyObject *
minter_begin(PyObject *op, PyObject *args)
{
    Minter *self = (Minter *)op;
    PyObject *id_type, *run_type, *clock;
    if (!PyArg_ParseTuple(args, "OOO", &id_type, &run_type, &clock)) {
        return NULL;
    }
    if (!is_id_type(id_type)) {
        PyErr_SetString(PyExc_TypeError, "one of this module's types of ids is expected");
        return NULL;
    }
    Py_INCREF(id_type);
    Py_XSETREF(self->id_type, id_type);
    Py_INCREF(run_type);
    Py_XSETREF(self->run_type, run_type);
    Py_XINCREF(clock == Py_None ? NULL : clock);
    Py_XSETREF(self->clock, clock == Py_None ? NULL : clock);
    self->life = 0;
    self->made = this_life();
    self->forks = forks;
    self->why = FIRST;
    Py_RETURN_NONE;
}

/* Begin with what _start of the Python class gives: the nine bytes of all IDs, the first sequence number, and the choice of
 * the node. */
static int
minter_start(Minter *self)
{
    if (self->run_type == NULL) {
        PyErr_SetString(PyExc_TypeError, "the generator was not initialised");
        return -1;
    }
    unsigned long begun = this_life();
    PyObject *choice;
    const char *prefix;
    Py_ssize_t length;
    unsigned long long sequence;
    PyObject *start = PyObject_CallMethod((PyObject *)self, "_start", "i", self->made == begun ? self->why : COPIED);
    if (start == NULL) {
        return -1;
    }
    if (!PyTuple_Check(start) || !PyArg_ParseTuple(start, "y#KO", &prefix, &length, &sequence, &choice) ||
        length != PREFIX_LENGTH || sequence > UINT32_SPAN) {
        Py_DECREF(start);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "_start must give 9 bytes, a sequence number and a choice");
        }
        return -1;
    }
    Py_INCREF(choice);
    Py_BEGIN_CRITICAL_SECTION(self);
#ifdef Py_GIL_DISABLED
    if (self->forks != forks) { /* another thread of the parent may have held the mutex */
        memset(&self->mutex, 0, sizeof(self->mutex));
    }
#endif
    self->forks = forks;
    LOCK(self);
    /* Otherwise another thread was faster, or the process was copied meanwhile. */
    if (self->life != begun && *life == begun) {
        memcpy(self->prefix, prefix, PREFIX_LENGTH);
        self->second = 0;
        self->sequence = sequence;
        self->head = NO_HEAD;
        self->why = FIRST;
        PyObject *before = self->choice;
        self->choice = choice;
        choice = before;
        self->made = self->life = begun;
    }
    UNLOCK(self);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(choice);
    Py_DECREF(start);
    return 0;
}

/* The Unix second of the system's clock. The coarse clock of Linux is the fastest, but it is up to a tick behind: at the
 * end of a second, the exact clock decides. A tick takes 1 to 10 ms. */
static inline int64_t
system_second(void)
{
#ifdef CLOCK_REALTIME_COARSE
    struct timespec reading;
    if (clock_gettime(CLOCK_REALTIME_COARSE, &reading) == 0 && reading.tv_nsec < NEARLY_A_SECOND) {
        return (int64_t)reading.tv_sec;
    }
    if (clock_gettime(CLOCK_REALTIME, &reading) == 0) {
        return (int64_t)reading.tv_sec;
    }
#endif
    return (int64_t)time(NULL);
}

/* The Unix second of the caller's clock. */
static int
given_second(PyObject *clock, int64_t *second)
{
    PyObject *seconds = PyObject_CallNoArgs(clock);
    if (seconds == NULL) {
        return -1;
    }
    *second = PyLong_AsLongLong(seconds);
    Py_DECREF(seconds);
    return *second == -1 && PyErr_Occurred() ? -1 : 0;
}

/* The second of the clock, since the epoch. A clock of the caller is Python code, which can fork. */
static inline int
minter_now(Minter *self, int64_t *now)
{
    if (self->clock == NULL) {
        *now = system_second();
    }
    else if (given_second(self->clock, now) < 0) {
        return -1;
    }
    *now -= EPOCH_UNIX;
    return 0;
}

/* Whether the generator has begun in the life of this process. Both lives are 0 if a new child makes its first ID. */
static inline int
has_begun(Minter *self)
{
    return self->life == *life && self->life != 0;
}

/* Whether the generator can make IDs at a second without beginning anew. Called with the lock. */
static inline int
can_make(Minter *self, int64_t now)
{
    if (!has_begun(self)) {
        return 0;
    }
    if (self->second - now > MAX_BEHIND && self->second > MAX_BEHIND) { /* is_behind of msgid/ids/_sequence.py */
        self->life = 0;
        self->why = BEHIND;
        return 0;
    }
    return 1;
}

/* Take the lock of a generator that can make IDs at the second `now`. No Python code runs until UNLOCK. */
static inline int
minter_lock(Minter *self, int64_t *now)
{
    for (;;) {
        if (minter_now(self, now) < 0) {
            return -1;
        }
        LOCK(self);
        if (can_make(self, *now)) {
            return 0;
        }
        UNLOCK(self);
        if (minter_start(self) < 0) {
            return -1;
        }
    }
}

/* The rule of msgid/ids/_sequence.py for one run: up to `count` IDs with the same second. */
static inline uint64_t
take_run(Minter *self, int64_t now, uint64_t count, int64_t *second, uint64_t *start)
{
    if (self->sequence == UINT32_SPAN) { /* sequence numbers repeat from here, so the IDs need a new second */
        self->second++;
        self->sequence = 0;
    }
    if (now > self->second) {
        self->second = now;
    }
    uint64_t left = UINT32_SPAN - self->sequence;
    uint64_t taken = count < left ? count : left;
    *second = self->second;
    *start = self->sequence;
    self->sequence += taken;
    return taken;
}

static PyObject *
minter_generate(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    Minter *self = (Minter *)op;
    int64_t now, second;
    uint64_t sequence;
    unsigned char prefix[PREFIX_LENGTH];
    if (minter_lock(self, &now) < 0) {
        return NULL;
    }
    take_run(self, now, 1, &second, &sequence);
    memcpy(prefix, self->prefix, PREFIX_LENGTH);
    UNLOCK(self);
    Core *id = PyObject_New(Core, (PyTypeObject *)self->id_type);
    if (id != NULL) {
        id->length = ID_LENGTH;
        memcpy(id->raw, prefix, PREFIX_LENGTH);
        put32(id->raw + SECONDS_START, (uint32_t)second);
        put32(id->raw + SEQUENCE_START, (uint32_t)sequence);
    }
    return (PyObject *)id;
}

/* 256 consecutive texts differ only in their last two digits, so the other digits are written once. */
static PyObject *
minter_generate_hex(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    Minter *self = (Minter *)op;
    int64_t now, second;
    uint64_t sequence;
    PyObject *text = PyUnicode_New(ID_DIGITS, 127);
    if (text == NULL) {
        return NULL;
    }
    char *out = (char *)PyUnicode_1BYTE_DATA(text);
    if (minter_lock(self, &now) < 0) {
        Py_DECREF(text);
        return NULL;
    }
    take_run(self, now, 1, &second, &sequence);
    uint64_t head = (uint64_t)(uint32_t)second << 24 | sequence >> 8;
    if (head != self->head) {
        unsigned char raw[ID_LENGTH];
        memcpy(raw, self->prefix, PREFIX_LENGTH);
        put32(raw + SECONDS_START, (uint32_t)second);
        put32(raw + SEQUENCE_START, (uint32_t)sequence);
        write_hex(self->head_digits, raw, ID_LENGTH - 1);
        self->head = head;
    }
    memcpy(out, self->head_digits, sizeof(self->head_digits));
    UNLOCK(self);
    memcpy(out + sizeof(self->head_digits), PAIRS + 2 * (sequence & 0xFF), 2);
    return text;
}

/* _reserve(count) -> (prefix, runs), as in the Python reference. */
static PyObject *
minter_reserve(PyObject *op, PyObject *number)
{
    Minter *self = (Minter *)op;
    unsigned long long count = PyLong_AsUnsignedLongLong(number);
    int64_t now, seconds[3];
    uint64_t starts[3], sizes[3];
    unsigned char prefix[PREFIX_LENGTH];
    int runs = 0;
    if (count == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    if (count > UINT32_SPAN) {
        PyErr_SetString(PyExc_ValueError, "at most 2**32 ids at once");
        return NULL;
    }
    if (minter_lock(self, &now) < 0) {
        return NULL;
    }
    while (count > 0) { /* at most a wrap, so at most two runs */
        sizes[runs] = take_run(self, now, count, &seconds[runs], &starts[runs]);
        count -= sizes[runs++];
    }
    memcpy(prefix, self->prefix, PREFIX_LENGTH);
    UNLOCK(self);
    PyObject *listed = PyTuple_New(runs);
    for (int i = 0; listed != NULL && i < runs; i++) {
        PyObject *range = PyObject_CallFunction((PyObject *)&PyRange_Type, "KK", starts[i], starts[i] + sizes[i]);
        PyObject *run = range == NULL ? NULL : PyObject_CallFunction(self->run_type, "LN", seconds[i], range);
        if (run == NULL) {
            Py_CLEAR(listed);
        }
        else {
            PyTuple_SET_ITEM(listed, i, run);
        }
    }
    return listed == NULL ? NULL : Py_BuildValue("y#N", prefix, (Py_ssize_t)PREFIX_LENGTH, listed);
}

/* _explain() -> the choice of the node of the next ID. */
static PyObject *
minter_explain(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    Minter *self = (Minter *)op;
    for (;;) {
        LOCK(self);
        PyObject *choice = has_begun(self) ? Py_NewRef(self->choice) : NULL;
        UNLOCK(self);
        if (choice != NULL) {
            return choice;
        }
        if (minter_start(self) < 0) {
            return NULL;
        }
    }
}

static PyMethodDef minter_methods[] = {
    {"_begin", minter_begin, METH_VARARGS, NULL},
    {"_explain", minter_explain, METH_NOARGS, NULL},
    {"_reserve", minter_reserve, METH_O, NULL},
    {"generate", minter_generate, METH_NOARGS, DOC_MINTER_GENERATE},
    {"generate_hex", minter_generate_hex, METH_NOARGS, DOC_MINTER_GENERATE_HEX},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot minter_slots[] = {
    {Py_tp_doc, (void *)DOC_MINTER},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, minter_dealloc},
    {Py_tp_traverse, minter_traverse},
    {Py_tp_clear, minter_clear},
    {Py_tp_methods, minter_methods},
    {0, NULL},
};

static PyType_Spec minter_spec = {
    .name = "msgid.ids._native._speedups.Minter",
    .basicsize = sizeof(Minter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = minter_slots,
};

/* --- the module's state --------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject *id_type; /* MessageId, set by bind() */
    PyObject *parse; /* the Python references, for errors and unusual types */
    PyObject *is_valid;
} State;

/* bind(MessageId, parse, is_valid) */
static PyObject *
bind(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    PyObject *id_type, *parse, *is_valid;
    if (!PyArg_ParseTuple(args, "OOO", &id_type, &parse, &is_valid)) {
        return NULL;
    }
    if (!is_id_type(id_type)) {
        PyErr_SetString(PyExc_TypeError, "one of this module's types of ids is expected");
        return NULL;
    }
    Py_INCREF(id_type);
    Py_XSETREF(state->id_type, id_type);
    Py_INCREF(parse);
    Py_XSETREF(state->parse, parse);
    Py_INCREF(is_valid);
    Py_XSETREF(state->is_valid, is_valid);
    Py_RETURN_NONE;
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* Whether a version byte fits the length; bare version-0 IDs do not have a version byte. */
static inline int
known_version(unsigned char first, Py_ssize_t length)
{
    switch (length) {
    case ID_LENGTH:
        return first <= VERSION_1;
    case 1 + IPV6_ID_LENGTH:
        return first == VERSION_0;
    case IPV4_ID_LENGTH:
    case IPV6_ID_LENGTH:
        return 1;
    default:
        return 0;
    }
}

static PyObject *
unbound(void)
{
    PyErr_SetString(PyExc_TypeError, "bind() was not called");
    return NULL;
}

static inline int
is_plain_text(PyObject *value)
{
    return PyUnicode_CheckExact(value) && PyUnicode_IS_COMPACT_ASCII(value);
}

static PyObject *
parse(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    State *state = PyModule_GetState(module);
    if (state->parse == NULL) {
        return unbound();
    }
    if (nargs == 1 && names == NULL) {
        PyObject *value = args[0];
        unsigned char raw[ID_LENGTH];
        if (is_plain_text(value) && PyUnicode_GET_LENGTH(value) == ID_DIGITS &&
            read_hex(raw, PyUnicode_1BYTE_DATA(value), ID_LENGTH) && raw[0] == VERSION_1) {
            return core_make((PyTypeObject *)state->id_type, raw, ID_LENGTH);
        }
        if (PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) == ID_LENGTH &&
            PyBytes_AS_STRING(value)[0] == VERSION_1) {
            return core_make((PyTypeObject *)state->id_type, (unsigned char *)PyBytes_AS_STRING(value), ID_LENGTH);
        }
    }
    return PyObject_Vectorcall(state->parse, args, (size_t)nargs, names);
}

/* Whether digits are those of an ID; writes its bytes to raw. The length counts bytes. */
static inline int
read_id(unsigned char *raw, const unsigned char *text, Py_ssize_t digits)
{
    Py_ssize_t length = digits / 2;
    if (digits & 1 || !known_version(VERSION_0, length)) { /* version 0 comes in every length */
        return 0;
    }
    /* A constant length in the common case, so that the compiler unrolls the loop. */
    return (length == ID_LENGTH ? read_hex(raw, text, ID_LENGTH) : read_hex(raw, text, length)) &&
           known_version(raw[0], length);
}

static PyObject *
is_valid(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (nargs == 1 && names == NULL) {
        PyObject *value = args[0];
        if (is_plain_text(value)) {
            unsigned char raw[MAX_LENGTH] = {0};
            return PyBool_FromLong(read_id(raw, PyUnicode_1BYTE_DATA(value), PyUnicode_GET_LENGTH(value)));
        }
        if (PyBytes_CheckExact(value)) {
            Py_ssize_t length = PyBytes_GET_SIZE(value);
            return PyBool_FromLong(length > 0 && known_version((unsigned char)PyBytes_AS_STRING(value)[0], length));
        }
    }
    State *state = PyModule_GetState(module);
    return state->is_valid == NULL ? unbound() : PyObject_Vectorcall(state->is_valid, args, (size_t)nargs, names);
}

/* --- rows: an encoded batch ----------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t second;
    uint64_t start;
    int64_t step;
    Py_ssize_t count;
} Part;

/* Read (prefix, ((second, start, step, count), ...)); returns the parts, which the caller frees, and their IDs' number. */
static Part *
read_parts(PyObject *args, const unsigned char **prefix, Py_ssize_t *parts, Py_ssize_t *total)
{
    const char *bytes;
    Py_ssize_t length;
    PyObject *listed;
    if (!PyArg_ParseTuple(args, "y#O!", &bytes, &length, &PyTuple_Type, &listed)) {
        return NULL;
    }
    if (length != PREFIX_LENGTH) {
        PyErr_SetString(PyExc_ValueError, "a prefix of 9 bytes is expected");
        return NULL;
    }
    *prefix = (const unsigned char *)bytes;
    *parts = PyTuple_GET_SIZE(listed);
    *total = 0;
    Part *read = PyMem_Calloc((size_t)*parts + 1, sizeof(Part));
    if (read == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < *parts; i++) {
        long long second, start, step;
        PyObject *part = PyTuple_GET_ITEM(listed, i);
        if (!PyTuple_Check(part)) {
            PyErr_SetString(PyExc_TypeError, "parts of four numbers are expected");
            PyMem_Free(read);
            return NULL;
        }
        if (!PyArg_ParseTuple(part, "LLLn", &second, &start, &step, &read[i].count)) {
            PyMem_Free(read);
            return NULL;
        }
        if (read[i].count < 0 || read[i].count > PY_SSIZE_T_MAX / ID_DIGITS - *total) {
            PyMem_Free(read);
            PyErr_NoMemory();
            return NULL;
        }
        read[i].second = (uint32_t)second;
        read[i].start = (uint64_t)start;
        read[i].step = step;
        *total += read[i].count;
    }
    return read;
}

/* The common bytes and digits of all rows of a part, ready to be stored from registers. Changing a row in memory and then
 * copying it is slower, because the copy waits for each change. */
typedef struct {
    unsigned char same[SEQUENCE_START];
    char digits[2 * SEQUENCE_START];
} Head;

static inline void
start_part(Head *head, const unsigned char *prefix, const Part *part)
{
    memcpy(head->same, prefix, PREFIX_LENGTH);
    put32(head->same + SECONDS_START, part->second);
    write_hex(head->digits, head->same, SEQUENCE_START);
}

static void
fill_rows(unsigned char *out, const unsigned char *prefix, const Part *parts, Py_ssize_t count)
{
    for (const Part *part = parts; part < parts + count; part++) {
        Head head;
        uint64_t sequence = part->start;
        start_part(&head, prefix, part);
        for (Py_ssize_t i = 0; i < part->count; i++, out += ID_LENGTH, sequence += (uint64_t)part->step) {
            memcpy(out, head.same, sizeof(head.same));
            put32(out + sizeof(head.same), (uint32_t)sequence);
        }
    }
}

static inline void
fill_hex_row(char *out, const Head *head, uint32_t sequence)
{
    memcpy(out, head->digits, sizeof(head->digits));
    out += sizeof(head->digits);
    memcpy(out, PAIRS + 2 * (sequence >> 24), 2);
    memcpy(out + 2, PAIRS + 2 * (sequence >> 16 & 0xFF), 2);
    memcpy(out + 4, PAIRS + 2 * (sequence >> 8 & 0xFF), 2);
    memcpy(out + 6, PAIRS + 2 * (sequence & 0xFF), 2);
}

static void
fill_hex_rows(char *out, const unsigned char *prefix, const Part *parts, Py_ssize_t count)
{
    for (const Part *part = parts; part < parts + count; part++) {
        Head head;
        uint64_t sequence = part->start;
        start_part(&head, prefix, part);
        for (Py_ssize_t i = 0; i < part->count; i++, out += ID_DIGITS, sequence += (uint64_t)part->step) {
            fill_hex_row(out, &head, (uint32_t)sequence);
        }
    }
}

/* Allocate memory for a batch. Each new page costs an interrupt; for a large batch this takes longer than filling it. So
 * request large pages if the system has them. */
static PyObject *
new_bytes(Py_ssize_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes != NULL && size >= HUGE_FROM) {
        uintptr_t start = (uintptr_t)PyBytes_AS_STRING(bytes), end = start + (uintptr_t)size;
        start = (start + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        (void)madvise((void *)start, (end - start) & ~(size_t)(PAGE - 1), MADV_HUGEPAGE); /* only a hint, so errors are ignored */
    }
#endif
    return bytes;
}

/* rows(prefix, parts) -> bytes, 17 per ID. No other thread has the bytes, so they are filled without the lock. */
static PyObject *
rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    const unsigned char *prefix;
    Py_ssize_t count, total;
    Part *parts = read_parts(args, &prefix, &count, &total);
    if (parts == NULL) {
        return NULL;
    }
    PyObject *result = new_bytes(total * ID_LENGTH);
    if (result != NULL) {
        unsigned char *out = (unsigned char *)PyBytes_AS_STRING(result);
        Py_BEGIN_ALLOW_THREADS
        fill_rows(out, prefix, parts, count);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(parts);
    return result;
}

/* hex_rows(prefix, parts) -> bytes, 34 digits per ID. */
static PyObject *
hex_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    const unsigned char *prefix;
    Py_ssize_t count, total;
    Part *parts = read_parts(args, &prefix, &count, &total);
    if (parts == NULL) {
        return NULL;
    }
    PyObject *result = new_bytes(total * ID_DIGITS);
    if (result != NULL) {
        char *out = PyBytes_AS_STRING(result);
        Py_BEGIN_ALLOW_THREADS
        fill_hex_rows(out, prefix, parts, count);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(parts);
    return result;
}

/* hex_list(prefix, parts) -> list of str. */
static PyObject *
hex_list(PyObject *Py_UNUSED(module), PyObject *args)
{
    const unsigned char *prefix;
    Py_ssize_t count, total, next = 0;
    Part *parts = read_parts(args, &prefix, &count, &total);
    if (parts == NULL) {
        return NULL;
    }
    PyObject *result = PyList_New(total);
    for (Part *part = parts; result != NULL && part < parts + count; part++) {
        Head head;
        uint64_t sequence = part->start;
        start_part(&head, prefix, part);
        for (Py_ssize_t i = 0; i < part->count; i++, sequence += (uint64_t)part->step) {
            PyObject *text = PyUnicode_New(ID_DIGITS, 127);
            if (text == NULL) {
                Py_CLEAR(result);
                break;
            }
            fill_hex_row((char *)PyUnicode_1BYTE_DATA(text), &head, (uint32_t)sequence);
            PyList_SET_ITEM(result, next++, text);
        }
    }
    PyMem_Free(parts);
    return result;
}

/* --- columns: ids read in bulk --------------------------------------------------------------------------------------- */

typedef struct {
    uint8_t *version;
    uint64_t *node;
    uint16_t *pid;
    uint32_t *seconds;
    uint32_t *sequence;
    uint8_t *valid;
} Columns;

/* The columns start with zeros, which stay for invalid values and missing fields. */
static inline void
read_row(const Columns *columns, Py_ssize_t row, const unsigned char *raw, Py_ssize_t length)
{
    columns->valid[row] = 1;
    if (length == ID_LENGTH && raw[0] == VERSION_1) {
        columns->version[row] = VERSION_1;
        columns->node[row] = (uint64_t)get16(raw + NODE_START) << 32 | get32(raw + NODE_START + 2);
        columns->pid[row] = get16(raw + PID_START);
        columns->seconds[row] = get32(raw + SECONDS_START);
        columns->sequence[row] = get32(raw + SEQUENCE_START);
    }
}

/* Set the columns to six writable buffers of n elements each. */
static int
open_columns(PyObject *const *objects, Py_ssize_t n, Py_buffer *views, Columns *columns)
{
    static const Py_ssize_t sizes[] = {1, 8, 2, 4, 4, 1};
    void **pointers[] = {(void **)&columns->version, (void **)&columns->node,     (void **)&columns->pid,
                         (void **)&columns->seconds, (void **)&columns->sequence, (void **)&columns->valid};
    for (int i = 0; i < 6; i++) {
        if (PyObject_GetBuffer(objects[i], &views[i], PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0) {
            while (i-- > 0) {
                PyBuffer_Release(&views[i]);
            }
            return -1;
        }
        if (views[i].len != n * sizes[i]) {
            PyErr_SetString(PyExc_ValueError, "a column of another length");
            for (; i >= 0; i--) {
                PyBuffer_Release(&views[i]);
            }
            return -1;
        }
        *pointers[i] = views[i].buf;
    }
    return 0;
}

static void
close_columns(Py_buffer *views)
{
    for (int i = 0; i < 6; i++) {
        PyBuffer_Release(&views[i]);
    }
}

/* read_texts(values, *columns) -> the rows with unusual types, which the reference reads. */
static PyObject *
read_texts(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer views[6];
    Columns columns;
    if (nargs != 7 || !PyTuple_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "read_texts takes a tuple and six columns");
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args[0]);
    if (open_columns(args + 1, n, views, &columns) < 0) {
        return NULL;
    }
    PyObject *others = PyList_New(0);
    for (Py_ssize_t row = 0; others != NULL && row < n; row++) {
        PyObject *value = PyTuple_GET_ITEM(args[0], row);
        unsigned char raw[MAX_LENGTH] = {0};
        if (is_plain_text(value)) {
            Py_ssize_t digits = PyUnicode_GET_LENGTH(value);
            if (read_id(raw, PyUnicode_1BYTE_DATA(value), digits)) {
                read_row(&columns, row, raw, digits / 2);
            }
        }
        else if (PyBytes_CheckExact(value)) {
            Py_ssize_t length = PyBytes_GET_SIZE(value);
            const unsigned char *bytes = (unsigned char *)PyBytes_AS_STRING(value);
            if (length > 0 && known_version(bytes[0], length)) {
                read_row(&columns, row, bytes, length);
            }
        }
        else if (value != Py_None && !PyUnicode_CheckExact(value)) {
            PyObject *number = PyLong_FromSsize_t(row);
            if (number == NULL || PyList_Append(others, number) < 0) {
                Py_CLEAR(others);
            }
            Py_XDECREF(number);
        }
    }
    close_columns(views);
    return others;
}

/* Read an offset only once, so that a later write of another thread cannot invalidate the check of the value. */
static inline int64_t
read_offset(const char *offsets, Py_ssize_t row)
{
    int64_t value;
    memcpy(&value, offsets + row * (Py_ssize_t)sizeof(value), sizeof(value));
    volatile int64_t once = value;
    return once;
}

/* read_rows(data, offsets, is_hex, *columns): row i is data[offsets[i]:offsets[i + 1]]; the offsets are int64. */
static PyObject *
read_rows(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer data, offsets, views[6];
    Columns columns;
    if (nargs != 9) {
        PyErr_SetString(PyExc_TypeError, "read_rows takes data, offsets, is_hex and six columns");
        return NULL;
    }
    int is_hex = PyObject_IsTrue(args[2]);
    if (is_hex < 0 || PyObject_GetBuffer(args[0], &data, PyBUF_C_CONTIGUOUS) < 0) {
        return NULL;
    }
    if (PyObject_GetBuffer(args[1], &offsets, PyBUF_C_CONTIGUOUS) < 0) {
        PyBuffer_Release(&data);
        return NULL;
    }
    PyObject *result = NULL;
    const unsigned char *bytes = data.buf;
    const char *starts = offsets.buf;
    Py_ssize_t n = offsets.len / (Py_ssize_t)sizeof(int64_t) - 1;
    if (n < 0) {
        PyErr_SetString(PyExc_ValueError, "offsets of at least one element are expected");
        goto done;
    }
    if (open_columns(args + 3, n, views, &columns) < 0) {
        goto done;
    }
    int outside = 0;
    Py_BEGIN_ALLOW_THREADS
    int64_t from = read_offset(starts, 0);
    outside = from < 0;
    for (Py_ssize_t row = 0; row < n && !outside; row++) {
        int64_t to = read_offset(starts, row + 1);
        if (to < from || to > data.len) {
            outside = 1;
            break;
        }
        const unsigned char *start = bytes + from;
        Py_ssize_t length = (Py_ssize_t)(to - from);
        from = to;
        unsigned char raw[MAX_LENGTH] = {0};
        if (is_hex) {
            if (read_id(raw, start, length)) {
                read_row(&columns, row, raw, length / 2);
            }
        }
        else if (length > 0 && known_version(start[0], length)) {
            read_row(&columns, row, start, length);
        }
    }
    Py_END_ALLOW_THREADS
    close_columns(views);
    if (outside) {
        PyErr_SetString(PyExc_ValueError, "offsets that lie outside the data");
    }
    else {
        result = Py_NewRef(Py_None);
    }
done:
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&data);
    return result;
}

/* --- the module ------------------------------------------------------------------------------------------------------ */

static PyMethodDef functions[] = {
    {"begin_life", begin_life, METH_NOARGS, NULL},
    {"bind", bind, METH_VARARGS, NULL},
    {"parse", (PyCFunction)(void (*)(void))parse, METH_FASTCALL | METH_KEYWORDS, DOC_PARSE},
    {"is_valid", (PyCFunction)(void (*)(void))is_valid, METH_FASTCALL | METH_KEYWORDS, DOC_IS_VALID},
    {"rows", rows, METH_VARARGS, DOC_ROWS},
    {"hex_rows", hex_rows, METH_VARARGS, DOC_HEX_ROWS},
    {"hex_list", hex_list, METH_VARARGS, DOC_HEX_LIST},
    {"read_texts", (PyCFunction)(void (*)(void))read_texts, METH_FASTCALL, NULL},
    {"read_rows", (PyCFunction)(void (*)(void))read_rows, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static int
add_type(PyObject *module, PyType_Spec *spec, PyObject *base)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, base);
    if (type == NULL) {
        return -1;
    }
    int failed = PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type);
    Py_DECREF(type);
    return failed;
}

#define NUMBER(name) {#name, (long long)name}
static const struct {
    const char *name;
    long long number;
} NUMBERS[] = {
    NUMBER(EPOCH_UNIX),  NUMBER(VERSION_0),     NUMBER(VERSION_1),      NUMBER(ID_LENGTH),      NUMBER(ID_DIGITS),
    NUMBER(PREFIX_LENGTH), NUMBER(NODE_START),  NUMBER(NODE_WIDTH),     NUMBER(PID_START),      NUMBER(PID_WIDTH),
    NUMBER(SECONDS_START), NUMBER(SECONDS_WIDTH), NUMBER(SEQUENCE_START), NUMBER(SEQUENCE_WIDTH), NUMBER(IPV4_LENGTH),
    NUMBER(IPV6_LENGTH), NUMBER(TAIL_LENGTH),   NUMBER(UINT32_SPAN), NUMBER(MAX_BEHIND),
};

/* The numbers of the layout, as a dict by name. */
static PyObject *
layout_numbers(void)
{
    PyObject *numbers = PyDict_New();
    for (size_t i = 0; numbers != NULL && i < sizeof(NUMBERS) / sizeof(NUMBERS[0]); i++) {
        PyObject *number = PyLong_FromLongLong(NUMBERS[i].number);
        if (number == NULL || PyDict_SetItemString(numbers, NUMBERS[i].name, number) < 0) {
            Py_CLEAR(numbers);
        }
        Py_XDECREF(number);
    }
    return numbers;
}

static int
module_exec(PyObject *module)
{
    if (watch_forks() < 0 || add_type(module, &core_spec, NULL) < 0 || add_type(module, &minter_spec, NULL) < 0) {
        return -1;
    }
    PyObject *core = PyObject_GetAttrString(module, "Core");
    int added = core == NULL ? -1 : add_type(module, &message_id_spec, core);
    added = added < 0 ? -1 : add_type(module, &broker_offset_id_spec, core);
    added = added < 0 ? -1 : add_type(module, &client_unique_id_spec, core);
    if (core != NULL) {
        ((PyTypeObject *)core)->tp_flags &= ~Py_TPFLAGS_BASETYPE;
        Py_DECREF(core);
    }
    if (added < 0) {
        return -1;
    }
    PyObject *layout = layout_numbers();
    int failed = PyModule_AddObjectRef(module, "LAYOUT", layout);
    Py_XDECREF(layout);
    return failed;
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->id_type);
    Py_VISIT(state->parse);
    Py_VISIT(state->is_valid);
    return 0;
}

static int
module_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->id_type);
    Py_CLEAR(state->parse);
    Py_CLEAR(state->is_valid);
    return 0;
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
    .m_name = "msgid.ids._native._speedups",
    .m_size = sizeof(State),
    .m_methods = functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    return PyModuleDef_Init(&module_def);
}
