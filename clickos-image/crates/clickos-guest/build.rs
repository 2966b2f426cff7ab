// SPDX-License-Identifier: Apache-2.0
//! Links the guests without a C library, at the linker script's address. Writes the cases of the
//! conformance corpus as a table of texts.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    if env::var_os("CARGO_FEATURE_GUEST").is_some() {
        link(&here.join("../../image/guest.ld"));
    }
    if env::var_os("CARGO_FEATURE_CORPUS").is_some() {
        embed(&here.join("../../conformance"));
    }
}

fn link(script: &Path) {
    println!("cargo::rerun-if-changed={}", script.display());
    let script = format!("-Wl,-T,{}", script.display());
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

fn embed(corpus: &Path) {
    println!("cargo::rerun-if-changed={}", corpus.display());
    let mut table = String::new();
    for group in sorted(corpus).iter().filter(|path| path.is_dir()) {
        for file in sorted(group)
            .iter()
            .filter(|f| f.extension() == Some("clicktest".as_ref()))
        {
            let name = file.strip_prefix(corpus).expect("found below it");
            let name = name.with_extension("");
            let _ = writeln!(table, "({name:?}, include_str!({file:?})),");
        }
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let table = format!("static CORPUS: &[(&str, &str)] = &[\n{table}];\n");
    fs::write(out.join("corpus.rs"), table).expect("a writable output folder");
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the corpus is part of the project");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    paths
}
