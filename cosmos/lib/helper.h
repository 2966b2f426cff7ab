/* SPDX-License-Identifier: Apache-2.0 */
/* Helper processes; docs/adr/0012-libcosmos.md. */
#ifndef COSMOS_HELPER_H
#define COSMOS_HELPER_H

#include "job.h"

/* A helper's answer. */
struct report {
    int rc;
    uint32_t domid;
    struct cosmos_error err;
};

/* The life of the process that forks helpers: does jobs for every socket
 * that it receives, and ends, with all of them, when control closes. It
 * keeps held open. */
void cosmos_breed(int control, int held) __attribute__((noreturn));

#endif
