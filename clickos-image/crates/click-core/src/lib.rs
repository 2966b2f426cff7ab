// SPDX-License-Identifier: Apache-2.0
//! The Click engine: packets, elements, routers, handlers, scheduling.
