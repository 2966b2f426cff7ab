# SPDX-License-Identifier: Apache-2.0
"""Tacker drivers that turn VNF descriptors into ClickOS guests."""
