/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that bindings in other languages rely on (cosmos/cosmos-xen/src/ffi.rs). */
#include "cosmos.h"

_Static_assert(COSMOS_BUILDERS == 2, "see cosmos/cosmos-xen/src/ffi.rs");
_Static_assert(sizeof(struct cosmos_error) == 516, "see cosmos/cosmos-xen/src/ffi.rs");
_Static_assert(sizeof(struct cosmos_files) == 8, "see cosmos/cosmos-xen/src/ffi.rs");
_Static_assert(sizeof(struct cosmos_spec) == 72, "see cosmos/cosmos-xen/src/ffi.rs");
_Static_assert(sizeof(struct cosmos_info) == 312, "see cosmos/cosmos-xen/src/ffi.rs");
_Static_assert(sizeof(struct cosmos_host_info) == 24,
               "see cosmos/cosmos-xen/src/ffi.rs");
_Static_assert(sizeof(struct cosmos_nic) == 32, "see cosmos/cosmos-xen/src/ffi.rs");
_Static_assert(sizeof(struct cosmos_vale) == 16, "see cosmos/cosmos-xen/src/ffi.rs");
