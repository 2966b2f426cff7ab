// SPDX-License-Identifier: Apache-2.0
//! The backend's half of the handshake (`xen/io/xenbus.h`), as a table.

/// A frontend's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontend {
    Initialising,
    Connected,
    Closing,
    Closed,
    /// There is no state, or an unknown one.
    Absent,
}

impl Frontend {
    pub fn parse(value: Option<&[u8]>) -> Self {
        match value {
            Some(b"1") => Self::Initialising,
            Some(b"3" | b"4") => Self::Connected,
            Some(b"5") => Self::Closing,
            Some(b"6") => Self::Closed,
            _ => Self::Absent,
        }
    }
}

/// The backend's progress with a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    New,
    /// valed waits for the rings.
    InitWait,
    Connected,
    /// The guest or valed disconnects.
    Closing,
    Closed,
    /// valed refused its rings, and ignores it so that it cannot keep valed busy.
    Refused,
    /// It changed its state too often and waits for the end of the minute.
    Waiting,
    /// Its domain is gone.
    Gone,
}

/// The next step of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    Connect,
    /// Drop the rings, if there are any, and enter the phase.
    Enter(Phase),
}

impl Phase {
    pub fn step(self, frontend: Frontend) -> Step {
        let goal = match (frontend, self) {
            (_, Self::Refused | Self::Waiting | Self::Gone) => self,
            (Frontend::Initialising, _) => Self::InitWait,
            (Frontend::Connected, Self::InitWait) => return Step::Connect,
            // Its rings are of an earlier valed: it has to make others.
            (Frontend::Connected, Self::New) => Self::Closing,
            (Frontend::Connected, _) => self,
            (Frontend::Closing, _) => Self::Closing,
            (Frontend::Closed, _) => Self::Closed,
            (Frontend::Absent, _) => Self::New,
        };
        if goal == self {
            Step::Nothing
        } else {
            Step::Enter(goal)
        }
    }

    /// True if the guest's states no longer matter.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Refused | Self::Gone)
    }

    /// The backend's state in this phase (`XenbusState...`); none before the frontend is there.
    pub fn state(self) -> Option<&'static str> {
        match self {
            Self::New | Self::Gone => None,
            Self::InitWait => Some("2"),
            Self::Connected => Some("4"),
            Self::Closing => Some("5"),
            Self::Closed | Self::Refused | Self::Waiting => Some("6"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Frontend::{Absent, Closed, Closing, Connected, Initialising};

    /// The phases after each state, where `Connect` always succeeds.
    fn walk(states: &[Frontend]) -> Vec<Phase> {
        let mut phase = Phase::New;
        let mut walked = Vec::new();
        for state in states {
            phase = match phase.step(*state) {
                Step::Nothing => phase,
                Step::Connect => Phase::Connected,
                Step::Enter(next) => next,
            };
            walked.push(phase);
        }
        walked
    }

    #[test]
    fn a_guest_starts_and_ends() {
        use Phase::{InitWait, New};
        let states = [
            Absent,
            Initialising,
            Initialising,
            Connected,
            Connected,
            Closing,
            Closed,
            Absent,
        ];
        let phases = [
            New,
            InitWait,
            InitWait,
            Phase::Connected,
            Phase::Connected,
            Phase::Closing,
            Phase::Closed,
            New,
        ];
        assert_eq!(walk(&states), phases);
    }

    #[test]
    fn a_guest_of_an_earlier_valed_makes_new_rings() {
        use Phase::InitWait;
        let states = [Connected, Connected, Closed, Initialising, Connected];
        let phases = [
            Phase::Closing,
            Phase::Closing,
            Phase::Closed,
            InitWait,
            Phase::Connected,
        ];
        assert_eq!(walk(&states), phases);
    }

    #[test]
    fn a_refused_or_dead_guest_changes_nothing() {
        for phase in [Phase::Refused, Phase::Waiting, Phase::Gone] {
            for state in [Absent, Initialising, Connected, Closing, Closed] {
                assert_eq!(phase.step(state), Step::Nothing);
            }
        }
    }

    #[test]
    fn states_are_read_as_written() {
        assert_eq!(Frontend::parse(Some(b"1")), Initialising);
        assert_eq!(Frontend::parse(Some(b"3")), Connected);
        for odd in [None, Some(&b""[..]), Some(b"44"), Some(b"\xff")] {
            assert_eq!(Frontend::parse(odd), Absent);
        }
    }
}
