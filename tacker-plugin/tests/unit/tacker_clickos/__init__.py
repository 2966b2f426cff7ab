# SPDX-License-Identifier: Apache-2.0
"""Tests of the Tacker drivers."""

import logging

# What the drivers log in tests of failures is looked at where it matters.
logging.getLogger('tacker_clickos').addHandler(logging.NullHandler())
