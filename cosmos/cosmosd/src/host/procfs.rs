// SPDX-License-Identifier: Apache-2.0
//! What /proc says about a process (proc(5)).

use std::fs;
use std::io;

/// The fields of /proc/PID/stat that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// `T` for a stopped process, `Z` for a zombie.
    pub state: char,
    /// User and system time in clock ticks.
    pub cpu_ticks: u64,
    /// When it was started, in clock ticks since boot.
    pub start_ticks: u64,
}

/// Reads /proc/PID/stat.
pub fn stat(pid: i32) -> io::Result<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse(&text).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat: not understood")))
}

/// The threads of a process.
pub fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
    let number = |task: io::Result<fs::DirEntry>| task.ok()?.file_name().to_str()?.parse().ok();
    Ok(tasks.filter_map(number).collect())
}

/// This boot of the kernel, so that a pid of an earlier one is not mistaken.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

/// Nanoseconds in a number of clock ticks.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

/// The name in parentheses may hold spaces and parentheses: fields count from the last one.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        cpu_ticks: number(11)?.saturating_add(number(12)?),
        start_ticks: number(19)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lie() {
        let text = "7 (a) T 1 (b) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0 1 0 555 9 9";
        let stat = parse(text).unwrap();
        assert_eq!(
            stat,
            Stat {
                state: 'S',
                cpu_ticks: 42,
                start_ticks: 555
            }
        );
        assert!(parse("7 (a) S 1").is_none());
        assert!(parse("").is_none());
    }

    #[test]
    fn this_process() {
        let stat = stat(std::process::id() as i32).unwrap();
        assert!(stat.start_ticks > 0);
        assert!(
            threads(std::process::id() as i32)
                .unwrap()
                .contains(&(std::process::id() as i32))
        );
        assert_eq!(boot_id().unwrap().len(), 36);
    }
}
