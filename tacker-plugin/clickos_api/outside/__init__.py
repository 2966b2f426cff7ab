# SPDX-License-Identifier: Apache-2.0
"""Other services: hosts, Nova and Neutron, notifications."""
