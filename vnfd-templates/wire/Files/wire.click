// SPDX-License-Identifier: Apache-2.0
// Transparent wire. vif 0 is left, vif 1 is right. Frames stay unchanged.

FromDevice(0) -> to_right :: Counter -> Queue(1024) -> ToDevice(1);
FromDevice(1) -> to_left :: Counter -> Queue(1024) -> ToDevice(0);
