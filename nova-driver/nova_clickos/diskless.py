# SPDX-License-Identifier: Apache-2.0
"""What of a server needs a disk, which a guest of ClickOS does not have."""

from nova import context as nova_context
from nova import objects
from nova.virt import configdrive
from nova.virt import driver

from nova_clickos import exception


def refuse_files(instance, injected_files):
    """Refuse what would need a file system.

    :raises: GuestNotStarted
    """
    if configdrive.required_by(instance):
        raise exception.GuestNotStarted(
            reason='a ClickOS guest has no config drive; its configuration '
                   'is user_data, so leave the config drive out')
    if injected_files:
        raise exception.GuestNotStarted(
            reason='a ClickOS guest has no file system; leave injected files '
                   '(personality) out')


def volumes(instance):
    """Return the mappings of volumes that a server has."""
    mappings = objects.BlockDeviceMappingList.get_by_instance_uuid(
        nova_context.get_admin_context(), instance.uuid)
    return [mapping for mapping in mappings if mapping.is_volume]


def refuse_flavor(flavor):
    """Refuse a flavor with swap or an ephemeral disk.

    :raises: GuestNotStarted
    """
    if flavor.ephemeral_gb or flavor.swap:
        raise exception.GuestNotStarted(
            reason='a ClickOS guest has no disk: flavor %s has a swap or '
                   'ephemeral disk' % flavor.name)


def refuse_disks(block_device_info):
    """Refuse volumes, ephemeral disks and swap.

    :raises: GuestNotStarted
    """
    if (driver.block_device_info_get_mapping(block_device_info)
            or driver.block_device_info_get_ephemerals(block_device_info)
            or driver.swap_is_usable(
                driver.block_device_info_get_swap(block_device_info))):
        raise exception.GuestNotStarted(
            reason='a ClickOS guest has no disk: no volume, ephemeral disk or '
                   'swap is possible')
