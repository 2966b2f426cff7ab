// SPDX-License-Identifier: Apache-2.0
//! Finds the elements: every file `src/elements/<group>/<name>.rs` becomes a module and an entry of the registry.
//! An entry has the group and, if feature `docs` is set, the file's text with its documentation.
//! With `CLICKOS_ELEMENTS=standard/counter,ip/ip_filter` in the environment only those are built in.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the folder of elements is part of the crate");
    let mut paths: Vec<_> = entries
        .map(|e| e.expect("a readable folder").path())
        .collect();
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .and_then(|s| s.to_str())
        .expect("names are plain ASCII")
        .to_string()
}

/// Groups that are built only where a feature asks for them, and what cargo calls it then.
const FEATURES: [(&str, &str); 2] = [
    ("regex", "CARGO_FEATURE_REGEX"),
    ("inspect", "CARGO_FEATURE_REGEX"),
];

fn main() {
    println!("cargo::rerun-if-changed=src/elements");
    let root =
        PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("src/elements");
    println!("cargo::rerun-if-env-changed=CLICKOS_ELEMENTS");
    // groups that are features of the crate
    let missing = |(group, feature)| env::var_os(feature).is_none().then_some(group);
    let missing: Vec<&str> = FEATURES.into_iter().filter_map(missing).collect();
    let asked = env::var("CLICKOS_ELEMENTS").ok();
    println!("cargo::rustc-check-cfg=cfg(partial)");
    if asked.is_some() {
        println!("cargo::rustc-cfg=partial");
    }
    // IPFilter offloads its rules where the image has room for the group.
    // It logs what it drops where there is room for the firewall's flows.
    println!("cargo::rustc-check-cfg=cfg(flow_log)");
    if asked.as_ref().is_none_or(|asked| asked.contains("flows/")) {
        println!("cargo::rustc-cfg=flow_log");
    }
    // ServerPool knows IPv6, HTTP and statistics where there is room for the balancer of IPv6.
    println!("cargo::rustc-check-cfg=cfg(services)");
    if asked.as_ref().is_none_or(|asked| asked.contains("flows/")) {
        println!("cargo::rustc-cfg=services");
    }
    // Elements list what changed for the other guest of a pair where there is room for VRRP.
    println!("cargo::rustc-check-cfg=cfg(pairs)");
    if asked.as_ref().is_none_or(|asked| asked.contains("ha/")) {
        println!("cargo::rustc-cfg=pairs");
    }
    println!("cargo::rustc-check-cfg=cfg(offload)");
    if asked
        .as_ref()
        .is_none_or(|asked| asked.contains("offload/"))
    {
        println!("cargo::rustc-cfg=offload");
    }
    let with_docs = env::var_os("CARGO_FEATURE_DOCS").is_some();
    let (mut modules, mut entries) = (String::new(), String::new());
    for group_dir in sorted(&root).into_iter().filter(|p| p.is_dir()) {
        let group = stem(&group_dir);
        if missing.contains(&group.as_str()) {
            continue;
        }
        for file in sorted(&group_dir)
            .into_iter()
            .filter(|p| p.extension().is_some_and(|e| e == "rs"))
        {
            let name = stem(&file);
            let element = format!("{group}/{name}");
            let left_out = |asked: &String| asked.split(',').all(|a| a != element);
            if asked.as_ref().is_some_and(left_out) {
                continue;
            }
            let source = match with_docs {
                true => format!("include_str!({file:?})"),
                false => "\"\"".to_string(),
            };
            let _ = writeln!(modules, "#[path = {file:?}]\nmod {group}_{name};");
            let _ = writeln!(
                entries,
                "Entry {{ class: &{group}_{name}::ELEMENT, group: {group:?}, source: {source} }},",
            );
        }
    }
    let table = format!("{modules}\npub(crate) static ENTRIES: &[Entry] = &[\n{entries}];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo")).join("elements.rs");
    fs::write(out, table).expect("a writable output folder");
}
