// SPDX-License-Identifier: Apache-2.0
//! The pattern language of IPFilter and IPClassifier, compiled to a decision table.
//!
//! `word` splits text, `primitive` makes a test of a few words, `parse` combines
//! tests, `expr` evaluates them, `region` says which packets an expression can
//! match at all, and `table` finds the first rule that matches.
pub mod expr;
pub mod fields;
pub mod names;
mod parse;
mod primitive;
pub mod program;
mod region;
mod show;
mod subject;
mod table;
mod word;
