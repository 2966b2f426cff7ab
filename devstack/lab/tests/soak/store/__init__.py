# SPDX-License-Identifier: Apache-2.0
"""oxenstored without Xen: a library takes the hypervisor's place."""
