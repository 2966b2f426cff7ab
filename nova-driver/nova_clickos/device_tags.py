# SPDX-License-Identifier: Apache-2.0
"""Tags that a tenant gives to interfaces (``--nic tag=...``).

Nova keeps them with its virtual interfaces. A configuration names a port by
its tag (named_ports.py), and the metadata of a server lists tagged devices.
"""

from nova import objects


def note(context, instance):
    """Set the device metadata of a server; the caller saves the server.

    A guest finds a device by its MAC address, so the metadata names no bus.

    :returns: tag by the id of the port
    """
    tagged = [vif for vif in objects.VirtualInterfaceList
              .get_by_instance_uuid(context, instance.uuid) if vif.tag]
    devices = [objects.NetworkInterfaceMetadata(mac=vif.address,
                                                tags=[vif.tag])
               for vif in tagged]
    instance.device_metadata = objects.InstanceDeviceMetadata(
        devices=devices) if devices else None
    return {vif.uuid: vif.tag for vif in tagged}
