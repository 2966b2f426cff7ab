// SPDX-License-Identifier: Apache-2.0
//! With feature `libxl`: compiles libcosmos and links it with Xen's libraries.
//!
//! `XEN_ROOT` is where Debian's libxen-dev and the libraries are unpacked; without it they are
//! expected where the package puts them.

fn main() {
    println!("cargo:rerun-if-env-changed=XEN_ROOT");
    #[cfg(feature = "libxl")]
    libxl::build();
}

#[cfg(feature = "libxl")]
mod libxl {
    use std::path::{Path, PathBuf};

    const LIBRARIES: [&str; 4] = ["xenlight", "xenctrl", "xenstore", "xentoollog"];

    pub fn build() {
        let root = std::env::var_os("XEN_ROOT").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let include = root.join("usr/include");
        assert!(
            include.join("libxl.h").exists(),
            "{}: no libxl.h; install libxen-dev, or unpack it and set XEN_ROOT",
            include.display()
        );
        compile(&include);
        link(&root.join("usr/lib/x86_64-linux-gnu"));
    }

    fn compile(include: &Path) {
        println!("cargo:rerun-if-changed=../lib");
        println!("cargo:rerun-if-changed=../include");
        let sources = std::fs::read_dir("../lib").expect("libcosmos lies beside this crate");
        let sources = sources.map(|entry| entry.expect("a readable directory").path());
        cc::Build::new()
            .files(sources.filter(|path| path.extension().is_some_and(|e| e == "c")))
            .std("gnu11")
            .include("../include")
            .flag("-isystem")
            .flag(include)
            .flag("-Wno-format-truncation")
            .warnings(true)
            .extra_warnings(true)
            .compile("cosmos");
    }

    fn link(libraries: &Path) {
        println!("cargo:rustc-link-search=native={}", libraries.display());
        for library in LIBRARIES {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}
