# SPDX-License-Identifier: Apache-2.0
"""Unit tests: nothing but this folder, cosmos_client and OpenStack."""
