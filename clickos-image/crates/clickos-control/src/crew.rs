// SPDX-License-Identifier: Apache-2.0
//! The threads of an embedder that has several: router 0 runs on all of them.
use alloc::string::String;
use alloc::vec::Vec;
use click_core::{ConfigError, Environment, Registry, Router};

/// A configuration for router 0, with what its elements on other threads get, too.
pub struct Text<'a> {
    /// Its name in error messages.
    pub name: &'a str,
    /// The configuration.
    pub text: &'a str,
    /// The router's files.
    pub files: Vec<(String, Vec<u8>)>,
}

/// The threads; the calling one is thread 0, and the router is its part.
pub trait Crew {
    /// Starts a configuration on all threads.
    ///
    /// # Errors
    /// All errors of the configuration.
    fn build(
        &mut self,
        text: &Text<'_>,
        registry: &Registry,
        environment: Environment,
        now_ns: u64,
    ) -> Result<Router, Vec<ConfigError>>;

    /// Replaces the configuration on all threads. The state of elements moves within each.
    ///
    /// # Errors
    /// All errors of the configuration; the old one keeps running then.
    fn replace(
        &mut self,
        router: &mut Router,
        text: &Text<'_>,
        registry: &Registry,
        now_ns: u64,
    ) -> Result<(), Vec<ConfigError>>;

    /// Does what other threads want between two slices; returns whether there was anything.
    fn tend(&mut self, router: &mut Router, now_ns: u64) -> bool;

    /// Lets the other threads run their parts, or only answer calls.
    fn set_running(&mut self, running: bool);

    /// Ends the other threads' parts.
    fn remove(&mut self);
}
