/* What nothing can be faster than: functions that do no more than make the object they return. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

static PyObject *
empty_str(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_New(34, 127);
}

static PyObject *
empty_list(PyObject *Py_UNUSED(module), PyObject *number)
{
    Py_ssize_t n = PyLong_AsSsize_t(number);
    PyObject *list = n < 0 ? NULL : PyList_New(n);
    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
        PyObject *text = PyUnicode_New(34, 127);
        if (text == NULL) {
            Py_CLEAR(list);
            break;
        }
        memset(PyUnicode_1BYTE_DATA(text), '0', 34);
        PyList_SET_ITEM(list, i, text);
    }
    return list;
}

/* The first touch of fresh memory, at its cheapest: pages as large as the system gives, and one pass of memset. */
static PyObject *
fresh_bytes(PyObject *Py_UNUSED(module), PyObject *number)
{
    Py_ssize_t n = PyLong_AsSsize_t(number);
    PyObject *bytes = n < 0 ? NULL : PyBytes_FromStringAndSize(NULL, n);
    if (bytes != NULL) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        uintptr_t start = ((uintptr_t)PyBytes_AS_STRING(bytes) + 4095) & ~(uintptr_t)4095;
        (void)madvise((void *)start, (size_t)n & ~(size_t)4095, MADV_HUGEPAGE);
#endif
        memset(PyBytes_AS_STRING(bytes), '1', (size_t)n);
    }
    return bytes;
}

static PyMethodDef functions[] = {
    {"empty_str", empty_str, METH_NOARGS, NULL},
    {"empty_list", empty_list, METH_O, NULL},
    {"fresh_bytes", fresh_bytes, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "floor", .m_methods = functions};

PyMODINIT_FUNC
PyInit_floor(void)
{
    return PyModule_Create(&module_def);
}
