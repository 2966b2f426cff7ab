# SPDX-License-Identifier: Apache-2.0
"""What the tests on Xen share: a host of their own for each class."""

import os
import time
import unittest

from clickos_lab import paths
from clickos_lab.xen import files
from clickos_lab.xen import host
from clickos_lab.xen import image
from clickos_lab.xen import patched
from clickos_lab.xen import snapshot
from clickos_lab.xen import toolstack
from clickos_lab.xen import variants
from clickos_lab.xen import xen_paths


#: of a slow test
_SLOW_S = 3600


def slow(test):
    """Leave a test, or a class of them, to ``make soak PARTS=xen``.

    A slow test takes longer than a minute, without the start of its host.
    """
    test.slow = True
    test.limit_s = _SLOW_S
    return test


class XenTest(unittest.TestCase):
    """Tests that share one host, which is restored before the first.

    The host's logs are kept in ``log/xen-CLASS`` of the state folder if one
    of them fails.
    """

    #: The set-up builds what is missing: guests, the host, the toolstack.
    set_up_limit_s = 3600
    #: of Xen
    variant = variants.STOCK

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.state = paths.State()
        cls.places = xen_paths.XenPaths(cls.state)
        cls.host = host.Host(cls.places, f't{os.getpid()}')
        cls.addClassCleanup(cls.host.remove)
        if cls.variant == variants.PATCHED:
            patched.prepare(cls.state, cls.places)
        contents = files.Files()
        cls.add_files(contents)
        cls.start_host(contents)
        cls.dom0 = cls.host.dom0

    @classmethod
    def start_host(cls, contents):
        """Start the host with some files; here from the snapshot."""
        cls.host.restore(snapshot.ensure(cls.places, cls.variant), contents)

    @classmethod
    def add_files(cls, contents):
        """Add what the tests need in dom0; here the guests' images."""
        image.add(cls.state, contents)

    def run(self, result=None):
        """Run one test; keep the logs if it fails."""
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            folder = self.state.log / f'xen-{type(self).__name__}'
            self.host.collect(folder)
            print(f'logs of dom0: {folder}')

    def wait_for(self, what, timeout_s=30):
        """Return what a function returns as soon as it is true."""
        deadline_s = time.monotonic() + timeout_s
        while not (found := what()):
            if time.monotonic() > deadline_s:
                self.fail(f'not within {timeout_s} s')
            time.sleep(0.1)
        return found


class CosmosTest(XenTest):
    """Tests on a host that also has our toolstack."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        toolstack.build(cls.state, cls.places, cls.variant)
        toolstack.add(cls.state, contents, variant=cls.variant)
