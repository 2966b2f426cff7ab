// SPDX-License-Identifier: Apache-2.0
//! Commands about a guest's routers: installed, halted, let run again, removed.

use cosmos_proto::answer::Router;
use cosmos_proto::{ConfigText, Run, verb};

use crate::commands::{Result, Session, checked, rid, timeout_ms};
use crate::create::{file_name, read_text};
use crate::output::{fields, table};
use crate::{Install, OfRouter};

impl Session<'_> {
    /// Lists the routers.
    pub fn routers(&self, guest: &str) -> Result<()> {
        let routers = self
            .call::<verb::ListRouters>(&self.of_guest(guest)?)?
            .routers;
        self.print(&routers, || routers_table(&routers))
    }

    pub fn install(&self, args: &Install, halted: bool) -> Result<()> {
        let request = cosmos_proto::Install {
            uuid: self.resolve(&args.guest)?,
            rid: rid(args.router.rid)?,
            config: checked("config", read_text(&args.config)?)?,
            config_name: checked("config_name", file_name(&args.config))?,
            halted,
            change_id: None,
            timeout_ms: timeout_ms(args.timeout.timeout)?,
        };
        self.print_install(request, args.timeout.timeout)
    }

    /// An empty configuration removes a router.
    pub fn remove_router(&self, args: &OfRouter) -> Result<()> {
        let request = cosmos_proto::Install {
            uuid: self.resolve(&args.guest)?,
            rid: rid(args.router.rid)?,
            config: ConfigText::default(),
            config_name: checked("config_name", "none")?,
            halted: false,
            change_id: None,
            timeout_ms: timeout_ms(args.timeout.timeout)?,
        };
        self.print_install(request, args.timeout.timeout)
    }

    fn print_install(&self, request: cosmos_proto::Install, seconds: u64) -> Result<()> {
        let answer = self.call_for::<verb::InstallRouter>(&request, seconds)?;
        self.print(&answer, || fields(&answer))
    }

    pub fn run_router(&self, args: &OfRouter, run: bool) -> Result<()> {
        let request = Run {
            uuid: self.resolve(&args.guest)?,
            rid: rid(args.router.rid)?,
            run,
            timeout_ms: timeout_ms(args.timeout.timeout)?,
        };
        self.finish(&self.call_for::<verb::RunRouter>(&request, args.timeout.timeout)?)
    }
}

fn routers_table(routers: &[Router]) -> String {
    let row = |router: &Router| {
        let (state, name) = (router.state.clone(), router.config_name.clone());
        vec![router.rid.to_string(), state, name]
    };
    let rows: Vec<_> = routers.iter().map(row).collect();
    table(&["Rid", "State", "Configuration"], &rows)
}
