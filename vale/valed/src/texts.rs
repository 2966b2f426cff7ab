// SPDX-License-Identifier: Apache-2.0
//! Why a verb fails, and why a kept request waits.
use std::fmt::Display;

use vale_proto::SwitchName;

pub fn no_port(switch: &SwitchName, port: &dyn Display) -> String {
    format!("{switch}:{port}: no such port")
}

pub fn no_switch(switch: &SwitchName) -> String {
    format!("{switch}: no such switch; its first port creates it")
}
