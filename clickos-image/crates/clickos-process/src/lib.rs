// SPDX-License-Identifier: Apache-2.0
//! Parts of the process guest. Only `confine` and `inherited` have `unsafe` code.
#![deny(unsafe_code)]

mod arguments;
mod clock;
pub mod confine;
mod console;
mod crew;
mod helper;
mod hotplug;
mod inherited;
mod link;
mod looper;
mod panic_report;
mod vif;

use arguments::Arguments;
use confine::Confinement;
use std::process::ExitCode;

/// Everything from the argument line to the end, which is an error or a signal.
pub fn run() -> ExitCode {
    match start() {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("clickos-process: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<std::convert::Infallible, String> {
    // A stopped process in the session of a cosmosd that ends would be hung up by the kernel.
    rustix::process::setsid().map_err(|e| format!("setsid: {e}"))?;
    let arguments = Arguments::receive()?;
    let resources = inherited::take(&arguments)?;
    // Mapped now, because the descriptors are closed before anything of a tenant is looked at.
    let vifs = vif::map_all(&arguments.vifs, resources.vifs)?;
    let link = link::Link::map(resources.store)?;
    let plug = resources
        .plug
        .map(|ends| hotplug::Hotplug::new(ends, vifs.len()));
    let helpers = usize::from(arguments.vcpus) - 1;
    let confinement = Confinement {
        uid: arguments.uid,
        root: resources.root,
        heap_bytes: arguments.heap_bytes(),
        helpers,
    };
    panic_report::install();
    let start = || match helpers {
        0 => Ok(None),
        _ => crew::Helpers::start(helpers).map(Some),
    };
    let helpers = confine::enter(confinement, start)?;
    looper::run(&arguments, vifs, link, plug, helpers.map(crew::Crew::new))
}
