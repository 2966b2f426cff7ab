# SPDX-License-Identifier: Apache-2.0
"""Time and network of a guest go on after everything that stops it."""

from tests.xen import test_saved


class AllEventsTest(test_saved.TimeTest):

    events = tuple(test_saved.EVENTS)
