# SPDX-License-Identifier: Apache-2.0
"""QoS policies of ports as limits of valed's ports.

A port without a policy has that of its network. Egress of Neutron leaves the
guest and enters the switch, which is rx of valed. Without a burst in the
rule the switch chooses the depth of its token buckets.
"""

from clickos_client import neutron_rpc
from neutron.db import models_v2
from neutron.db.qos import models
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events
from neutron_lib.callbacks import registry
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib.services.qos import base
from neutron_lib.services.qos import constants as qos_constants

#: Largest rate of a rule, in thousands per second: valed's largest is 10^12.
_MAX_RATE = 10 ** 9
_RATE = {'type:range': [1, _MAX_RATE]}
_BURST = {'type:range': [0, _MAX_RATE]}
_DIRECTION = {'type:values': constants.VALID_DIRECTIONS}
RULES = {
    qos_constants.RULE_TYPE_BANDWIDTH_LIMIT: {
        qos_constants.MAX_KBPS: _RATE, qos_constants.MAX_BURST: _BURST,
        qos_constants.DIRECTION: _DIRECTION},
    qos_constants.RULE_TYPE_PACKET_RATE_LIMIT: {
        qos_constants.MAX_KPPS: _RATE, qos_constants.MAX_BURST_KPPS: _BURST,
        qos_constants.DIRECTION: _DIRECTION},
    qos_constants.RULE_TYPE_DSCP_MARKING: {
        qos_constants.DSCP_MARK: {
            'type:values': constants.VALID_DSCP_MARKS}},
}
#: The keys of valed for rates and bursts by the table of the rules.
_RATES = (
    (models.QosBandwidthLimitRule, 'max_kbps', 'bits_per_s',
     'max_burst_kbps', 'burst_bits'),
    (models.QosPacketRateLimitRule, 'max_kpps', 'packets_per_s',
     'max_burst_kpps', 'burst_packets'))
_WAYS = {constants.EGRESS_DIRECTION: 'rx', constants.INGRESS_DIRECTION: 'tx'}


@registry.has_registry_receivers
class QosDriver(base.DriverBase):
    """Tells Neutron what the switch limits, and agents what changed."""

    def __init__(self, vif_type, changed):
        """Register with the QoS plugin, if Neutron loads it.

        :param vif_type: of the ports that have these limits
        :param changed: called after a policy changed
        """
        self._manager = None
        super().__init__('vale', [vif_type], [portbindings.VNIC_NORMAL],
                         RULES)
        self._changed = changed

    @registry.receives(qos_constants.QOS_PLUGIN, [events.AFTER_INIT])
    def _note_manager(self, resource, event, trigger, **kwargs):
        self._manager = trigger

    @property
    def supported_rules(self):
        """The rules of the switch, and no parameters of those of others.

        Neutron lists only the types that all of its drivers have. A type that
        another driver has for its ports is therefore listed here, and
        is_rule_supported refuses it for ours.
        """
        others = (driver for driver in getattr(self._manager, '_drivers', ())
                  if driver is not self)
        return {**{kind: {} for driver in others
                   for kind in driver.supported_rules}, **RULES}

    @supported_rules.setter
    def supported_rules(self, rules):
        """Ignore what the base class sets: RULES."""

    def is_rule_supported(self, rule):
        """:returns: whether the switch has the rule"""
        return rule.rule_type in RULES and super().is_rule_supported(rule)

    def update_policy(self, context, policy):
        """Note that rules came, went or changed."""
        self._changed()


def of_ports(port_ids, policy_format=neutron_rpc.POLICY_FORMAT):
    """Return the limits of ports, as arguments of ``port-limit``.

    :param port_ids: ids of ports, those that exist are answered
    :param policy_format: of the agent, as in neutron_rpc
    """
    context = neutron_context.get_admin_context()
    with db_api.CONTEXT_READER.using(context) as session:
        policies = _policies(session, port_ids)
        limits = _limits(session, {p for p in policies.values() if p},
                         policy_format)
    return {port: limits.get(policy, {}) for port, policy in policies.items()}


def _policies(session, port_ids):
    """:returns: policy id, or None, by port id"""
    port = models_v2.Port
    own = models.QosPortPolicyBinding
    network = models.QosNetworkPolicyBinding
    rows = session.query(port.id, own.policy_id, network.policy_id).outerjoin(
        own, own.port_id == port.id).outerjoin(
            network, network.network_id == port.network_id).filter(
                port.id.in_(list(port_ids)))
    return {port_id: first or second for port_id, first, second in rows}


def _limits(session, policies, policy_format):
    """:returns: limits by policy id"""
    limits = {policy: {} for policy in policies}
    for model, column, name, burst_column, burst_name in _RATES:
        for rule in _of_policies(session, model, policies):
            way = limits[rule.qos_policy_id].setdefault(
                _WAYS[rule.direction], {})
            way[name] = 1000 * getattr(rule, column)
            burst = getattr(rule, burst_column)
            if burst and policy_format >= 2:
                way[burst_name] = 1000 * burst
    if policy_format >= 2:
        for rule in _of_policies(session, models.QosDscpMarkingRule,
                                 policies):
            limits[rule.qos_policy_id]['dscp'] = rule.dscp_mark
    return limits


def _of_policies(session, model, policies):
    """:returns: the rules of a table that belong to policies"""
    return session.query(model).filter(
        model.qos_policy_id.in_(policies)) if policies else ()
