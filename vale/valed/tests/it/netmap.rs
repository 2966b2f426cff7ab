// SPDX-License-Identifier: Apache-2.0
//! C programs written for netmap's user API, at ports of valed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::{self, Guest, Valed, eventually, ok};
use serde_json::json;
use vale_proto::PortId;

const LIBRARY: &str = "libvale_netmap.so";

/// The folder of the library.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| common::library("vale-netmap").parent().unwrap().to_owned())
}

/// Compiles a program of `vale/netmap/programs`.
fn compile(valed: &Valed, name: &str) -> PathBuf {
    let netmap = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netmap");
    let program = valed.dir.path().join(name);
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(netmap.join("include"))
        .arg(netmap.join(format!("programs/{name}.c")))
        .arg(library().join(LIBRARY))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc: install a C compiler, which Rust needs to link too");
    let text = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{text}");
    program
}

/// A running program, killed when dropped.
struct Program(Child);

impl Program {
    fn start(valed: &Valed, name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(compile(valed, name));
        command
            .args(arguments)
            .env("VALED_SOCKET", &valed.socket)
            .env("LD_LIBRARY_PATH", library())
            .stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Its output, when it has ended well.
    fn end(mut self) -> String {
        let mut text = String::new();
        let mut output = self.0.stdout.take().unwrap();
        output.read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success(), "{text}");
        text
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

fn await_ports(valed: &Valed, count: usize) {
    eventually("the ports are there", || {
        valed.client().port_list(None).unwrap().len() == count
    });
}

fn guest(valed: &Valed, name: &str, last: u8, segment: u16) -> Guest {
    let mac = format!("02:00:00:00:00:{last:02x}");
    let extra = json!({"mac": mac, "segment": segment, "port_security": false});
    Guest::new(valed, name, extra)
}

fn frame(to: u8, from: u8, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5];
    frame.extend(number.to_be_bytes());
    frame.resize(60 + number as usize * 7 % 1400, number as u8);
    frame
}

/// Sends frames of all lengths in bursts, and expects each at the other end.
fn cross(from: &mut Guest, to: &mut Guest, (source, destination): (u8, u8)) {
    for burst in 0..20 {
        let numbers = burst * 50..(burst + 1) * 50;
        for number in numbers.clone() {
            from.ring.push(&frame(destination, source, number)).unwrap();
        }
        from.publish();
        for number in numbers {
            assert_eq!(to.receive().unwrap(), frame(destination, source, number));
        }
    }
}

#[test]
fn a_bridge_passes_frames_both_ways() {
    let valed = Valed::start();
    let bridge = Program::start(&valed, "bridge", &["vale0:a", "vale0:b,segment=2,slots=64"]);
    await_ports(&valed, 2);
    let mut left = guest(&valed, "left", 1, 1);
    let mut right = guest(&valed, "right", 2, 2);
    cross(&mut left, &mut right, (1, 2));
    cross(&mut right, &mut left, (2, 1));
    ok("kill", &[&bridge.0.id().to_string()]);
    assert_eq!(bridge.end(), "2000\n");
    await_ports(&valed, 2);
}

#[test]
fn a_program_of_nmport_open_passes_frames_both_ways() {
    let valed = Valed::start();
    let names = ["vale0:Eth0.5", "vale0:b_1,segment=2@conf:slots=64,rings=1"];
    let ports = Program::start(&valed, "ports", &names);
    await_ports(&valed, 2);
    let mut left = guest(&valed, "left", 1, 1);
    let mut right = guest(&valed, "right", 2, 2);
    cross(&mut left, &mut right, (1, 2));
    cross(&mut right, &mut left, (2, 1));
    ok("kill", &[&ports.0.id().to_string()]);
    assert_eq!(ports.end(), "2000\n");
    await_ports(&valed, 2);
}

/// All 1,000 frames find room, even between two workers while the receiver's one sleeps: their ring
/// has 1,024 slots.
#[test]
fn packets_are_injected_and_dispatched() {
    let valed = Valed::start();
    for receive in ["rx", "next"] {
        let port = "vale0:rx,mac=02:00:00:00:00:02,slots=2048";
        let receiver = Program::start(&valed, "packets", &[receive, port, "1000"]);
        await_ports(&valed, 1);
        let sender = Program::start(&valed, "packets", &["tx", "vale0:tx,slots=64", "1000"]);
        assert_eq!(sender.end(), "");
        let sum: u64 = (0..1000u64).map(|n| n % 256).sum();
        assert_eq!(receiver.end(), format!("{} {sum}\n", 1000 * 60));
        await_ports(&valed, 0);
    }
}

#[test]
fn exchanged_buffers_carry_the_frames() {
    let valed = Valed::start();
    let echo = Program::start(
        &valed,
        "packets",
        &["echo", "vale0:e,mac=02:00:00:00:00:02,slots=64", "1000"],
    );
    await_ports(&valed, 1);
    let mut guest = guest(&valed, "guest", 1, 1);
    for number in 0..1000 {
        guest.send(&frame(2, 1, number));
        assert_eq!(guest.receive().unwrap(), frame(1, 2, number));
    }
    assert_eq!(echo.end(), "");
}

#[test]
fn mistakes_of_a_program_are_refused() {
    let valed = Valed::start();
    let mut program = Program::start(&valed, "faults", &["vale0:p"]);
    let mut line = String::new();
    let mut output = BufReader::new(program.0.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    let PortId { switch, port } = "vale0:p".parse().unwrap();
    valed.client().port_remove(&switch, &port).unwrap();
    assert!(program.0.wait().unwrap().success());
    await_ports(&valed, 0);
}

/// Opens the rings that a process maps.
fn rings(pid: u32) -> File {
    let mut maps = String::new();
    eventually("the process maps its rings", || {
        maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        maps.contains("memfd:vale-ring")
    });
    let line = maps.lines().find(|l| l.contains("memfd:vale-ring"));
    let range = line.unwrap().split(' ').next().unwrap();
    // The kernel drops the leading zeros, as in the file maps.
    let path = format!("/proc/{pid}/map_files/{range}");
    File::options().write(true).open(path).unwrap()
}

/// The test writes into the rings in place of the switch.
#[test]
fn a_hostile_switch_does_not_harm_the_program() {
    let valed = Valed::start();
    let arguments = [
        "echo",
        "vale0:e,mac=02:00:00:00:00:02,slots=64",
        "100000000",
    ];
    let mut echo = Program::start(&valed, "packets", &arguments);
    await_ports(&valed, 1);
    let mut guest = guest(&valed, "guest", 1, 1);
    let rings = rings(echo.0.id());
    let end = Instant::now() + Duration::from_secs(1);
    let mut random = 1u64;
    while Instant::now() < end {
        for _ in 0..64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // The switch's words of both rings, or the descriptors of the ring to receive.
            let at = match random >> 62 {
                0 => 0x180 + (random >> 40) % 3 * 4,
                1 => 0x280 + (random >> 40) % 3 * 4,
                _ => 0x2000 + (random >> 40) % 64 * 8,
            };
            let mask = [63, u64::MAX][(random >> 50) as usize % 2];
            rings
                .write_at(&(random >> 20 & mask).to_le_bytes()[..4], at)
                .unwrap();
        }
        let _ = guest.ring.push(&frame(2, 1, 0));
        guest.publish();
        while guest.ring.pop(&mut [0; ring::BUFFER_SIZE]).is_some() {}
    }
    assert!(
        echo.0.try_wait().unwrap().is_none(),
        "the program has ended"
    );
}
