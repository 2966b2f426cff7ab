// SPDX-License-Identifier: Apache-2.0
//! The elements, one file each.
#![forbid(unsafe_code)]
