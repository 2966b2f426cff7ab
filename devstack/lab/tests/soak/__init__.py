# SPDX-License-Identifier: Apache-2.0
"""Tests on a Xen host that take an hour: ``make soak``."""
