// SPDX-License-Identifier: Apache-2.0
//! Xen store wire codec and clients over a socket and over a ring.
