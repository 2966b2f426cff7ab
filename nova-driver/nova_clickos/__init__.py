# SPDX-License-Identifier: Apache-2.0
"""Nova compute driver for ClickOS guests."""
