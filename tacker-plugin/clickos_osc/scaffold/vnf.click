// SPDX-License-Identifier: Apache-2.0
// @NAME@: copies frames between left and right, at a rate to the right.
// The VNFD's connection points define $LEFT_VIF, $LEFT_MAC, $LEFT_IP and so on.

FromDevice($LEFT_VIF) -> right_count :: Counter -> Queue(1024)
    -> to_right :: Shaper(100000) -> ToDevice($RIGHT_VIF);
FromDevice($RIGHT_VIF) -> left_count :: Counter -> Queue(1024)
    -> ToDevice($LEFT_VIF);
