# SPDX-License-Identifier: Apache-2.0
"""What the operations do for a caller."""
