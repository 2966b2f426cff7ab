# SPDX-License-Identifier: Apache-2.0
"""QoS policies of ports as limits of valed's ports.

A port without a policy has that of its network. Egress of Neutron leaves the
guest and enters the switch, which is rx of valed. The switch chooses the
depth of its token buckets, so the burst of a rule has no effect.
"""

from neutron.db import models_v2
from neutron.db.qos import models
from neutron_lib.api.definitions import portbindings
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib.db import constants as db_constants
from neutron_lib.services.qos import base
from neutron_lib.services.qos import constants as qos_constants

#: Largest rate of a rule, in thousands per second: valed's largest is 10^12.
_MAX_RATE = 10 ** 9
_RATE = {'type:range': [1, _MAX_RATE]}
_BURST = {'type:range': [0, db_constants.DB_INTEGER_MAX_VALUE]}
_DIRECTION = {'type:values': constants.VALID_DIRECTIONS}
RULES = {
    qos_constants.RULE_TYPE_BANDWIDTH_LIMIT: {
        qos_constants.MAX_KBPS: _RATE, qos_constants.MAX_BURST: _BURST,
        qos_constants.DIRECTION: _DIRECTION},
    qos_constants.RULE_TYPE_PACKET_RATE_LIMIT: {
        qos_constants.MAX_KPPS: _RATE, qos_constants.MAX_BURST_KPPS: _BURST,
        qos_constants.DIRECTION: _DIRECTION},
}
_WAYS = {constants.EGRESS_DIRECTION: 'rx', constants.INGRESS_DIRECTION: 'tx'}


class QosDriver(base.DriverBase):
    """Tells Neutron what the switch limits, and agents what changed."""

    def __init__(self, vif_type, changed):
        """Register with the QoS plugin, if Neutron loads it.

        :param vif_type: of the ports that have these limits
        :param changed: called after a policy changed
        """
        super().__init__('vale', [vif_type], [portbindings.VNIC_NORMAL],
                         RULES)
        self._changed = changed

    def update_policy(self, context, policy):
        """Note that rules came, went or changed."""
        self._changed()


def of_ports(port_ids):
    """Return the limits of ports, as arguments of ``port-limit``.

    :param port_ids: ids of ports, those that exist are answered
    """
    context = neutron_context.get_admin_context()
    with db_api.CONTEXT_READER.using(context) as session:
        policies = _policies(session, port_ids)
        limits = _limits(session, {p for p in policies.values() if p})
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


def _limits(session, policies):
    """:returns: limits by policy id"""
    limits = {policy: {} for policy in policies}
    for model, column, name in (
            (models.QosBandwidthLimitRule, 'max_kbps', 'bits_per_s'),
            (models.QosPacketRateLimitRule, 'max_kpps', 'packets_per_s')):
        rules = session.query(model).filter(
            model.qos_policy_id.in_(policies)) if policies else ()
        for rule in rules:
            way = limits[rule.qos_policy_id].setdefault(
                _WAYS[rule.direction], {})
            way[name] = 1000 * getattr(rule, column)
    return limits
