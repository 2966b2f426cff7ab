// SPDX-License-Identifier: Apache-2.0
//! The command line against a real host. Needs root and NOXEN_PREFIX.

use std::process::{Command, Output};
use std::time::Duration;

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
    assert_eq!(done(&bed, &["read", "idle", "d.active"]), "true\n");
    let raw = done(&bed, &["read", "idle", "d.active", "--raw"]);
    assert_eq!(raw, "true");
    assert!(done(&bed, &["handlers", "idle"]).contains("c.count"));
    assert!(done(&bed, &["list"]).contains("running"));
    done(&bed, &["pause", "idle"]);
    assert!(done(&bed, &["-o", "json", "list"]).contains("\"paused\""));
    done(&bed, &["unpause", "idle"]);
    assert!(done(&bed, &["info", "idle"]).contains("idle.click"));
    assert!(done(&bed, &["install", "idle", &path("idle.click")]).contains("generation"));
    let console = done(&bed, &["console", "idle"]);
    assert!(console.contains("clickos") && !console.contains("x0d"));
    assert!(done(&bed, &["host"]).contains("engine_sha256"));
    done(&bed, &["destroy", "idle"]);
    done(&bed, &["destroy", "idle"]);
    assert_eq!(bed.remains(), Vec::<String>::new());
}

/// Scripts get one JSON text from each verb.
#[test]
fn scripts_get_json() {
    let bed = Testbed::start();
    let file = bed.path("idle.click");
    std::fs::write(&file, CONFIG).unwrap();
    let file = file.to_str().unwrap();
    let json = |line: &str| {
        let words = line
            .split(' ')
            .map(|word| if word == "FILE" { file } else { word });
        let words: Vec<_> = ["-o", "json"].into_iter().chain(words).collect();
        let text = done(&bed, &words);
        let parsed: serde_json::Result<serde_json::Value> = serde_json::from_str(&text);
        parsed.unwrap_or_else(|e| panic!("{line}: {e}: {text}"))
    };
    let created = json("create --name g --memory 16 --vif port=a --config FILE");
    let info = json("info g");
    assert_eq!(
        (&info["uuid"], &info["state"]),
        (&created["uuid"], &"running".into())
    );
    assert_eq!(json("list")[0]["name"], "g");
    assert_eq!(json("host")["guests"], 1);
    assert_eq!(json("install g FILE")["generation"], 2);
    assert_eq!(json("install g FILE --rid 3 --halted")["generation"], 1);
    assert_eq!(json("routers g")[1]["state"], "Halted");
    // By the name before 1.0.
    assert_eq!(json("load g FILE --rid 4")["generation"], 1);
    assert_eq!(json("routers g")[2]["state"], "Halted");
    assert_eq!(json("read g c.count")["value"], "0");
    assert!(
        json("handlers g")
            .as_array()
            .is_some_and(|all| all.len() > 5)
    );
    assert!(json("console g")["text"].is_string());
    for short in [
        "start g --rid 3",
        "stop g --rid 3",
        "write g d.active false",
        "pause g",
        "unpause g",
        "vif-set g 0 down",
        "vif-remove g 0",
    ] {
        assert_eq!(json(short), serde_json::json!({}), "{short}");
    }
    assert_eq!(json("remove g --rid 3")["generation"], 2);
    for _ in 0..2 {
        assert_eq!(json("destroy g"), serde_json::json!({}));
    }
    assert_eq!(json("list"), serde_json::json!([]));
}

#[test]
fn a_shell_gets_its_completion() {
    for (shell, words) in [
        ("bash", "complete -F _cosmos"),
        ("zsh", "#compdef cosmos"),
        ("fish", "complete -c cosmos"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosmos"));
        let out = command.args(["completion", shell]).output().unwrap();
        let script = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && script.contains(words), "{shell}");
        assert!(script.contains("image-add"), "{shell}");
    }
}

#[test]
fn the_doctor_of_a_host_without_xen_asks_for_the_daemons_only() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosmos"));
    command.args(["doctor", "--socket", "/nonexistent/c.sock"]);
    command.args(["--valed", "/nonexistent/v.sock"]);
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("start cosmosd") && text.contains("start valed"));
    assert!(!text.contains("dom0"), "{text}");
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
    assert_eq!(status, Some(4));
    assert!(words.contains("/nonexistent"), "{words}");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

const SEVEN: &str = "s :: InfiniteSource(LIMIT 7) -> c :: Counter -> d :: Discard;\n";

/// A guest whose source has sent 7 packets and is off.
fn create_seven(bed: &Testbed, memory: &str) {
    let path = bed.path("seven.click");
    std::fs::write(&path, SEVEN).expect("the directory is ours");
    let config = path.to_str().expect("an ASCII path");
    let more = ["--memory", memory, "--vif", "port=a,segment=1"];
    done(bed, &[&["create", "--config", config][..], &more].concat());
    cosmos_testbed::eventually("seven packets", || {
        (done(bed, &["read", "seven", "c.count"]).trim() == "7").then_some(())
    });
    done(bed, &["write", "seven", "s.active", "false"]);
    done(bed, &["install", "seven", config, "--rid", "5", "--halted"]);
}

#[test]
fn a_guest_moves_with_its_routers_values_and_counters() {
    let (here, there) = (Testbed::start(), Testbed::start());
    create_seven(&here, "16");
    let to = there.socket();
    let moved = done(
        &here,
        &[
            "-o",
            "json",
            "migrate",
            "seven",
            "--to",
            to.to_str().unwrap(),
        ],
    );
    let moved: serde_json::Value = serde_json::from_str(&moved).unwrap();
    assert_eq!(moved["not_carried"], serde_json::json!([]));
    assert_eq!(failed(&here, &["info", "seven"]).0, Some(3));
    assert_eq!(here.remains(), Vec::<String>::new());
    let read = |handler: &str| done(&there, &["read", "seven", handler]).trim().to_owned();
    assert_eq!(read("s.active"), "false");
    assert_eq!(
        (read("c.count"), read("config")),
        ("7".into(), SEVEN.trim().into())
    );
    let routers = done(&there, &["routers", "seven"]);
    let rows: Vec<_> = routers.lines().skip(1).collect();
    let row = |rid, state| format!("{rid:3}  {state:7}  seven.click");
    assert_eq!(rows, [row("0", "Running"), row("5", "Halted")]);
    done(&there, &["destroy", "seven"]);
}

#[test]
fn a_guest_that_cannot_move_goes_on_where_it_is() {
    let (here, there) = (Testbed::start(), Testbed::start());
    create_seven(&here, "200");
    std::fs::write(there.path("idle.click"), CONFIG).unwrap();
    let idle = there.path("idle.click");
    let idle = [
        "create",
        "--config",
        idle.to_str().unwrap(),
        "--memory",
        "100",
    ];
    done(&there, &idle);
    let to = there.socket();
    let to = to.to_str().unwrap();
    let (status, words) = failed(&here, &["migrate", "seven", "--to", to]);
    assert_eq!(status, Some(1));
    assert!(words.contains("no-memory: 200 MiB asked"), "{words}");
    assert!(words.contains("it continues where it was"), "{words}");
    let (status, words) = failed(
        &here,
        &["migrate", "seven", "--to", here.socket().to_str().unwrap()],
    );
    assert_eq!(status, Some(1));
    assert!(words.contains("has seven already"), "{words}");
    assert_eq!(
        failed(&here, &["migrate", "seven", "--to", "/nonexistent"]).0,
        Some(4)
    );
    assert!(done(&here, &["routers", "seven"]).contains("0    Running"));
    assert_eq!(done(&here, &["read", "seven", "c.count"]).trim(), "7");
    assert_eq!(failed(&there, &["info", "seven"]).0, Some(3));
    done(&here, &["remove", "seven"]);
    done(&there, &["destroy", "idle"]);
    // By the name before 1.0.
    done(&here, &["move", "seven", "--to", to]);
    let routers = done(&there, &["routers", "seven"]);
    assert_eq!(
        routers.lines().skip(1).collect::<Vec<_>>(),
        ["5    Halted  seven.click"]
    );
    done(&there, &["destroy", "seven"]);
}

#[test]
fn a_guest_goes_on_when_whoever_moves_it_is_killed() {
    let (here, there) = (Testbed::start(), Testbed::start());
    let to = there.socket();
    create_seven(&here, "16");
    for moment_ms in [4, 8, 16, 32, 64] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosmos"));
        command.env("COSMOSD_SOCKET", here.socket());
        let mut moving = command
            .args(["migrate", "seven", "--to", to.to_str().unwrap()])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(moment_ms));
        moving.kill().unwrap();
        moving.wait().unwrap();
        // Until its host notices, no client may change the guest.
        cosmos_testbed::eventually("its host lets go", || {
            let written = cosmos(&here, &["write", "seven", "s.active", "false"]);
            (written.status.code() != Some(1)).then_some(())
        });
        // The target keeps it only if it runs there.
        let is_there = cosmos_testbed::eventually("it is gone there, or runs", || {
            let (is_there, runs_there) = seven_on(&there);
            (is_there == runs_there).then_some(is_there)
        });
        let (is_here, runs_here) = seven_on(&here);
        assert!(is_here || is_there, "{moment_ms} ms: it is gone");
        assert!(!(runs_here && is_there), "{moment_ms} ms: it runs twice");
        done(&there, &["destroy", "seven"]);
        if !runs_here {
            done(&here, &["destroy", "seven"]);
            create_seven(&here, "16");
        }
    }
}

#[test]
fn of_two_moves_of_one_guest_one_is_refused() {
    let (here, there, elsewhere) = (Testbed::start(), Testbed::start(), Testbed::start());
    create_seven(&here, "16");
    let targets = [there.socket(), elsewhere.socket()];
    let moved = std::thread::scope(|scope| {
        let moves = targets.each_ref().map(|to| {
            let to = to.to_str().unwrap();
            scope.spawn(|| cosmos(&here, &["migrate", "seven", "--to", to]))
        });
        moves.map(|thread| thread.join().unwrap())
    });
    let refused = moved.iter().find(|out| !out.status.success()).unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(moved.iter().any(|out| out.status.success()), "{words}");
    let known = words.contains("is being moved") || words.contains("no-such-guest");
    assert!(known, "{words}");
    assert!(!seven_on(&here).0);
    let runs = [seven_on(&there), seven_on(&elsewhere)];
    assert_eq!(runs.iter().filter(|on| **on == (true, true)).count(), 1);
    assert_eq!(runs.iter().filter(|on| **on == (false, false)).count(), 1);
}

/// True if a host has the guest `seven`; true if its first router runs there. The router that a
/// move's target starts with does not count.
fn seven_on(bed: &Testbed) -> (bool, bool) {
    if cosmos(bed, &["info", "seven"]).status.code() == Some(3) {
        return (false, false);
    }
    let routers = cosmos(bed, &["routers", "seven"]).stdout;
    let runs = String::from_utf8_lossy(&routers).contains("0    Running");
    let is_whole = cosmos(bed, &["read", "seven", "c.count"]).status.success();
    (true, runs && is_whole)
}

#[test]
fn a_guest_is_somewhere_and_runs_once_whenever_the_target_dies() {
    let (here, mut there) = (Testbed::start(), Testbed::start());
    let to = there.socket();
    for moment_ms in [1, 4, 8, 16, 32] {
        create_seven(&here, "16");
        std::thread::scope(|scope| {
            let moved =
                scope.spawn(|| cosmos(&here, &["migrate", "seven", "--to", to.to_str().unwrap()]));
            std::thread::sleep(Duration::from_millis(moment_ms));
            there.cosmosd.kill();
            moved.join().unwrap();
        });
        there.restart_cosmosd();
        let ((is_here, runs_here), (is_there, runs_there)) = (seven_on(&here), seven_on(&there));
        assert!(is_here || is_there, "{moment_ms} ms: it is gone");
        assert!(!(runs_here && runs_there), "{moment_ms} ms: it runs twice");
        let keeper = if is_here { &here } else { &there };
        assert_eq!(done(keeper, &["read", "seven", "c.count"]).trim(), "7");
        done(&here, &["destroy", "seven"]);
        done(&there, &["destroy", "seven"]);
    }
}
