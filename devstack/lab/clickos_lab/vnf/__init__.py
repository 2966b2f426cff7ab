# SPDX-License-Identifier: Apache-2.0
"""Runs a VNF of the catalogue between hosts that are network namespaces."""
