// SPDX-License-Identifier: Apache-2.0
//! See `click_fuzz::elements`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| click_fuzz::elements(data));
