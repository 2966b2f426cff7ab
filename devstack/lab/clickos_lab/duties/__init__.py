# SPDX-License-Identifier: Apache-2.0
"""The duties of network functions by the RFCs, with real packets."""
