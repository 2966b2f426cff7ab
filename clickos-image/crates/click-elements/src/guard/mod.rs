// SPDX-License-Identifier: Apache-2.0
//! Flows of both versions of IP as a firewall or a balancer knows them: who began, what is left of their time, and the
//! windows of TCP.
pub mod ends;
mod flow;
pub mod fragments;
pub mod hosts;
pub mod seen;
pub mod slots;
pub mod table;
pub mod targets;
pub mod window;
