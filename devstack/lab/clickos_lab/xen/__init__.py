# SPDX-License-Identifier: Apache-2.0
"""A real Xen host in QEMU: built, booted, saved, restored, driven by SSH."""
