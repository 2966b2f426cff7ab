# SPDX-License-Identifier: Apache-2.0
"""Tests of the Tacker drivers."""

import logging

# Tests of failures look at the drivers' logs only where it matters.
logging.getLogger('tacker_clickos').addHandler(logging.NullHandler())
