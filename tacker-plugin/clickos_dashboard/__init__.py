# SPDX-License-Identifier: Apache-2.0
"""Network functions in Horizon."""
