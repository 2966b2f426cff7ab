// SPDX-License-Identifier: Apache-2.0
//! The daemon itself: its configuration, its log, its metrics, and what clients can make it hold.
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use crate::common::{PATIENCE, Valed, eventually, run};
use control_socket::{Client, Limits};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;

#[test]
fn long_lines_and_clients_that_do_not_read_are_cut_off() {
    let valed = Valed::start();
    let mut long = UnixStream::connect(&valed.socket).unwrap();
    let _ = long.write_all(&vec![b' '; (4 << 20) + 2]);
    let mut answer = String::new();
    long.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = long.read_to_string(&mut answer);
    assert!(answer.contains("too-long"), "{answer}");
    // Asks and never reads: it stops being served, the others do not notice.
    let mut deaf = UnixStream::connect(&valed.socket).unwrap();
    deaf.set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    while deaf
        .write_all(b"{\"v\":1,\"id\":1,\"verb\":\"port-list\"}\n")
        .is_ok()
    {}
    valed.client().port_list(None).unwrap();
    // The deaf one is not cut off yet: the answer did not wait for that.
    deaf.set_nonblocking(true).unwrap();
    let refused = deaf.write_all(b" ").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn connections_and_descriptors_do_not_run_out() {
    let mut valed = Valed::start();
    let proc = format!("/proc/{}", valed.pid());
    let count = || std::fs::read_dir(format!("{proc}/fd")).unwrap().count();
    let connections = || {
        let tasks = std::fs::read_dir(format!("{proc}/task")).unwrap();
        let names =
            tasks.filter_map(|t| std::fs::read_to_string(t.unwrap().path().join("comm")).ok());
        names.filter(|name| name == "control\n").count()
    };
    eventually("the connections of the start end", || connections() == 0);
    let before = count();
    let most = Limits::default().connections_per_uid;
    let idle: Vec<_> = (0..300)
        .map(|_| UnixStream::connect(&valed.socket).unwrap())
        .collect();
    let mut fds: Vec<_> = idle
        .iter()
        .map(|socket| PollFd::new(socket, PollFlags::empty()))
        .collect();
    eventually("all others are refused", || {
        poll(&mut fds, Some(&Default::default())).unwrap() == idle.len() - most
    });
    assert_eq!(count(), before + most);
    drop(idle);
    eventually("connections end", || count() == before);
    let mut client = Client::connect(&valed.socket).unwrap();
    let (one, _other) = UnixStream::pair().unwrap();
    for _ in 0..100 {
        client
            .call_with_fds("hello", json!({}), &[one.as_fd(); 8])
            .unwrap();
    }
    drop(client);
    eventually("descriptors are closed", || count() == before);
    for _ in 0..20 {
        let _far_end = valed.add("p", json!({"port_security": false}));
        valed
            .client()
            .port_remove(&"vale0".parse().unwrap(), &"p".parse().unwrap())
            .unwrap();
    }
    eventually("ports leave nothing", || count() == before);
    assert_eq!(valed.stop(), Some(0));
    assert!(!valed.socket.exists());
}

/// The endpoint answers while a client reads nothing, and valed forwards control meanwhile.
#[test]
fn metrics_are_served_on_loopback_only() {
    let valed = Valed::start();
    let _far_end = valed.add("p", json!({"port_security": false}));
    let ask = |path: &'static str| {
        let asking = valed.namespace.thread(move || {
            let mut stream = std::net::TcpStream::connect("127.0.0.1:9477").unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        asking.join().unwrap()
    };
    let answer = ask("/metrics");
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.contains("vale_port_up{switch=\"vale0\",port=\"p\"} 1\n"));
    assert!(ask("/other").starts_with("HTTP/1.0 404"));
    let silent = valed
        .namespace
        .thread(|| std::net::TcpStream::connect("127.0.0.1:9477").unwrap());
    let _silent = silent.join().unwrap();
    assert_eq!(valed.client().port_list(None).unwrap().len(), 1);
    assert!(ask("/metrics").contains("vale_metrics_truncated 0"));
    let config = valed.dir.path().join("wrong.toml");
    std::fs::write(&config, "socket = \"x\"\nmetrics = \"0.0.0.0:1\"\n").unwrap();
    let mut wrong = Command::new(env!("CARGO_BIN_EXE_valed"));
    let output = wrong.arg("--config").arg(&config).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("0.0.0.0:1 is not a loopback address"),
        "{text}"
    );
}

#[test]
fn the_log_has_the_pages_of_rings_once() {
    let valed = Valed::start();
    let log = std::fs::read_to_string(valed.dir.path().join("log")).unwrap();
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains(" pages: "))
        .collect();
    let [line] = lines[..] else {
        panic!("{log}");
    };
    let choice = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    let is_small = choice.map_or(true, |text| {
        text.contains("[never]") || text.contains("[deny]")
    });
    assert_eq!(line.contains("small pages"), is_small, "{line}");
    assert!(line.contains("INFO"), "{line}");
}

#[test]
fn a_configuration_with_wrong_workers_is_refused() {
    for (lines, error) in [
        ("workers = 0", "workers: 0 is outside 1..=16"),
        ("workers = 17", "workers: 17 is outside 1..=16"),
        ("workers = 2\ncpus = [0]", "cpus: 1 given for 2 workers"),
        ("workers = 1\ncpus = [5000]", "cpus: 5000 is above 1023"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("valed.toml");
        let socket = dir.path().join("socket");
        std::fs::write(&config, format!("socket = {socket:?}\n{lines}\n")).unwrap();
        let output = run(
            env!("CARGO_BIN_EXE_valed"),
            &["--config", config.to_str().unwrap()],
        );
        assert!(!output.status.success(), "{lines}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(error), "{text}");
    }
}

#[test]
fn a_configuration_is_checked_without_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let (config, socket) = (dir.path().join("valed.toml"), dir.path().join("socket"));
    for (lines, good) in [
        ("workers = 2", true),
        ("workers = 17", false),
        ("cpus = [5000]", false),
        ("wokers = 1", false),
        ("[roles]\nnobody = [1]", false),
    ] {
        std::fs::write(&config, format!("socket = {socket:?}\n{lines}\n")).unwrap();
        let path = config.to_str().unwrap();
        let arguments = ["--config", path, "--check-config"];
        let output = run(env!("CARGO_BIN_EXE_valed"), &arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.success(), good, "{lines}");
        assert_eq!(text == format!("{path}: ok\n"), good, "{lines}: {text}");
        assert!(!socket.exists(), "{lines}");
    }
}
