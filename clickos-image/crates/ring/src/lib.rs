// SPDX-License-Identifier: Apache-2.0
//! Packet rings shared by a guest and the switch (unsafe island 1).
