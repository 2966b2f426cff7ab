# SPDX-License-Identifier: Apache-2.0
"""What a tenant cannot do on the compute host, for tests and the demo."""
