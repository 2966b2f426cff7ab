# SPDX-License-Identifier: Apache-2.0
"""The drivers ``vale`` of networking-sfc: chains and flow classifiers.

They refuse what the switch does not have, before anything is stored. After
a change they tell the hosts of all port pairs, whose agents ask for their
chains (docs/adr/0032).
"""

from networking_sfc.services.flowclassifier.drivers import base as fc_base
from networking_sfc.services.sfc.drivers import base as sfc_base
from neutron_lib import exceptions
from neutron_lib.plugins import directory

from neutron_clickos import port_rpc
from neutron_clickos.sfc import render
from neutron_clickos.sfc import sfc_db


class Refused(exceptions.BadRequest):
    """A request that the switch cannot fulfill."""

    message = '%(reason)s'


class NoPath(exceptions.Conflict):
    """A chain over several hosts that cannot have a path."""

    message = '%(reason)s'


class NotOwned(exceptions.Conflict):
    """A part of a chain that belongs to another project."""

    message = '%(reason)s'


def _check(check, *arguments):
    try:
        check(*arguments)
    except render.Unsupported as e:
        raise Refused(reason=str(e))
    except render.Foreign as e:
        raise NotOwned(reason=str(e))


def _check_ports(part):
    named = render.named_ports(part)
    _check(render.check_owner, part['project_id'], sfc_db.ports(named), named)


def _check_claims(plugin, request, group):
    pairs = [plugin.get_port_pair(request, key)
             for key in group['port_pairs']]
    ports = sfc_db.ports({pair['egress'] for pair in pairs})
    _check(render.check_claims, group, pairs, ports)


def _check_parts(plugin, request, chain):
    """Refuse hosts without a path, and parts of other projects."""
    groups = [plugin.get_port_pair_group(request, key)
              for key in chain['port_pair_groups']]
    for group in groups:
        _check_claims(plugin, request, group)
    pairs = [plugin.get_port_pair(request, key)
             for group in groups for key in group['port_pairs']]
    flows = directory.get_plugin('flow_classifier')
    classifiers = [flows.get_flow_classifier(request, key)
                   for key in chain['flow_classifiers']]
    ports = sfc_db.ports({key for part in (*pairs, *classifiers)
                         for key in render.named_ports(part)})
    _check(render.check_scope, chain, pairs, classifiers, ports)
    _check(render.check_network, pairs, ports)
    check_path(pairs, classifiers, ports, sfc_db.tunnels())


def check_path(pairs, classifiers, ports, tunnels):
    """Refuse a chain over hosts that cannot have a path.

    The reason names no host: Nova hides their names from users.

    :param ports: render.Port by id
    :param tunnels: address by host
    """
    places = {key: port.place for key, port in ports.items() if port.place}
    steered = [places[key] for pair in pairs
               for key in render.named_ports(pair) if key in places]
    hosts = render.hosts_of(steered, classifiers, places)
    try:
        if len(hosts) > 1:
            render.path(hosts, classifiers, tunnels)
    except render.NotReady as e:
        raise NoPath(reason=str(e))


class _Notifier:
    """Tells agents that chains changed."""

    def initialize(self):
        """Prepare the messages; networking-sfc calls this once."""
        self._notifier = port_rpc.AgentNotifier()

    def _changed(self, context=None):
        for host in sfc_db.hosts():
            self._notifier.chains_changed(host)


class ValeSfcDriver(_Notifier, sfc_base.SfcDriverBase):
    """Port pairs, groups and chains."""

    def create_port_pair_precommit(self, context):
        """Refuse encapsulations, heavy weights and ports of others."""
        _check(render.check_pair, context.current)
        _check_ports(context.current)

    update_port_pair_precommit = create_port_pair_precommit

    def create_port_pair_group_precommit(self, context):
        """Refuse taps, too many pairs, and addresses of others."""
        _check(render.check_group, context.current)
        _check_claims(context._plugin, context._plugin_context,
                      context.current)

    def update_port_pair_group_precommit(self, context):
        """Refuse as create does, also for the chains of the group."""
        self.create_port_pair_group_precommit(context)
        group = context.current['id']
        plugin, request = context._plugin, context._plugin_context
        for chain in plugin.get_port_chains(request):
            if group in chain['port_pair_groups']:
                _check_parts(plugin, request, chain)

    def create_port_chain_precommit(self, context):
        """Refuse chains that are too long, of others, or over hosts."""
        _check(render.check_chain, context.current)
        _check_parts(context._plugin, context._plugin_context,
                     context.current)

    update_port_chain_precommit = create_port_chain_precommit

    def create_service_graph_precommit(self, context):
        """Refuse graphs: the switch has no branches between chains."""
        raise Refused(reason='service graph: the switch has no branches'
                             ' between chains')

    def create_port_chain(self, context):
        """Tell the hosts."""
        self._changed()

    update_port_chain = create_port_chain
    create_port_pair = create_port_chain
    update_port_pair = create_port_chain
    create_port_pair_group = create_port_chain
    update_port_pair_group = create_port_chain
    delete_port_chain_postcommit = create_port_chain
    delete_port_pair_postcommit = create_port_chain
    delete_port_pair_group_postcommit = create_port_chain

    def delete_port_chain(self, context):
        """Nothing: the hosts learn it after the commit."""

    delete_port_pair = delete_port_chain
    delete_port_pair_group = delete_port_chain


class ValeFlowClassifierDriver(_Notifier, fc_base.FlowClassifierDriverBase):
    """Flow classifiers."""

    def create_flow_classifier_precommit(self, context):
        """Refuse what the switch cannot match, and ports of others."""
        _check(render.check_classifier, context.current)
        _check_ports(context.current)

    update_flow_classifier_precommit = create_flow_classifier_precommit

    def create_flow_classifier(self, context):
        """Tell the hosts."""
        self._changed()

    update_flow_classifier = create_flow_classifier
    delete_flow_classifier_postcommit = create_flow_classifier

    def delete_flow_classifier(self, context):
        """Nothing: the hosts learn it after the commit."""
