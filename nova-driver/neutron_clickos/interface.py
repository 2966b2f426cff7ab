# SPDX-License-Identifier: Apache-2.0
"""Interface driver ``vale`` of Neutron's DHCP and L3 agents.

An agent's device is one end of a veth pair, in the agent's namespace. The
other end stays with the switch; clickos-agent attaches it when it appears
(docs/adr/0021). The driver asks neutron's own privileged helpers for both.
"""

from clickos_client import neutron_rpc
from neutron.agent.linux import interface
from neutron.agent.linux import ip_lib


class ValeInterfaceDriver(interface.LinuxInterfaceDriver):
    """Makes veth pairs whose outer ends the switch takes."""

    DEV_NAME_PREFIX = 'ns-'

    def plug_new(self, network_id, port_id, device_name, mac_address,
                 bridge=None, namespace=None, prefix=None, mtu=None):
        """Make the device of a port; nothing is left of one that fails."""
        outer, inner = ip_lib.IPWrapper().add_veth(
            neutron_rpc.device(port_id), device_name, namespace2=namespace)
        try:
            # The kernel sends nothing of its own accord from the outer end.
            outer.disable_ipv6()
            inner.link.set_address(mac_address)
            if mtu:
                outer.link.set_mtu(mtu)
                inner.link.set_mtu(mtu)
            inner.link.set_up()
            outer.link.set_up()
        except Exception:
            outer.link.delete()
            raise

    def unplug(self, device_name, bridge=None, namespace=None, prefix=None):
        """Remove a device; one that is gone is no error."""
        device = ip_lib.IPDevice(device_name, namespace=namespace)
        if device.exists():
            device.link.delete()

    def set_mtu(self, device_name, mtu, namespace=None, prefix=None):
        """Set the MTU of the agent's end; the other end limits nothing."""
        ip_lib.IPDevice(device_name, namespace=namespace).link.set_mtu(mtu)
