# SPDX-License-Identifier: Apache-2.0
"""Live migration between process hosts (docs/adr/0070)."""
