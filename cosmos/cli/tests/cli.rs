// SPDX-License-Identifier: Apache-2.0
//! The command line against a real host. Needs root and NOXEN_PREFIX.

use std::process::{Command, Output};

use cosmos_testbed::Testbed;

const CONFIG: &str = "c :: Counter; d :: Discard; Idle -> c -> d;\n";

fn cosmos(bed: &Testbed, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosmos"));
    command.env("COSMOSD_SOCKET", bed.socket()).args(args);
    command
        .output()
        .expect("the program was built with this test")
}

/// Standard output of a command that must succeed.
fn done(bed: &Testbed, args: &[&str]) -> String {
    let out = cosmos(bed, args);
    assert!(
        out.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Exit status and words of a command that must fail.
fn failed(bed: &Testbed, args: &[&str]) -> (Option<i32>, String) {
    let out = cosmos(bed, args);
    assert!(!out.status.success(), "{args:?}");
    (
        out.status.code(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

#[test]
fn a_guests_life_on_the_command_line() {
    let bed = Testbed::start();
    std::fs::write(bed.path("idle.click"), CONFIG).unwrap();
    let file = "name = 'idle'\nmemory = 16\nconfig = 'idle.click'\nvif = ['port=a', 'port=b,ip=10.0.0.1']\n";
    std::fs::write(bed.path("idle.cfg"), file).unwrap();
    let path = |name: &str| bed.path(name).to_str().unwrap().to_owned();
    done(
        &bed,
        &["create", &path("idle.cfg"), "--write", "d.active=false"],
    );
    assert_eq!(done(&bed, &["read", "idle", "d.active"]).trim(), "false");
    done(&bed, &["write", "idle", "d.active", "true"]);
    assert_eq!(done(&bed, &["read", "idle", "d.active"]).trim(), "true");
    assert!(done(&bed, &["handlers", "idle"]).contains("c.count"));
    assert!(done(&bed, &["list"]).contains("running"));
    done(&bed, &["pause", "idle"]);
    assert!(done(&bed, &["-o", "json", "list"]).contains("\"paused\""));
    done(&bed, &["unpause", "idle"]);
    assert!(done(&bed, &["info", "idle"]).contains("idle.click"));
    assert!(done(&bed, &["install", "idle", &path("idle.click")]).contains("generation"));
    assert!(done(&bed, &["console", "idle"]).contains("clickos"));
    assert!(done(&bed, &["host"]).contains("engine_sha256"));
    done(&bed, &["destroy", "idle"]);
    done(&bed, &["destroy", "idle"]);
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn the_exit_status_says_what_went_wrong() {
    let bed = Testbed::start();
    let bad = bed.path("bad.click");
    std::fs::write(&bad, "x :: NoSuchClass;\n").unwrap();
    let bad = bad.to_str().unwrap();
    let (status, words) = failed(&bed, &["create", "--config", bad]);
    assert_eq!(status, Some(1));
    assert!(words.contains("bad-config: bad.click:1:"), "{words}");
    for args in [
        &["info", "nobody"][..],
        &["read", "nobody", "a.b"],
        &["pause", "nobody"],
    ] {
        let (status, words) = failed(&bed, args);
        assert_eq!(status, Some(3));
        assert!(words.contains("no guest \"nobody\""), "{words}");
    }
    let missing = "00000000-0000-4000-8000-000000000009";
    assert_eq!(failed(&bed, &["info", missing]).0, Some(3));
    for args in [
        &["bogus"][..],
        &["create"],
        &["create", "/nonexistent.cfg"],
        &["create", "--config", "/nonexistent.click"],
        &["create", "--config", bad, "--vif", "vlan=1"],
        &["create", "--config", bad, "--write", "a.b"],
        &["read", "x", "a.b", "--rid", "64"],
        &["write", "x", "a.b"],
    ] {
        assert_eq!(failed(&bed, args).0, Some(2), "{args:?}");
    }
    let (status, words) = failed(&bed, &["--socket", "/nonexistent", "list"]);
    assert_eq!(status, Some(1));
    assert!(words.contains("/nonexistent"), "{words}");
    assert_eq!(bed.remains(), Vec::<String>::new());
}
