# SPDX-License-Identifier: Apache-2.0
"""Sizes that several parts check; those of the Rust side are its own."""

from clickos_client import contract

_RUST = contract.CONTRACT['limits']

#: Writes of one request.
WRITES = _RUST['writes']
#: Handlers that one request reads.
READS = _RUST['reads']
#: Seconds that a value which a client reads may be old at most.
MAX_AGE_S = 60
#: Characters of a handler's name, with its element.
HANDLER_NAME = _RUST['handler_name_bytes']
#: Bytes of the parameter of a read.
PARAMETER_BYTES = _RUST['parameter_bytes']
#: Bytes of all values of one request. JSON may write a byte in six, and
#: cosmosd takes a line of 4 MiB.
VALUES_BYTES = 512 * 1024
#: Bytes of user_data before base64, which fill Nova's field.
USER_DATA_BYTES = 48 * 1024
#: Bytes of a configuration that clickos-api keeps.
CONFIG_BYTES = _RUST['config_bytes']
#: Bytes of an IP packet that a switch port carries. A ring's buffer holds
#: 2 KiB, headers and room for encapsulation included.
MTU = _RUST['mtu_bytes']
#: Hops of a chain.
CHAIN_HOPS = _RUST['chain_hops']
