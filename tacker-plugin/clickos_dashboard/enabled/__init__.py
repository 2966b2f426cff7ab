# SPDX-License-Identifier: Apache-2.0
"""What Horizon loads for us."""
