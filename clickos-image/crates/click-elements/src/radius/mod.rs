// SPDX-License-Identifier: Apache-2.0
//! A RADIUS client: logins (RFC 2865, RFC 3579) and accounts (RFC 2866, RFC 2869) at up to two servers.
//!
//! [`packet`] is the format, [`grant`] what an accepted login permits, [`client`] the requests under way. Servers and their
//! network are not trusted before an answer's sums are checked; a packet that fails changes only a count.
pub mod client;
pub mod grant;
pub mod packet;
pub mod terms;
