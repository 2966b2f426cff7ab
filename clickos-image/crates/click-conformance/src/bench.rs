// SPDX-License-Identifier: Apache-2.0
//! One run of a case.
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use click_core::{
    ConfigError, Device, Environment, Host, Limits, MemoryDevice, Progress, ReadFile, Registry,
    Router, ServerSocket, Tun, TunRequest, WriteFile,
};

use crate::case::{Case, Step};
use crate::packet;

/// Devices of a case.
const DEVICES: u8 = 4;
const START_NS: u64 = 1_000_000 * 1_000_000_000;
/// A case that has not come to rest by then never will.
const MAX_SLICES: usize = 10_000;

struct Bench<'a> {
    router: Router,
    devices: Vec<Rc<RefCell<MemoryDevice>>>,
    console: Rc<RefCell<Vec<String>>>,
    now: u64,
    place: Rc<dyn CaseHost>,
    registry: &'a Registry,
}

/// Where a case runs: its files and what else it reaches of an operating system.
pub trait CaseHost: Host {
    /// The folder that `$DIR` in a case stands for.
    fn folder(&self) -> String;
}

/// Runs a case with batches of at most `batch` packets.
///
/// # Errors Differences from the case's expectations.
pub fn run(
    case: &Case,
    registry: &Registry,
    batch: usize,
    place: &Rc<dyn CaseHost>,
) -> Result<(), String> {
    let folder = place.folder();
    for step in case.steps.iter().filter(|s| s.arg(0) == "file") {
        let bytes = packet::build(&format!("hex {}", step.text()))?;
        place.write_file(&format!("{folder}/{}", step.arg(1)), false, &bytes)?;
    }
    let console = Rc::new(RefCell::new(Vec::new()));
    let devices: Vec<_> = (1..=DEVICES)
        .map(|n| Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, 0, n]))))
        .collect();
    let last = Rc::clone(&devices[devices.len() - 1]);
    let host = TestHost(Rc::clone(&console), Rc::clone(place), last);
    let environment = environment(&devices, host, batch);
    let config = expand(&case.config, &**place);
    let built = Router::build("t", &config, registry, environment, START_NS);
    let expected = case.steps.iter().find(|s| s.arg(0) == "error");
    let router = match (built, expected) {
        (Ok(router), None) => router,
        (Ok(_), Some(_)) => {
            return Err("an error is expected, but the configuration was built".to_string());
        }
        (Err(errors), None) => return Err(texts(&errors).join("\n")),
        (Err(errors), Some(step)) => return check_errors(&texts(&errors), step),
    };
    let mut bench = Bench {
        router,
        devices,
        console,
        now: START_NS,
        place: Rc::clone(place),
        registry,
    };
    bench.settle()?;
    case.steps.iter().try_for_each(|step| {
        bench
            .step(step)
            .map_err(|message| format!("line {}: %{}: {message}", step.line, step.words.join(" ")))
    })
}

/// Standard output is the console, the machine's end of an interface is the last device; everything
/// else is the place's.
struct TestHost(
    Rc<RefCell<Vec<String>>>,
    Rc<dyn CaseHost>,
    Rc<RefCell<MemoryDevice>>,
);

impl Host for TestHost {
    fn print(&self, text: &str) -> bool {
        self.0.borrow_mut().extend(text.lines().map(String::from));
        true
    }

    fn listen(&self, socket: &ServerSocket) -> Result<String, String> {
        self.1.listen(socket)
    }

    fn kill(&self, signal: &str, process: &str) -> Result<(), String> {
        self.1.kill(signal, process)
    }

    fn process(&self) -> u32 {
        self.1.process()
    }

    fn open_tun(&self, request: &TunRequest) -> Result<Tun, String> {
        let name = request.name.clone();
        Ok(Tun {
            name: name.unwrap_or_else(|| "tun0".to_string()),
            device: self.2.clone(),
        })
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        self.1.open_file(path)
    }

    fn create_file(&self, path: &str, append: bool) -> Result<Box<dyn WriteFile>, String> {
        self.1.create_file(path, append)
    }
}

fn expand(text: &str, place: &dyn CaseHost) -> String {
    let text = text.replace("$PID", &place.process().to_string());
    text.replace("$DIR", &place.folder())
}

fn environment(devices: &[Rc<RefCell<MemoryDevice>>], host: TestHost, batch: usize) -> Environment {
    let dynamic = |d: &Rc<RefCell<MemoryDevice>>| -> Rc<RefCell<dyn Device>> { d.clone() };
    let lines = Rc::clone(&host.0);
    Environment {
        devices: (0..)
            .zip(devices.iter().map(dynamic))
            .collect::<BTreeMap<_, _>>(),
        console: Rc::new(move |line: &str| lines.borrow_mut().push(line.to_string())),
        host: Some(Rc::new(host)),
        limits: Limits {
            batch,
            ..Limits::default()
        },
        ..Environment::new()
    }
}

fn texts(errors: &[ConfigError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn check_errors(got: &[String], step: &Step) -> Result<(), String> {
    let missing = step
        .lines
        .iter()
        .find(|line| !got.iter().any(|e| e.contains(line.as_str())));
    match missing {
        Some(line) => Err(format!(
            "no error contains \"{line}\"; there are\n{}",
            got.join("\n")
        )),
        None if got.len() != step.lines.len() => {
            Err(format!("unexpected errors\n{}", got.join("\n")))
        }
        None => Ok(()),
    }
}

fn compare(got: &[String], want: &[String]) -> Result<(), String> {
    if got == want {
        Ok(())
    } else {
        Err(format!(
            "got\n{}\nexpected\n{}",
            got.join("\n"),
            want.join("\n")
        ))
    }
}

impl Bench<'_> {
    fn expand(&self, text: &str) -> String {
        expand(text, &*self.place)
    }

    /// Runs until there is nothing left to do at this time.
    fn settle(&mut self) -> Result<(), String> {
        let busy = |progress| progress == Progress::Worked;
        let rest = (0..MAX_SLICES).position(|_| !busy(self.router.run(self.now)));
        rest.map(|_| ())
            .ok_or_else(|| "the router does not come to rest".to_string())
    }

    fn device(&self, step: &Step) -> Result<&Rc<RefCell<MemoryDevice>>, String> {
        step.arg(1)
            .parse::<usize>()
            .ok()
            .and_then(|n| self.devices.get(n))
            .ok_or_else(|| "no such device".to_string())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step.arg(0) {
            "input" => {
                let packets: Vec<_> = step
                    .lines
                    .iter()
                    .map(|l| packet::build(l))
                    .collect::<Result<_, _>>()?;
                self.device(step)?.borrow_mut().input.extend(packets);
                self.settle()
            }
            "output" => {
                let got = core::mem::take(&mut self.device(step)?.borrow_mut().output);
                let want: Vec<_> = step
                    .lines
                    .iter()
                    .map(|l| packet::build(l))
                    .collect::<Result<_, _>>()?;
                compare(
                    &got.iter().map(|b| hex(b)).collect::<Vec<_>>(),
                    &want.iter().map(|b| hex(b)).collect::<Vec<_>>(),
                )
            }
            "read" => {
                let value = self.router.read_handler(
                    step.arg(1),
                    &self.expand(&step.words[2..].join(" ")),
                    self.now,
                );
                let value = String::from_utf8(value.map_err(|e| e.to_string())?)
                    .map_err(|e| e.to_string())?;
                let lines = |s: &str| {
                    s.trim()
                        .lines()
                        .map(|l| l.trim_end().to_string())
                        .collect::<Vec<_>>()
                };
                compare(&lines(&value), &lines(&self.expand(&step.text())))
            }
            "write" => {
                let text = step.text();
                let writes = [(step.arg(1), text.as_bytes())];
                self.router
                    .write_handlers(&writes, self.now)
                    .map_err(|e| e.to_string())?;
                self.settle()
            }
            "refuse" => self.refuse(step),
            "swap" => {
                let config = self.expand(&step.text());
                let swapped = self.router.hotswap("t", &config, self.registry, self.now);
                swapped.map_err(|errors| texts(&errors).join("\n"))?;
                self.settle()
            }
            "console" => {
                let got = core::mem::take(&mut *self.console.borrow_mut());
                let want: Vec<_> = step.lines.iter().map(|l| self.expand(l)).collect();
                compare(&got, &want)
            }
            "wait" => {
                for _ in 0..step.arg(1).parse::<u64>().map_err(|e| e.to_string())? {
                    self.now += 1_000_000;
                    self.settle()?;
                }
                Ok(())
            }
            "room" => {
                let room = step.arg(2).parse().map_err(|_| "no number".to_string())?;
                self.device(step)?.borrow_mut().room = room;
                self.settle()
            }
            "same" => {
                let folder = self.place.folder();
                let bytes = |n| self.place.read_file(&format!("{folder}/{}", step.arg(n)));
                compare(&[hex(&bytes(1)?)], &[hex(&bytes(2)?)])
            }
            "file" => Ok(()),
            other => Err(format!("unknown step \"{other}\"")),
        }
    }

    fn refuse(&mut self, step: &Step) -> Result<(), String> {
        let (value, parts) = step.lines.split_first().ok_or("no value")?;
        match self
            .router
            .write_handlers(&[(step.arg(1), value.as_bytes())], self.now)
        {
            Ok(()) => Err("the value was taken".to_string()),
            Err(error) => match parts
                .iter()
                .find(|p| !error.to_string().contains(p.as_str()))
            {
                Some(part) => Err(format!("\"{error}\" does not contain \"{part}\"")),
                None => Ok(()),
            },
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
