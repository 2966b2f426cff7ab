// SPDX-License-Identifier: Apache-2.0
//! What a confined process cannot do any more. This program is parent and child: the child
//! confines itself exactly as the guest does and then tries one thing.
#![allow(clippy::unwrap_used)] // A test.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

/// The call that the child tries after confining itself, and the end that it must have.
const FORBIDDEN: [(&str, fn()); 18] = [
    ("open a file", || drop(std::fs::File::open("/"))),
    ("make a file", || drop(std::fs::write("/x", b"x"))),
    ("make a socket", || {
        drop(std::net::UdpSocket::bind("127.0.0.1:0"))
    }),
    ("make a UNIX socket", || {
        drop(std::os::unix::net::UnixDatagram::unbound())
    }),
    ("start a process", || {
        drop(Command::new("/bin/true").status())
    }),
    ("start a thread", || {
        drop(std::thread::Builder::new().spawn(|| {}))
    }),
    ("kill its parent", || {
        _ = rustix::process::kill_process(parent(), signal())
    }),
    ("kill itself by another signal", || {
        call(libc::SYS_tgkill, own(), own(), libc::SIGKILL as i64)
    }),
    ("abort its parent", || {
        call(libc::SYS_tgkill, 1, 1, libc::SIGABRT as i64)
    }),
    ("duplicate a descriptor", || {
        drop(std::io::stdin().as_fd().try_clone_to_owned())
    }),
    ("shorten a file", || call(libc::SYS_ftruncate, 1, 0, 0)),
    ("change its identity", || call(libc::SYS_setuid, 0, 0, 0)),
    ("trace a process", || call(libc::SYS_ptrace, 0, 0, 0)),
    ("load a filter", || call(libc::SYS_seccomp, 0, 0, 0)),
    ("map executable memory", || {
        map(libc::PROT_READ | libc::PROT_EXEC, libc::MAP_ANONYMOUS)
    }),
    ("map a file", || map(libc::PROT_READ, 0)),
    ("map a file that can be executed", || {
        map(libc::PROT_READ | libc::PROT_EXEC, libc::MAP_SHARED)
    }),
    ("make memory executable", || {
        call(libc::SYS_mprotect, 0, 4096, libc::PROT_EXEC as i64)
    }),
];

/// A permitted call of the child; the child ends with 0.
const ALLOWED: [(&str, fn()); 5] = [
    ("allocate within its memory", || {
        drop(std::hint::black_box(vec![1_u8; 8 << 20]))
    }),
    ("tell the time", || _ = std::time::SystemTime::now()),
    ("close a descriptor", || {
        call(libc::SYS_fcntl, 0, libc::F_GETFD as i64, 0);
        call(libc::SYS_close, 0, 0, 0);
    }),
    ("sleep", || {
        std::thread::sleep(std::time::Duration::from_millis(1))
    }),
    ("write to its console", || println!("  child: alive")),
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("--child") => child(&std::env::args().nth(2).unwrap()),
        _ => parent_of_all(),
    }
}

fn parent_of_all() -> ExitCode {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test has to be run by root"
    );
    let mut failed = 0;
    let mut check = |what: &str, wanted: &str, got: String| {
        let good = wanted == got;
        println!("{what}: {got}{}", if good { "" } else { " -- FAILED" });
        failed += usize::from(!good);
    };
    for (what, _) in FORBIDDEN {
        check(what, "signal 31", run(what));
    }
    for (what, _) in ALLOWED {
        check(what, "exit 0", run(what));
    }
    check("abort", "signal 6", run("abort"));
    check(
        "allocate beyond its memory",
        "signal 6",
        run("allocate beyond its memory"),
    );
    check(
        "write beyond its console",
        "exit 0",
        run("write beyond its console"),
    );
    println!("{failed} of {} failed", FORBIDDEN.len() + ALLOWED.len() + 3);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a child; tells how it ended.
fn run(what: &str) -> String {
    let (console, root) = (tempfile::tempfile().unwrap(), tempfile::tempdir().unwrap());
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--child", what])
        .arg(root.path())
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::null())
        .stdout(console)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "neither code nor signal".into(),
    }
}

fn child(what: &str) -> ExitCode {
    let directory = std::fs::File::open(std::env::args().nth(3).unwrap())
        .unwrap()
        .into();
    let confinement = clickos_process::confine::Confinement {
        uid: 300_001,
        root: directory,
        heap_bytes: 32 << 20,
        helpers: 0,
    };
    let entered = clickos_process::confine::enter(confinement, || Ok(()));
    if entered.is_err() {
        return ExitCode::from(99);
    }
    match what {
        "abort" => std::process::abort(),
        "allocate beyond its memory" => drop(std::hint::black_box(vec![1_u8; 64 << 20])),
        "write beyond its console" => fill_console(),
        _ => {
            let all = FORBIDDEN.iter().chain(&ALLOWED);
            let found = all.into_iter().find(|(name, _)| *name == what);
            found.expect("the parent gives a name of the tables").1();
        }
    }
    ExitCode::SUCCESS
}

fn fill_console() {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let line = [b'x'; 4095];
    let full = (0..1000).any(|_| out.write_all(&line).is_err());
    assert!(full, "the console has no bound");
}

fn parent() -> rustix::process::Pid {
    rustix::process::getppid().unwrap_or(rustix::process::Pid::INIT)
}

fn signal() -> rustix::process::Signal {
    rustix::process::Signal::TERM
}

fn own() -> i64 {
    i64::from(std::process::id())
}

fn call(number: libc::c_long, a: i64, b: i64, c: i64) {
    // SAFETY: none of the calls in the table writes to memory, and all of them are to be refused.
    unsafe { libc::syscall(number, a, b, c) };
}

fn map(protection: i32, flags: i32) {
    let null = std::ptr::null_mut();
    // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
    unsafe { libc::mmap(null, 4096, protection, libc::MAP_PRIVATE | flags, -1, 0) };
}
