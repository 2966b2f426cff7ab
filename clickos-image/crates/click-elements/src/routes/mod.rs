// SPDX-License-Identifier: Apache-2.0
//! Longest prefix match, for all elements that look up routes: [`route`] is one route as text, [`table`] what there
//! is, [`ranges`] what packets are looked up in, [`element`] the element.
pub mod element;
mod ranges;
mod route;
mod table;
