// SPDX-License-Identifier: Apache-2.0
//! The guest's control thread: the store protocol that installs routers and calls handlers.
#![forbid(unsafe_code)]
