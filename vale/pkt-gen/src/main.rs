// SPDX-License-Identifier: Apache-2.0
//! Packet generator and sink on a switch port.
#![forbid(unsafe_code)]

mod arguments;
mod frame;
mod functions;
mod link;
mod pcap;
mod report;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Function};
use report::Report;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut report = Report::new(&arguments);
    let result = match arguments.function {
        Function::Tx => functions::tx(&arguments, &mut report),
        Function::Rx => functions::rx(&arguments, &mut report),
        Function::Ping => functions::ping(&arguments, &mut report),
        Function::Pong => functions::pong(&arguments, &mut report),
        Function::PcapMake => pcap::make(&arguments, &mut report),
    };
    match result {
        Ok(()) => {
            println!("{}", report.totals(arguments.output));
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("pkt-gen: {text}");
            ExitCode::FAILURE
        }
    }
}
