# SPDX-License-Identifier: Apache-2.0
"""Changes the properties of a running VNF: all guests or none."""


from clickos_client import outcomes
from clickos_client import plain_json
from oslo_log import log as logging

from tacker_clickos.clickgen import document
from tacker_clickos.clickgen import writes as click_writes
from tacker_clickos import exception
from tacker_clickos import shared
from tacker_clickos import state
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values

LOG = logging.getLogger(__name__)


def parse(text):
    """Return the request as data.

    :raises: PropertyRefused when it is not a JSON object
    """
    try:
        request = plain_json.loads(text)
    except ValueError as error:
        raise exception.PropertyRefused(name=state.PROPERTIES,
                                        reason='is not JSON: %s' % error)
    if not isinstance(request, dict):
        raise exception.PropertyRefused(name=state.PROPERTIES,
                                        reason='is not a JSON object')
    return request


def check_size(vdus, values):
    """Refuse values that a guest's desired state could not hold.

    :raises: DocumentTooLong
    """
    for vdu in vdus.values():
        names = {vdu.name + '-0', *(
            name for name in values.get(vnfd_values.GUESTS) or ()
            if name.rpartition('-')[0] == vdu.name)}
        for name in names:
            document.check_writes(click_writes.render(
                vdu.configuration, vnfd_values.of_guest(vdu, values, name)))


class Update(object):
    """One request of a tenant against one VNF.

    :param vdus: {name: model.Vdu}
    :param info: Tacker's instantiatedVnfInfo, with every guest
    :param in_force: the values that hold now
    :param request: {property: value}
    """

    def __init__(self, vdus, info, in_force, request):
        self._vdus = vdus
        self._info = info
        self._in_force = in_force
        self._request = request

    def apply(self, api, vnf_id):
        """Write the handlers of every guest; return (values, revision).

        If a guest refuses, those already written get their old values back.

        :param api: clickos_api.Client
        :param vnf_id: of the VNF, for limits that its guests share
        :raises: ClickOSError with what the tenant shall read
        """
        values = self.judge()
        revision, done = 0, []
        for vnfc in self._info.vnfc_resource_info:
            writes = self._writes(vnfc, values)
            if not writes:
                continue
            try:
                before = dict(api.desired_writes(state.server_id(vnfc)))
                revision = max(revision,
                               api.write(state.server_id(vnfc), writes))
            except exception.ClickOSError as refused:
                self._put_back(api, done, state.name(vnfc), refused)
            done.append((vnfc, before))
        try:
            self._share(api, vnf_id, values)
        except exception.ClickOSError as refused:
            self._put_back(api, done, 'shared limits', refused)
        return values, revision

    def _share(self, api, vnf_id, values):
        """Set the limits that the request names."""
        vdus = {name: vdu for name, vdu in self._vdus.items()
                if model.shared(vdu).keys() & self._request.keys()}
        shared.declare(api, vnf_id, vdus, values, {
            state.name(vnfc): state.server_id(vnfc)
            for vnfc in self._info.vnfc_resource_info})

    def judge(self):
        """Return the values after the request; nothing is written.

        :raises: ClickOSError, as apply()
        """
        values = vnfd_values.merge(model.properties(self._vdus),
                                   self._in_force, self._request)
        self._check(values)
        return values

    def _check(self, values):
        for vnfc in self._info.vnfc_resource_info:
            vdu = self._vdus[vnfc.vdu_id]
            before = self._of(vnfc, self._in_force)
            after = self._of(vnfc, values)
            for name, prop in vdu.configuration.properties.items():
                if prop.define and after[name] != before.get(name):
                    raise exception.PropertyRefused(
                        name=name, reason='is part of the configuration and '
                        'cannot change while the VNF runs')
        check_size(self._vdus, values)

    def _of(self, vnfc, values):
        return vnfd_values.of_guest(self._vdus[vnfc.vdu_id], values,
                                    state.name(vnfc))

    def _writes(self, vnfc, values):
        """Return the writes for the properties the request names."""
        configuration = self._vdus[vnfc.vdu_id].configuration
        own = self._of(vnfc, values)
        guests = self._request.get(vnfd_values.GUESTS) or {}
        of_guest = guests.get(state.name(vnfc), ())
        named = {*self._request, *(self._vnfc_properties(vnfc)
                                   if of_guest is None else of_guest)}
        return [[prop.handler, click_writes.encode(prop, own[name])]
                for name, prop in configuration.properties.items()
                if prop.handler and not prop.shared and name in named]

    def _vnfc_properties(self, vnfc):
        """Return the properties that the guest alone had."""
        guests = self._in_force.get(vnfd_values.GUESTS) or {}
        return guests.get(state.name(vnfc), ())

    def _put_back(self, api, done, name, refused):
        reason, outcome = '%s: %s' % (name, refused), refused.outcome
        for vnfc, before in done:
            old = [[handler, before.get(handler, value)]
                   for handler, value in self._writes(vnfc, self._in_force)]
            try:
                api.write(state.server_id(vnfc), old)
            except exception.ClickOSError as error:
                reason += '; %s keeps the new values: %s' % (
                    state.name(vnfc), error)
                outcome = outcomes.UNKNOWN
        raise exception.UpdateFailed(reason, outcome)
