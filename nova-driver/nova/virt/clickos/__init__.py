# SPDX-License-Identifier: Apache-2.0
"""Where Nova looks for a compute driver; the driver is nova_clickos."""
