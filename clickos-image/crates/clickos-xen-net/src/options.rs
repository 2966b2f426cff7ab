// SPDX-License-Identifier: Apache-2.0
//! Switches of the guest's command line (`extra=` of an xl configuration).
use alloc::format;
use alloc::string::String;

/// How the devices work; everything is on unless the command line says otherwise. The switches are
/// for measuring what each is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `netfront.poll`: look into the rings while there is work, and ask for an event only
    /// before sleeping. Off: each burst takes an event.
    pub poll: bool,
    /// `netfront.keep_grants`: grant the buffers once for the life of the vif. Off: for each
    /// frame again.
    pub keep_grants: bool,
    /// `netfront.fast_refill`: give a receive buffer back as soon as it was read. Off: when half
    /// of them were.
    pub fast_refill: bool,
    /// `vale.in_place`: rings of version 2, if the switch accepts them. Off: of version 1.
    pub in_place: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            poll: true,
            keep_grants: true,
            fast_refill: true,
            in_place: true,
        }
    }
}

impl Options {
    /// Reads the words `netfront.NAME=on|off` and `vale.NAME=on|off`; the other words are not ours.
    ///
    /// # Errors
    /// The first of our words that is not understood.
    pub fn parse(command_line: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for word in command_line.split_ascii_whitespace() {
            if word.starts_with("netfront.") || word.starts_with("vale.") {
                options.set(word).ok_or_else(|| unknown(word))?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, word: &str) -> Option<()> {
        let (name, value) = word.split_once('=')?;
        let switch = match name {
            "netfront.poll" => &mut self.poll,
            "netfront.keep_grants" => &mut self.keep_grants,
            "netfront.fast_refill" => &mut self.fast_refill,
            "vale.in_place" => &mut self.in_place,
            _ => return None,
        };
        *switch = match value {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        Some(())
    }
}

fn unknown(word: &str) -> String {
    format!(
        "{}: expected netfront.poll, .keep_grants, .fast_refill or vale.in_place =on or =off",
        word.escape_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_on_and_each_can_be_switched_off() {
        assert_eq!(
            Options::parse("console=hvc0 root=x").unwrap(),
            Options::default()
        );
        let off = Options::parse("netfront.poll=off netfront.fast_refill=on").unwrap();
        assert!(!off.poll && off.keep_grants && off.fast_refill);
        assert!(
            !Options::parse("netfront.keep_grants=off")
                .unwrap()
                .keep_grants
        );
        assert!(
            !Options::parse("netfront.fast_refill=off")
                .unwrap()
                .fast_refill
        );
        assert!(!Options::parse("vale.in_place=off").unwrap().in_place);
    }

    #[test]
    fn a_wrong_word_is_named() {
        for bad in [
            "netfront.pol=off",
            "netfront.poll=0",
            "netfront.poll",
            "vale.poll=on",
        ] {
            assert!(Options::parse(bad).unwrap_err().contains(bad));
        }
    }
}
