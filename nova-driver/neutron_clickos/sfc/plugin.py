# SPDX-License-Identifier: Apache-2.0
"""The service plugin ``vale_sfc``: networking-sfc's, with refusals.

networking-sfc answers 500 without a reason if a driver refuses an update, a
port pair or a group. This plugin passes the driver's refusal to the caller.
It also accepts a port pair with a weight alone, and keeps the order of the
groups that an update gives.
"""

from networking_sfc.db import flowclassifier_db
from networking_sfc.db import sfc_db
from networking_sfc.services.sfc import driver_manager
from networking_sfc.services.sfc import plugin
from neutron_lib.callbacks import events
from neutron_lib.callbacks import registry
from neutron_lib.callbacks import resources
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib import exceptions
import sqlalchemy


class PortInUse(exceptions.InUse):
    """A port that networking-sfc needs."""

    message = ('port %(port)s: is in %(user)s; take the hop out of its chains'
               ' first (openstack clickos chain remove or delete)')


def refuse_delete(resource, event, trigger, payload):
    """Refuse to delete a port of a port pair or flow classifier.

    The database would refuse it with an error that names no reason.
    """
    port, context = payload.resource_id, neutron_context.get_admin_context()
    pair, flow = sfc_db.PortPair, flowclassifier_db.FlowClassifier
    with db_api.CONTEXT_READER.using(context) as session:
        for user, model, columns in (
                ('port pair', pair, (pair.ingress, pair.egress)),
                ('flow classifier', flow, (flow.logical_source_port,
                                           flow.logical_destination_port))):
            found = session.query(model.id).filter(sqlalchemy.or_(
                *(column == port for column in columns))).first()
            if found:
                raise PortInUse(port=port, user=f'{user} {found.id}')


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
        registry.subscribe(refuse_delete, resources.PORT,
                           events.BEFORE_DELETE)

    def _setup_chain_group_associations(self, context, port_chain, pg_ids):
        """Give each group its place; networking-sfc mixes known ones up."""
        super()._setup_chain_group_associations(context, port_chain, pg_ids)
        places = {key: place for place, key in enumerate(pg_ids)}
        found = port_chain.chain_group_associations
        for each in found:
            each.position = places[each.portpairgroup_id]
        found.sort(key=lambda each: each.position)

    def create_port_pair(self, context, port_pair):
        """Make a port pair with the key correlation, which groups need."""
        port_pair['port_pair']['service_function_parameters'].setdefault(
            'correlation', None)
        return super().create_port_pair(context, port_pair)
