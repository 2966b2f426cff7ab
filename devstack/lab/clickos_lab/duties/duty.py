# SPDX-License-Identifier: Apache-2.0
"""A duty: its name, its RFC, its check, and the VNFs that have it."""

from collections import abc
import dataclasses

#: the source of a host that has no address yet
NO_ADDRESS = '0.0.0.0'  # nosec B104
#: Routed functions through which a packet of left gets to right as it is, or
#: nearly so.
THROUGH = ('cgn', 'compressor', 'firewall', 'gre-gateway', 'load-balancer',
           'nat', 'router', 'stateful-firewall')
#: All with an address at which neighbors send.
ROUTED = (*THROUGH, 'bras', 'dhcp-relay', 'tunnel-gateway', 'vpn-gateway')
#: Those that count flows by ports.
STATEFUL = ('cgn', 'load-balancer', 'nat', 'stateful-firewall')
TRANSLATORS = ('cgn', 'nat')
TRANSPARENT = ('dns-filter', 'flow-monitor', 'ips', 'shaper', 'syn-guard',
               'wire')
#: Why a duty does not apply, by kind of VNF.
_NO_ADDRESS = 'has no address: frames pass'
_REASONS = {
    'bras': 'left is PPPoE, right needs a session',
    'dhcp-relay': 'forwards DHCP messages only',
    'mirror': 'sends frames back',
    'tunnel-gateway': 'carries frames of left, not packets',
    'vpn-gateway': 'needs the keys of a peer: see its scenario',
    **dict.fromkeys(TRANSPARENT, _NO_ADDRESS)}


@dataclasses.dataclass(frozen=True)
class Duty:
    """One row of the table."""

    name: str
    rfc: str
    vnfs: tuple
    check: abc.Callable
    #: False if the frames do not reach a guest.
    in_guest: bool = True

    def reason(self, vnf, is_guest=False):
        """Return why a VNF does not have this duty, None if it has."""
        if vnf not in self.vnfs:
            return _REASONS.get(vnf, 'other task')
        if is_guest and not self.in_guest:
            return 'the switch drops tagged frames of an uplink'
        return None


DUTIES = []


def duty(name, rfc, vnfs, in_guest=True):
    """Register a check ``check(case, place)`` as the duty of VNFs."""
    def register(check):
        DUTIES.append(Duty(name, rfc, tuple(vnfs), check, in_guest))
        return check
    return register
