// SPDX-License-Identifier: Apache-2.0
//! A folder of real files, and real sockets and processes, for one run of a case.
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use click_conformance::CaseHost;
use click_core::{Host, ReadFile, ServerSocket, WriteFile};
use click_run::files;
use click_run::listener::Listeners;
use click_run::signals::kill;

/// A folder that goes with the run.
pub struct Folder {
    path: PathBuf,
    listeners: RefCell<Listeners>,
}

impl Folder {
    /// A new one below the system's folder for such things.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "clicktest-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self {
            path,
            listeners: RefCell::default(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl CaseHost for Folder {
    fn folder(&self) -> String {
        self.path.display().to_string()
    }
}

impl Host for Folder {
    fn print(&self, text: &str) -> bool {
        print!("{text}");
        true
    }

    fn listen(&self, socket: &ServerSocket) -> Result<String, String> {
        self.listeners.borrow_mut().listen(socket)
    }

    fn kill(&self, signal: &str, process: &str) -> Result<(), String> {
        kill(signal, process)
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        files::open(path)
    }

    fn create_file(&self, path: &str, append: bool) -> Result<Box<dyn WriteFile>, String> {
        files::create(path, append)
    }
}
