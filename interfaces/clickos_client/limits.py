# SPDX-License-Identifier: Apache-2.0
"""Sizes that several parts check; a test compares them with the Rust side."""

#: Writes of one request: WRITES_MAX of clickos-protocol.
WRITES = 1024
#: Handlers that one request reads: MAX_READS of cosmos-proto.
READS = 64
#: Bytes of the values that it returns: ANSWER_MAX of clickos-protocol, which
#: is the longest value of a handler.
READ_BYTES = 256 * 1024
#: Seconds that a value which a client reads may be old at most.
MAX_AGE_S = 60
#: Characters of a handler's name, with its element: NAME_MAX there.
HANDLER_NAME = 255
#: Bytes of the parameter of a read: MAX_PARAM of cosmos-proto.
PARAMETER_BYTES = 255
#: Bytes of all values of one request. JSON may write a byte in six, and
#: cosmosd takes a line of 4 MiB.
VALUES_BYTES = 512 * 1024
#: Bytes of user_data before base64, which fill Nova's field.
USER_DATA_BYTES = 48 * 1024
#: Bytes of a configuration that clickos-api keeps: MAX_CONFIG of cosmosd.
CONFIG_BYTES = 1024 * 1024
#: Bytes of an IP packet that a switch port carries. A ring's buffer holds
#: 2 KiB, headers and room for encapsulation included.
MTU = 1900
#: Hops of a chain: MAX_HOPS of vale-proto.
CHAIN_HOPS = 20
