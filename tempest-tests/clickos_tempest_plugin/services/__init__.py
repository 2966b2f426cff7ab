# SPDX-License-Identifier: Apache-2.0
"""Clients of the services the tests talk to."""
