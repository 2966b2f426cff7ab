# SPDX-License-Identifier: Apache-2.0
"""Runs a VNF of the catalog between hosts that are network namespaces."""
