// SPDX-License-Identifier: Apache-2.0
//! The pattern language of IPFilter and IPClassifier, compiled to a decision table.
//!
//! `word` splits text, `primitive` makes a test of a few words, `parse` combines
//! tests, `expr` evaluates them, `region` says as boxes of `values` which packets
//! an expression matches, and `graph` finds the first rule, in difficult cases by the
//! `sets` of a `table`. `show` and `listing` print what was understood.
pub mod expr;
pub mod fields;
mod graph;
pub mod listing;
pub mod names;
mod parse;
mod primitive;
pub mod program;
mod region;
mod sets;
mod show;
mod subject;
mod table;
mod values;
mod word;
