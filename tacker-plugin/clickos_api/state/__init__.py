# SPDX-License-Identifier: Apache-2.0
"""Desired state of guests, and what is kept with it."""
