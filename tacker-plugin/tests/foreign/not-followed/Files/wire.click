// SPDX-License-Identifier: Apache-2.0
FromDevice(0) -> Queue -> ToDevice(1); FromDevice(1) -> Queue -> ToDevice(0);
