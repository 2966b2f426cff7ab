# SPDX-License-Identifier: Apache-2.0
"""Servers of a Xen host move to another one."""

from tempest.lib import decorators

from clickos_tempest_plugin.common import host
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.serial import test_moves


@decorators.serial
class MovesOnXenTest(base.TwoXenHostsMixin, test_moves.MovesTest):
    """The tests of process hosts."""

    first = host.Host('xen_host_command')
