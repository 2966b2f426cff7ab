# SPDX-License-Identifier: Apache-2.0
"""Unit tests."""

from clickos_client import bounded

# Next to other programs a process that yields to all of them takes minutes.
bounded._NICE = 0
