# SPDX-License-Identifier: Apache-2.0
"""networking-sfc's port chains on the switch of ClickOS hosts (ADR 0032)."""
