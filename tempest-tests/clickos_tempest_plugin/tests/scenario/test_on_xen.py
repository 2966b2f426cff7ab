# SPDX-License-Identifier: Apache-2.0
"""The tests of process hosts, with their guests on a Xen host.

The machines around them are attached to the process host in any case.
"""

from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import test_chains
from clickos_tempest_plugin.tests.scenario import test_life_cycle
from clickos_tempest_plugin.tests.scenario import test_live_migration
from clickos_tempest_plugin.tests.scenario import test_ports
from clickos_tempest_plugin.tests.scenario import test_scaling
from clickos_tempest_plugin.tests.scenario import test_servers


class PortsOnXenTest(base.OnXenMixin, test_ports.PortsTest):
    """Security groups, QoS, port security and addresses."""


class ServersOnXenTest(base.OnXenMixin, test_servers.ServersTest):
    """Operations of Nova."""


class ChainsOnXenTest(base.OnXenMixin, test_chains.ChainsTest):
    """Chains of hops that come and go."""


class FusedChainOnXenTest(base.OnXenMixin, test_chains.FusedChainTest):
    """A chain becomes one guest, and two again."""

    #: Each uses all guests ten times a second, on an emulated host.
    connections = 10


class ScaledHopOnXenTest(base.OnXenMixin, test_chains.ScaledHopTest):
    """A hop with state grows and shrinks."""


class ScaledNatOnXenTest(base.OnXenMixin, test_chains.ScaledNatTest):
    """A NAT grows and shrinks."""


class ScalingOnXenTest(base.OnXenMixin, test_scaling.ScalingTest):
    """A firewall grows and shrinks."""


class AutomaticOnXenTest(base.OnXenMixin, test_life_cycle.AutomaticTest):
    """A VNF heals and scales by policy."""

    #: The host is emulated.
    heal_begins_s = 30


class LiveMigrationOnXenTest(base.TwoXenHostsMixin,
                             test_live_migration.LiveMigrationTest):
    """A NAT moves between two Xen hosts."""
