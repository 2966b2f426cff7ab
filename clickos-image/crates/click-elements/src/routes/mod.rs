// SPDX-License-Identifier: Apache-2.0
//! Longest prefix match, for all elements that look up routes: [`route`] is one route as text, [`table`] what there
//! is, [`ranges`] what packets are looked up in, [`live`] both of them, [`element`] the element.
pub mod element;
pub mod live;
pub mod prefixes;
pub mod ranges;
pub mod route;
pub mod table;
