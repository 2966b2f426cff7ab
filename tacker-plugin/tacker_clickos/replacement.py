# SPDX-License-Identifier: Apache-2.0
"""Replaces guests of a VNF: new servers with the states of the old ones."""

from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import guests
from tacker_clickos import resources
from tacker_clickos import state
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values


class Replacement:
    """Guests of a VNF that are to be replaced.

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

    def carry_out(self, request, before_boot=None):
        """Replace the guests.

        :param request: names the networks, as InstantiateVnfRequest does
        :param before_boot: called once the old servers are gone
        :raises: ClickOSError; another try starts where this one stopped
        """
        info = self._vnf.instantiated_vnf_info
        sick = [vnfc for vnfc in info.vnfc_resource_info
                if vnfc.id in self._vnfc_ids]
        values = self._values()
        wishes = guests.wishes(
            self._flavour.vdus, sick, request, values, state.kept_handlers(
                info, self._flavour, self._vnf.vnfd_id))
        fleet = guests.Guests(self._connection, self._vnf.id,
                              self._vnf.vnf_instance_name,
                              state.Record.of(info),
                              state.state_ids(self._vnf))
        fleet.remove([state.server_id(vnfc) for vnfc in sick])
        if before_boot is not None:
            before_boot()
        for vnfc, guest in zip(sick, fleet.boot(wishes)):
            resources.record(info, vnfc, guest, self._vim_id)
        state.set_param(info, state.PROPERTIES, values)
        state.set_param(info, state.STATES, fleet.states)
        state.set_flavour(info, self._flavour, self._vnf.vnfd_id)
        fleet.record.keep(info)
        state.show(self._vnf)

    def _values(self):
        return vnfd_values.merge(model.properties(self._flavour.vdus),
                                 state.in_force(self._vnf), {})
