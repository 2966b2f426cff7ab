# SPDX-License-Identifier: Apache-2.0
"""The service plugin ``vale_sfc``: networking-sfc's, with refusals.

networking-sfc answers 500 without a reason if a driver refuses an update, a
port pair or a group. This plugin passes the driver's refusal to the caller.
It also accepts a port pair with a weight alone, and keeps the order of the
groups that an update gives.
"""

from networking_sfc.services.sfc import driver_manager
from networking_sfc.services.sfc import plugin


class DriverManager(driver_manager.SfcDriverManager):
    """Calls the drivers; the errors of precommit methods pass unchanged."""

    def _call_drivers(self, method_name, context, raise_orig_exc=False):
        if not method_name.endswith('_precommit'):
            super()._call_drivers(method_name, context, raise_orig_exc)
            return
        for driver in self.ordered_drivers:
            getattr(driver.obj, method_name)(context)


class SfcPlugin(plugin.SfcPlugin):
    """networking-sfc's plugin with this manager."""

    def __init__(self):
        # Not SfcPlugin's, which makes the other manager.
        super(plugin.SfcPlugin, self).__init__()
        self.driver_manager = DriverManager()
        self.driver_manager.initialize()

    def _setup_chain_group_associations(self, context, port_chain, pg_ids):
        """Give each group its place; networking-sfc leaves known ones."""
        super()._setup_chain_group_associations(context, port_chain, pg_ids)
        port_chain.chain_group_associations.reorder()

    def create_port_pair(self, context, port_pair):
        """Make a port pair with the key correlation, which groups need."""
        port_pair['port_pair']['service_function_parameters'].setdefault(
            'correlation', None)
        return super().create_port_pair(context, port_pair)
