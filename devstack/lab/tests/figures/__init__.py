# SPDX-License-Identifier: Apache-2.0
"""Figures of guests on real Xen: each module measures some in one host."""
