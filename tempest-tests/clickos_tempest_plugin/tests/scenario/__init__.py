# SPDX-License-Identifier: Apache-2.0
"""Whole stories with traffic."""
