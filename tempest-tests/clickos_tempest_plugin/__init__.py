# SPDX-License-Identifier: Apache-2.0
"""Tempest tests of ClickOS for OpenStack."""
