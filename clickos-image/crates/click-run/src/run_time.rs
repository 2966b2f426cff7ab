// SPDX-License-Identifier: Apache-2.0
//! What a run took, in the form of Click's option `--time`.
use std::fmt;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// A moment of the program, or what passed between two.
#[derive(Clone, Copy)]
pub struct RunTime<T = Instant> {
    /// Processor time in the program.
    user: Duration,
    /// Processor time in system calls.
    system: Duration,
    clock: T,
}

impl RunTime {
    /// This moment.
    pub fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the program itself is counted");
        Self {
            user: duration(usage.user_time()),
            system: duration(usage.system_time()),
            clock: Instant::now(),
        }
    }

    /// The time since `start`.
    pub fn since(self, start: Self) -> RunTime<Duration> {
        RunTime {
            user: self.user.saturating_sub(start.user),
            system: self.system.saturating_sub(start.system),
            clock: self.clock - start.clock,
        }
    }
}

/// `0.012u 0.003s 0:01.50`: seconds, seconds, and minutes and seconds by the clock.
impl fmt::Display for RunTime<Duration> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, system) = (self.user.as_millis(), self.system.as_millis());
        let clock = self.clock.as_millis() / 10;
        write!(f, "{}.{:03}u ", user / 1000, user % 1000)?;
        write!(f, "{}.{:03}s ", system / 1000, system % 1000)?;
        let (minutes, hundredths) = (clock / 6000, clock % 6000);
        write!(
            f,
            "{minutes}:{:02}.{:02}",
            hundredths / 100,
            hundredths % 100
        )
    }
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec()).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_look_like_clicks() {
        let took = RunTime {
            user: Duration::from_micros(1_012_900),
            system: Duration::from_millis(3),
            clock: Duration::from_millis(61_509),
        };
        assert_eq!(took.to_string(), "1.012u 0.003s 1:01.50");
    }
}
