# SPDX-License-Identifier: Apache-2.0
"""Neutron's side of the vale switch."""
