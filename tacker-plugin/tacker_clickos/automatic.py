# SPDX-License-Identifier: Apache-2.0
"""Heals and scales VNFs whose descriptors ask for it (docs/adr/0037).

The watcher calls Tacker's own API as the user of the VNF's VIM. So a heal is
an operation like any other: listed, notified, within the project's rights.
"""

import re
import threading
import time

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from oslo_log import log as logging

from tacker_clickos import clickos_api
from tacker_clickos import exception
from tacker_clickos import in_place
from tacker_clickos import state
from tacker_clickos.vnfd import automatic as policies

LOG = logging.getLogger(__name__)

#: States of guests that a heal replaces.
SICK = ('SHUTOFF', 'ERROR', 'DELETED')
#: State of a guest that ended, and that its host can start.
_ENDED = 'SHUTOFF'
#: State of a guest that forwards, and hears of no change.
UNREACHABLE = 'UNREACHABLE'
#: Most heals of a VNF in a time, so that a broken one does not heal for ever.
_MOST_HEALS = 5
_WINDOW_S = 600
#: vnfd.automatic takes no longer ones.
_LONGEST_COOLDOWN_S = 86400
#: A parameter of a heal.
_ASKED = 'clickos_reboots'
#: Nova's name of a request, which becomes a part of a path.
_REQUEST = re.compile(r'req-[0-9A-Za-z-]{1,64}')
#: Seconds in which the guests of a VNF are read; a last answer may come later.
READ_S = 20
_SERVICE_TYPE = 'nfv-orchestration'


class Tacker:
    """Operations on a VNF, by Tacker's API.

    :param connection: openstacksdk connection of the VIM
    """

    def __init__(self, connection):
        self._adapter = adapter.Adapter(
            connection.session, service_type=_SERVICE_TYPE,
            region_name=connection.config.get_region_name() or None,
            user_agent='tacker-clickos')

    def heal(self, vnf_id, vnfc_ids, cause, asked):
        """Heal guests; return whether Tacker took the request.

        :param asked: {server id: request} of reboots
        """
        body = {'vnfcInstanceId': list(vnfc_ids), 'cause': cause}
        if asked:
            body['additionalParams'] = {_ASKED: asked}
        return self._post(vnf_id, 'heal', body)

    def scale(self, vnf_id, aspect, direction):
        """Scale by a step; return whether Tacker took the request."""
        return self._post(vnf_id, 'scale', {
            'type': direction, 'aspectId': aspect, 'numberOfSteps': 1,
            'additionalParams': {'is_auto': 'True'}})

    def _post(self, vnf_id, what, body):
        """An operation that another one excludes (409) is tried later."""
        try:
            answer = self._adapter.post(
                '/vnflcm/v1/vnf_instances/%s/%s' % (vnf_id, what), json=body,
                raise_exc=False)
        except (ka_exceptions.ClientException,
                exception.ServiceAway) as error:
            LOG.warning('VNF %s: %s by itself failed: %s', vnf_id, what,
                        error)
            return False
        if answer.status_code != 202:
            LOG.info('VNF %s: Tacker refused to %s it by itself: %s %.300s',
                     vnf_id, what, answer.status_code, answer.text)
        return answer.status_code == 202


class Healer:
    """Asks for heals, at most _MOST_HEALS of a VNF in _WINDOW_S."""

    def __init__(self):
        #: Of the heals within the window, by VNF.
        self._times = {}

    def heal(self, connection, vnf_id, sick, server_ids):
        """Heal guests of a VNF.

        Nova begins with those that ended before Tacker has begun: the heal
        waits for these reboots, and asks for none of its own.

        :param sick: {VNFC id: state}
        :param server_ids: {VNFC id: server}
        :returns: True if a heal began
        """
        if not self._may(vnf_id):
            return False
        asked = _reboot(connection, [
            server_ids[vnfc_id] for vnfc_id, state in sick.items()
            if state == _ENDED and server_ids.get(vnfc_id)])
        cause = ', '.join('%s is %.60s' % each for each in sick.items())
        begun = Tacker(connection).heal(vnf_id, sick, cause[:255], asked)
        if begun or asked:
            self._times.setdefault(vnf_id, []).append(time.monotonic())
            LOG.warning('VNF %s heals itself: %s', vnf_id, cause)
        return begun

    def _may(self, vnf_id):
        since = time.monotonic() - _WINDOW_S
        recent = {each: [at for at in times if at >= since]
                  for each, times in self._times.items()}
        self._times = {each: times for each, times in recent.items() if times}
        return len(self._times.get(vnf_id, ())) < _MOST_HEALS


def _reboot(connection, server_ids):
    """Ask Nova to make guests again; return {server id: request}."""
    asked = {}
    for server_id in server_ids:
        try:
            asked[server_id] = in_place.ask(connection, server_id)
        except (sdk_exceptions.SDKException,
                exception.ClickOSError) as error:
            LOG.info('server %s does not start before its heal: %s',
                     server_id, error)
    return asked


def asked(heal_request):
    """Return {server id: request} of the reboots that a heal waits for.

    :param heal_request: Tacker's HealVnfRequest, perhaps of a tenant
    """
    found = (heal_request.additional_params or {}).get(_ASKED)
    found = found if isinstance(found, dict) else {}
    return {server_id: request for server_id, request in found.items()
            if isinstance(request, str) and _REQUEST.fullmatch(request)}


class Silence:
    """Guests that hear nothing: a heal replaces those that stay so.

    Such a guest forwards on, and cosmosd brings it back within seconds.
    """

    def __init__(self):
        self._since = {}

    def keep(self, vnf_ids):
        """Forget all other VNFs."""
        self._since = {vnf_id: since for vnf_id, since
                       in self._since.items() if vnf_id in vnf_ids}

    def lasting(self, vnf_instance, states):
        """Return {VNFC id: state} of the guests to heal.

        :param states: {VNFC id: state}
        """
        patience_s = cfg.CONF.clickos.heal_unreachable_after
        silent = {vnfc_id: state for vnfc_id, state
                  in healed_guests(vnf_instance, states).items()
                  if state == UNREACHABLE}
        known, now = self._since.get(vnf_instance.id, {}), time.monotonic()
        self._since[vnf_instance.id] = {
            vnfc_id: known.get(vnfc_id, now) for vnfc_id in silent}
        return {vnfc_id: state for vnfc_id, state in silent.items()
                if patience_s
                and now - known.get(vnfc_id, now) >= patience_s}


class Scaler:
    """Compares what handlers read with the limits of AutoScales."""

    def __init__(self):
        self._lock = threading.Lock()
        self._samples, self._last = {}, {}

    def keep(self, vnf_ids):
        """Forget all other VNFs; one in an operation may be among them.

        Its last step counts on, as long as any cooldown lasts.
        """
        since = time.monotonic() - _LONGEST_COOLDOWN_S
        with self._lock:
            self._samples = {key: sample for key, sample
                             in self._samples.items() if key[0] in vnf_ids}
            self._last = {vnf_id: last for vnf_id, last in self._last.items()
                          if vnf_id in vnf_ids or last >= since}

    def run_once(self, connection, vnf_instance):
        """Read the guests of a VNF, and scale it by a step if need be.

        Several threads may call it for different VNFs. A VNF of an earlier
        release may have any number of rules.
        """
        rules = of(vnf_instance).get('scales') or []
        end_s = time.monotonic() + READ_S
        for number, rule in enumerate(rules[:policies.MAX_SCALES]):
            key = vnf_instance.id, number
            average = self._average(connection, vnf_instance, key, rule,
                                    end_s)
            if average is None or not self._is_cool(vnf_instance.id, rule):
                continue
            direction = _direction(vnf_instance, rule, average)
            if direction and Tacker(connection).scale(
                    vnf_instance.id, rule['aspect'], direction):
                LOG.info('VNF %s: %s of %s: %s is %.0f on average',
                         vnf_instance.id, direction, rule['aspect'],
                         rule['handler'], average)
                with self._lock:
                    self._last[vnf_instance.id] = time.monotonic()
                    self._samples.pop(key, None)

    def _is_cool(self, vnf_id, rule):
        last = self._last.get(vnf_id)
        return last is None or (time.monotonic() - last
                                >= rule['cooldown_s'])

    def _average(self, connection, vnf_instance, key, rule, end_s):
        """Return the average over all guests, or None if one has no answer.
        """
        new = _read(connection, vnf_instance, rule, end_s)
        now = time.monotonic()
        with self._lock:
            old = self._samples.get(key)
            self._samples[key] = now, new
        if not new:
            return None
        if rule['measure'] == 'value':
            return sum(new.values()) / len(new)
        if old is None or set(old[1]) != set(new):
            return None
        seconds = now - old[0]
        growth = [new[each] - old[1][each] for each in new]
        if seconds <= 0 or min(growth) < 0:    # a guest began again
            return None
        return sum(growth) / len(growth) / seconds


def of(vnf_instance):
    """Return what a VNF does by itself: 'healed' VDUs and 'scales'."""
    return state.params(vnf_instance.instantiated_vnf_info).get(
        state.AUTOMATIC) or {}


def sick_guests(vnf_instance, states):
    """Return {VNFC id: state} of the guests that are to be healed.

    :param states: {VNFC id: state}
    """
    return {vnfc_id: state for vnfc_id, state
            in healed_guests(vnf_instance, states).items()
            if state.startswith(SICK)}


def healed_guests(vnf_instance, states):
    """Return {VNFC id: state} of the guests whose VDU heals itself."""
    healed = of(vnf_instance).get('healed') or ()
    return {vnfc.id: states[vnfc.id] for vnfc in
            vnf_instance.instantiated_vnf_info.vnfc_resource_info
            if vnfc.vdu_id in healed and vnfc.id in states}


def _read(connection, vnf_instance, rule, end_s):
    """Return {server: number} of a VDU's guests.

    It is empty if one fails, or if the time ends before all are asked.
    """
    api = clickos_api.Client(connection)
    found = {}
    for vnfc in vnf_instance.instantiated_vnf_info.vnfc_resource_info:
        if vnfc.vdu_id != rule['vdu']:
            continue
        server_id = state.server_id(vnfc)
        if time.monotonic() >= end_s:
            LOG.info('VNF %s: its guests took more than %d s to read',
                     vnf_instance.id, READ_S)
            return {}
        try:
            found[server_id] = float(api.read(server_id, rule['handler']))
        except (exception.ClickOSError, ValueError) as error:
            # Not its text: that may have the guest's value.
            LOG.debug('VNF %s: %s of server %s: %s', vnf_instance.id,
                      rule['handler'], server_id, type(error).__name__)
            return {}
    return found


def _direction(vnf_instance, rule, average):
    """Return Tacker's word for a step, or None.

    A step in is taken only if the others then stay below the upper limit.
    """
    info = vnf_instance.instantiated_vnf_info
    level = next((each.scale_level for each in info.scale_status or ()
                  if each.aspect_id == rule['aspect']), 0)
    count = sum(vnfc.vdu_id == rule['vdu']
                for vnfc in info.vnfc_resource_info)
    if average > rule['above'] and level < rule['max_level']:
        return 'SCALE_OUT'
    if (average < rule['below'] and level > 0 and count > 1
            and average * count / (count - 1) < rule['above']):
        return 'SCALE_IN'
    return None
