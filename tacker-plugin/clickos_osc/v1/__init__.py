# SPDX-License-Identifier: Apache-2.0
"""Commands of version 1 of the interface."""
