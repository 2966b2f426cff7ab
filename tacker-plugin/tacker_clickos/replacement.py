# SPDX-License-Identifier: Apache-2.0
"""Heals or replaces guests of a VNF; each keeps its state."""

from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import clickos_api
from tacker_clickos import guests
from tacker_clickos import resources
from tacker_clickos import shared
from tacker_clickos import state
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values


class Replacement:
    """Guests of a VNF that are to begin again.

    The package may be another one than that of the old guests. Then values of
    properties that it lacks end, and so do writes that its properties give.

    :param vnfc_ids: ids of the VNFCs
    """

    def __init__(self, context, vnf_instance, vim_connection_info, vnfc_ids):
        self._vnf = vnf_instance
        self._vim_id = vim_connection_info.id
        self._connection = vim.connect(vim_connection_info.access_info)
        self._vnfc_ids = vnfc_ids
        self._flavour = loader.load(
            vnflcm_utils.get_vnf_package_path(context, vnf_instance.vnfd_id),
            vnf_instance.instantiated_vnf_info.flavour_id)

    def heal(self, request, asked):
        """Make the guests again, one after the other, dead ones first.

        :param request: names the networks, as InstantiateVnfRequest does
        :param asked: see Guests.heal()
        :raises: ClickOSError; another try begins with the first guest
        """
        sick, specs, fleet = self._gather(request)
        vnfcs = {spec.name: vnfc for vnfc, spec in zip(sick, specs)}
        for guest in fleet.heal_each(specs, asked):
            self._record(fleet, vnfcs[guest.name], guest)
        if len(sick) == len(self._vnf.instantiated_vnf_info
                            .vnfc_resource_info):
            fleet.keep_pairs(self._flavour.vdus)
        self._finish()

    def carry_out(self, request, before_boot):
        """Replace the guests by others with other ports.

        :param before_boot: called once the old servers are gone
        :raises: ClickOSError; another try starts where this one stopped
        """
        sick, specs, fleet = self._gather(request)
        fleet.remove([state.server_id(vnfc) for vnfc in sick])
        before_boot()
        for vnfc, guest in zip(sick, fleet.boot(specs)):
            self._record(fleet, vnfc, guest)
        self._finish()

    def _gather(self, request):
        """Return the VNFCs, the specs for them and the VNF's guests."""
        info = self._vnf.instantiated_vnf_info
        sick = [vnfc for vnfc in info.vnfc_resource_info
                if vnfc.id in self._vnfc_ids]
        specs = guests.guest_specs(
            self._flavour.vdus, sick, request, self._values(),
            state.kept_handlers(info, self._flavour, self._vnf.vnfd_id))
        return sick, specs, guests.Guests(
            self._connection, self._vnf.id, self._vnf.vnf_instance_name,
            state.Record.of(info), state.state_ids(self._vnf))

    def _record(self, fleet, vnfc, guest):
        """Record a guest at once: Tacker saves it though a later one fails.
        """
        info = self._vnf.instantiated_vnf_info
        resources.record(info, vnfc, guest, self._vim_id)
        state.set_param(info, state.STATES, fleet.states)
        fleet.record.keep(info)

    def _finish(self):
        info = self._vnf.instantiated_vnf_info
        shared.declare(
            clickos_api.Client(self._connection), self._vnf.id,
            self._flavour.vdus, self._values(), {
                state.name(vnfc): state.server_id(vnfc)
                for vnfc in info.vnfc_resource_info})
        state.set_param(info, state.PROPERTIES, self._values())
        state.set_flavour(info, self._flavour, self._vnf.vnfd_id)
        state.show(self._vnf)

    def _values(self):
        return vnfd_values.merge(model.properties(self._flavour.vdus),
                                 state.in_force(self._vnf), {})
