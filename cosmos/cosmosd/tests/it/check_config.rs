// SPDX-License-Identifier: Apache-2.0
//! `cosmosd --check-config`: the configuration is checked, and nothing starts.
use std::process::Command;

#[test]
fn a_configuration_is_checked_without_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let config = path("cosmosd.toml");
    std::fs::write(path("engine"), "").unwrap();
    for (memory, engine, word) in [
        (64, "engine", None),
        (0, "engine", Some("memory_mib: expected at least 1, got 0")),
        (64, "missing", Some("process.engine: ")),
        (64, "", Some("process.engine: expected a file")),
    ] {
        let text = format!(
            "socket = {:?}\nstate_dir = {:?}\nvaled_socket = {:?}\nxenstore_dir = {:?}\n\
             host_kind = \"process\"\nmemory_mib = {memory}\n\
             process = {{ engine = {:?}, first_uid = 200000 }}\n",
            path("socket"),
            path("state"),
            path("valed"),
            path("store"),
            path(engine),
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosmosd"));
        command.arg("--config").arg(&config).arg("--check-config");
        let output = command.output().unwrap();
        let answer = [output.stdout, output.stderr].map(|t| String::from_utf8(t).unwrap());
        assert_eq!(output.status.success(), word.is_none(), "{answer:?}");
        match word {
            None => assert_eq!(answer[0], format!("{}: ok\n", config.display())),
            Some(word) => assert!(answer[1].contains(word), "{answer:?}"),
        }
        assert!(!path("state").exists() && !path("socket").exists());
    }
}
