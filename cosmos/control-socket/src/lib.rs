// SPDX-License-Identifier: Apache-2.0
//! JSON lines over a UNIX socket with roles by peer credentials and descriptor passing.
#![forbid(unsafe_code)]
