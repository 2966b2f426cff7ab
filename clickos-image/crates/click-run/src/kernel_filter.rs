// SPDX-License-Identifier: Apache-2.0
//! A rule of this machine's firewall: it does not take what comes in by an interface, and the router alone answers.
use std::process::Command;

/// Such a rule, as long as this lives.
pub struct KernelFilter {
    interface: String,
}

impl KernelFilter {
    /// Adds the rule.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn new(interface: &str) -> Result<Self, String> {
        change("-A", interface)?;
        Ok(Self {
            interface: interface.to_string(),
        })
    }
}

impl Drop for KernelFilter {
    fn drop(&mut self) {
        if let Err(message) = change("-D", &self.interface) {
            eprintln!("{message}");
        }
    }
}

fn change(action: &str, interface: &str) -> Result<(), String> {
    let rule = ["-w", action, "INPUT", "-i", interface, "-j", "DROP"];
    let output = Command::new("iptables").args(rule).output();
    let output = output.map_err(|e| format!("iptables: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("iptables {}: {}", rule.join(" "), said.trim()))
        }
    }
}
