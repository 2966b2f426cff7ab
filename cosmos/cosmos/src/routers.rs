// SPDX-License-Identifier: Apache-2.0
//! Commands about a guest's routers: installed, halted, let run again, removed.

use serde_json::{Value, json};

use crate::commands::{Result, Session};
use crate::create::{file_name, read_text};
use crate::output::{fields, table, text};
use crate::{Install, OfRouter};

impl Session<'_> {
    pub fn install(&self, args: &Install) -> Result<()> {
        self.put_router(args, false)
    }

    /// Lists the routers.
    pub fn routers(&self, guest: &str) -> Result<()> {
        let answer = self.call("router-list", json!({"uuid": self.resolve(guest)?}))?;
        let routers = &answer["routers"];
        self.print(routers, || routers_table(routers))
    }

    /// Installs without running.
    pub fn load(&self, args: &Install) -> Result<()> {
        self.put_router(args, true)
    }

    fn put_router(&self, args: &Install, halted: bool) -> Result<()> {
        let request = json!({
            "uuid": self.resolve(&args.guest)?, "rid": args.router.rid, "halted": halted,
            "config": read_text(&args.config)?, "config_name": file_name(&args.config),
            "timeout_ms": args.timeout.timeout * 1000,
        });
        self.print_install(request, args.timeout.timeout)
    }

    /// An empty configuration removes a router.
    pub fn remove_router(&self, args: &OfRouter) -> Result<()> {
        let request = json!({
            "uuid": self.resolve(&args.guest)?, "rid": args.router.rid,
            "config": "", "config_name": "none", "timeout_ms": args.timeout.timeout * 1000,
        });
        self.print_install(request, args.timeout.timeout)
    }

    fn print_install(&self, request: Value, seconds: u64) -> Result<()> {
        let answer = self.call_for("router-install", request, seconds)?;
        self.print(&answer, || fields(&answer))
    }

    pub fn run_router(&self, args: &OfRouter, run: bool) -> Result<()> {
        let request = json!({
            "uuid": self.resolve(&args.guest)?, "rid": args.router.rid, "run": run,
            "timeout_ms": args.timeout.timeout * 1000,
        });
        self.finish(&self.call_for("router-run", request, args.timeout.timeout)?)
    }
}

fn routers_table(routers: &Value) -> String {
    let keys = ["rid", "state", "config_name"];
    let routers = routers.as_array().into_iter().flatten();
    let rows = routers.map(|router| keys.map(|key| text(&router[key])).to_vec());
    table(
        &["Rid", "State", "Configuration"],
        &rows.collect::<Vec<_>>(),
    )
}
