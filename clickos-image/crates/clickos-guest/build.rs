// SPDX-License-Identifier: Apache-2.0
//! How the guests are linked: without a C library, at the address the linker script says.
use std::env;

fn main() {
    println!("cargo::rerun-if-changed=../../image/guest.ld");
    if env::var_os("CARGO_FEATURE_GUEST").is_none() {
        return;
    }
    let here = env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let script = format!("-Wl,-T,{here}/../../image/guest.ld");
    let plain = "-Wl,--build-id=none,-z,max-page-size=4096,-z,noexecstack,--gc-sections";
    for argument in [
        "-nostdlib",
        "-nostartfiles",
        "-static",
        "-no-pie",
        &script,
        plain,
    ] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
