// SPDX-License-Identifier: Apache-2.0
//! Flows of both versions of IP as a firewall knows them: who began, what is left of their time, and the windows of TCP.
pub mod ends;
pub mod flow;
pub mod seen;
pub mod table;
mod window;
