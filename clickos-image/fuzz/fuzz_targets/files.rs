// SPDX-License-Identifier: Apache-2.0
//! See `click_fuzz::files`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| click_fuzz::files(data));
