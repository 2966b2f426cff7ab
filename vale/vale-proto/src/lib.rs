// SPDX-License-Identifier: Apache-2.0
//! The requests and answers of valed's control socket.
#![forbid(unsafe_code)]
