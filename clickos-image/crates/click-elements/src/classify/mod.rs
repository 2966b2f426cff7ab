// SPDX-License-Identifier: Apache-2.0
//! The pattern language of IPFilter and IPClassifier, compiled to a decision table.
//!
//! `word` splits text, `primitive` makes a test of a few words, `parse` combines
//! tests, `expr` evaluates them, `region` says as boxes of `values` which packets
//! an expression matches, `short` finds the first rule of a few for a batch in `lanes` at a time, with `pairs` for
//! fields of two bytes, and `graph` that of many, in difficult cases by the `sets` of a `table`. `show` and `listing`
//! print what was understood. `offload` is the part that the switch can decide. `element` is the element.
pub mod element;
pub mod expr;
mod graph;
pub mod listing;
pub mod names;
mod offload;
mod pairs;
mod parse;
mod primitive;
pub mod program;
mod region;
mod sets;
mod short;
mod show;
mod subject;
mod table;
mod values;
mod word;
