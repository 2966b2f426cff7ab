# SPDX-License-Identifier: Apache-2.0
"""The toolstack on the store that the host does not have by default."""

from clickos_lab.xen import qemu
from tests.xen import test_toolstack


class XenstoredTest(test_toolstack.OnEitherStore,
                    test_toolstack.ToolstackCase):
    """The store kept by xenstored."""

    store = 'xenstored'

    @classmethod
    def start_host(cls, contents):
        cls.host.boot_and_connect(qemu.Machine(store=cls.store), contents)
