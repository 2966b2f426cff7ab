# SPDX-License-Identifier: Apache-2.0
"""Tests of the dashboard in a real browser, on a cloud of their own."""

# Django and Horizon are set up as for the unit tests.
import tests.unit.clickos_dashboard  # noqa: F401
