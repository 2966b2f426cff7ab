/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcosmos for scripting languages; the Python module is `cosmos`.
 *
 * A call that fails raises Error(code, message). A call returns what C writes
 * through a pointer. The structures that C calls take are arguments here.
 */
%module cosmos

%{
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cosmos.h"

static PyObject *cosmos_error_class;
/* The error of this thread's call. */
static _Thread_local struct cosmos_error last_error;

static void raise_last_error(void)
{
    PyObject *args = Py_BuildValue("(is)", (int)last_error.code,
                                   last_error.message);

    if (!args)
        return;
    PyErr_SetObject(cosmos_error_class, args);
    Py_DECREF(args);
}

static int invalid(struct cosmos_error *err, const char *message)
{
    err->code = COSMOS_INVALID;
    snprintf(err->message, sizeof(err->message), "%s", message);
    return COSMOS_INVALID;
}
%}

%init %{
    cosmos_error_class = PyErr_NewException("cosmos.Error", NULL, NULL);
    if (!cosmos_error_class ||
        PyModule_AddObject(m, "Error", cosmos_error_class) < 0)
        return NULL;
    Py_INCREF(cosmos_error_class);
%}
%pythoncode %{
Error = _cosmos.Error
%}

%rename("%(strip:[cosmos_])s") "";
%rename("%(strip:[COSMOS_])s", %$isenumitem) "";
%rename("HostInfo", %$isclass) cosmos_host_info;
%rename("Info", %$isclass) cosmos_info;
%include <stdint.i>

%exception {
    last_error.code = COSMOS_OK;
    $action
    if (last_error.code) {
        raise_last_error();
        SWIG_fail;
    }
}
%typemap(in, numinputs=0) struct cosmos_error *err "$1 = &last_error;"
/* A code; one of a failure was raised. */
%typemap(out) int "$result = SWIG_Py_Void();"
%typemap(out) int cosmos_events_fd "$result = PyLong_FromLong($1);"

/*---------- what calls write ----------*/

%apply unsigned int *OUTPUT { uint32_t *domid };
%apply int *OUTPUT { int *fd };

%typemap(in, numinputs=0) struct cosmos_ctx **out (struct cosmos_ctx *made) "$1 = &made;"
%typemap(argout) struct cosmos_ctx **out {
    $result = SWIG_Python_AppendOutput($result,
        SWIG_NewPointerObj(*$1, $*1_descriptor, 0));
}
%typemap(in, numinputs=0) struct cosmos_events **out (struct cosmos_events *made) "$1 = &made;"
%typemap(argout) struct cosmos_events **out {
    $result = SWIG_Python_AppendOutput($result,
        SWIG_NewPointerObj(*$1, $*1_descriptor, 0));
}

/* A structure of its own for each answer. */
%define OWNED(type, name)
%typemap(in, numinputs=0) struct type *name {
    $1 = calloc(1, sizeof(struct type));
    if (!$1)
        return PyErr_NoMemory();
}
%typemap(argout) struct type *name {
    $result = SWIG_Python_AppendOutput($result,
        SWIG_NewPointerObj($1, $1_descriptor, SWIG_POINTER_OWN));
    $1 = NULL;
}
%typemap(freearg) struct type *name "free($1);"
%enddef
OWNED(cosmos_info, info)
OWNED(cosmos_host_info, info)

%typemap(in, numinputs=0) (struct cosmos_info **list, size_t *count)
    (struct cosmos_info *list, size_t count) "$1 = &list; $2 = &count;"
%typemap(argout) (struct cosmos_info **list, size_t *count) {
    PyObject *all = PyList_New(0);
    for (size_t i = 0; all && i < *$2; i++) {
        struct cosmos_info *copy = malloc(sizeof(*copy));
        PyObject *item;
        if (!copy)
            break;
        *copy = (*$1)[i];
        item = SWIG_NewPointerObj(copy, $*1_descriptor, SWIG_POINTER_OWN);
        PyList_Append(all, item);
        Py_DECREF(item);
    }
    free(*$1);
    $result = SWIG_Python_AppendOutput($result, all);
}

/* Bytes, as they are. */
%typemap(in) (const char *bytes, size_t length) (Py_ssize_t length) {
    if (PyBytes_AsStringAndSize($input, &$1, &length))
        SWIG_fail;
    $2 = length;
}
%apply (const char *bytes, size_t length) {
    (const char *uuid, size_t uuid_bytes),
    (const char *image, size_t image_bytes),
    (const char *mac, size_t mac_bytes) };

/*---------- calls that take a structure ----------*/

%ignore cosmos_spec;
%ignore cosmos_files;
%ignore cosmos_nic;
%ignore cosmos_vale;
%ignore cosmos_error;
%ignore cosmos_open;
%ignore cosmos_domain_create;
%ignore cosmos_domain_restore;
%ignore cosmos_nic_add;
%ignore cosmos_vale_add;
%immutable;
%include "cosmos.h"
%mutable;

%inline %{
int open_host(struct cosmos_ctx **out, struct cosmos_error *err)
{
    return cosmos_open(out, COSMOS_API_VERSION, -1, err);
}

/* Creates a domain, paused; uuid has 16 bytes, domid may be NO_DOMAIN. */
int domain_create(struct cosmos_ctx *ctx, enum cosmos_type type,
                  const char *name, const char *uuid, size_t uuid_bytes,
                  const char *image, size_t image_bytes, uint32_t memory_kib,
                  uint32_t *domid, struct cosmos_error *err)
{
    struct cosmos_spec spec = {
        .domid = COSMOS_NO_DOMAIN, .type = type, .name = name,
        .image = image, .image_bytes = image_bytes,
        .memory_kib = memory_kib,
    };

    if (uuid_bytes != sizeof(spec.uuid))
        return invalid(err, "uuid: expected 16 bytes");
    memcpy(spec.uuid, uuid, sizeof(spec.uuid));
    return cosmos_domain_create(ctx, &spec, domid, err);
}

/* A vif of stock netback; script may be None. */
int nic_add(struct cosmos_ctx *ctx, uint32_t domain, uint32_t devid,
            const char *mac, size_t mac_bytes, const char *bridge,
            const char *script, uint16_t mtu, struct cosmos_error *err)
{
    struct cosmos_nic nic = {
        .devid = devid, .mtu = mtu, .bridge = bridge, .script = script,
    };

    if (mac_bytes != sizeof(nic.mac))
        return invalid(err, "mac: expected 6 bytes");
    memcpy(nic.mac, mac, sizeof(nic.mac));
    return cosmos_nic_add(ctx, domain, &nic, err);
}

/* A vif on the VALE switch. */
int vale_add(struct cosmos_ctx *ctx, uint32_t domain, uint32_t devid,
             const char *mac, size_t mac_bytes, uint16_t mtu, uint32_t slots,
             struct cosmos_error *err)
{
    struct cosmos_vale vale = { .devid = devid, .mtu = mtu, .slots = slots };

    if (mac_bytes != sizeof(vale.mac))
        return invalid(err, "mac: expected 6 bytes");
    memcpy(vale.mac, mac, sizeof(vale.mac));
    return cosmos_vale_add(ctx, domain, &vale, err);
}
%}
