# SPDX-License-Identifier: Apache-2.0
"""Waits until Neutron calls a guest's ports active (docs/adr/0021)."""

import contextlib
import time

from keystoneauth1 import exceptions as ksa_exceptions
from neutronclient.common import exceptions as neutron_exceptions
from nova import context as nova_context
from nova import exception as nova_exception
from nova.network import neutron
from oslo_log import log as logging

from nova_clickos.conf import CONF

LOG = logging.getLogger(__name__)

_PLUGGED = 'network-vif-plugged'
#: Seconds before each look at ports whose events may be held back.
_LOOKS_S = (0.2, 0.2, 0.3, 0.3)


class Wiring:
    """Nova's wait for events of Neutron."""

    def __init__(self, virtapi):
        self._virtapi = virtapi

    @contextlib.contextmanager
    def awaited(self, instance, network_info, undo):
        """Wait, after the code inside, for the ports that it plugs.

        Without an event the guest stays, or goes if ``[DEFAULT]
        vif_plugging_is_fatal`` says so.

        :param undo: removes the guest of an instance.
        :raises: VirtualInterfaceCreateException
        """
        events = _events(network_info)
        try:
            with self._virtapi.wait_for_instance_event(
                    instance, events, timeout=CONF.vif_plugging_timeout,
                    error_callback=_failed):
                yield
                self._leave_out(events)
        except nova_exception.InstanceEventTimeout:
            LOG.warning('Neutron did not call the ports active within '
                        '%d s', CONF.vif_plugging_timeout, instance=instance)
            if CONF.vif_plugging_is_fatal:
                undo(instance)
                raise nova_exception.VirtualInterfaceCreateException()
        except nova_exception.VirtualInterfaceCreateException:
            undo(instance)
            raise

    def _leave_out(self, events):
        """Do not wait for events if all their ports are active.

        After an event Neutron holds the next ones back for its option
        ``send_events_interval``, 2 s by default, and so those of all ports
        of a server but the first one.
        """
        ports = [port_id for _name, port_id in events]
        for pause_s in _LOOKS_S if ports else ():
            time.sleep(pause_s)
            if _are_active(ports):
                self._virtapi.exit_wait_early(events)


def _are_active(ports):
    try:
        found = neutron.get_client(
            nova_context.get_admin_context(), admin=True).list_ports(
                id=ports, status='ACTIVE', fields=['id'])['ports']
    except (neutron_exceptions.NeutronClientException,
            nova_exception.NovaException,
            ksa_exceptions.ClientException) as e:
        LOG.debug('Neutron tells nothing about ports: %s', e)
        return False
    return {each['id'] for each in found} == set(ports)


def _events(network_info):
    """List the events to wait for.

    A port that is active already changes no more, and one that is disabled
    does not forward.
    """
    if not CONF.vif_plugging_timeout:
        return []
    return [(_PLUGGED, vif['id']) for vif in network_info or ()
            if vif.get('active', True) is False
            and vif['details'].get('vale_link_up', True)]


def _failed(event_name, instance):
    LOG.error('Neutron reports that %s failed', event_name,
              instance=instance)
    if CONF.vif_plugging_is_fatal:
        raise nova_exception.VirtualInterfaceCreateException()
    return True
