# SPDX-License-Identifier: Apache-2.0
"""Tacker v1 infra driver: a VNF becomes Neutron ports and Nova servers.

No Heat, no user data scripts. Tacker knows the VIM types openstack and
kubernetes by name, so this driver stands in for the OpenStack one. It is no
subclass, since that driver runs scripts of packages.
"""

import contextlib

from oslo_config import cfg
from oslo_utils import excutils
from tacker import objects
from tacker.objects import fields
from tacker.vnfm.infra_drivers import abstract_driver

from tacker_clickos import automatic
from tacker_clickos import chained
from tacker_clickos import clickos_api
from tacker_clickos import conf
from tacker_clickos import connectivity
from tacker_clickos import exception
from tacker_clickos import guests
from tacker_clickos import outages
from tacker_clickos import ports
from tacker_clickos import replacement
from tacker_clickos import resources
from tacker_clickos import scaling
from tacker_clickos import shared
from tacker_clickos import state
from tacker_clickos import update
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values

INSTANCE_PREFIX = 'clickos-'


class ClickOSInfraDriver(connectivity.Connectivity,
                         abstract_driver.VnfAbstractDriver,
                         scaling.Scaling):
    """Life cycle of VNFs made of ClickOS guests."""

    def __init__(self):
        super().__init__()
        conf.register(cfg.CONF)

    def get_type(self):
        return 'openstack'

    def get_name(self):
        return 'clickos'

    def get_description(self):
        return 'ClickOS guests through Nova and Neutron'

    # Instantiation. instantiate_vnf does every step and waits, so that one
    # place cleans up. Tacker's steps before and after it are for Heat; here
    # they are empty.

    def pre_instantiation_vnf(self, context, vnf_instance,
                              vim_connection_info, vnf_software_images,
                              instantiate_vnf_req=None,
                              vnf_package_path=None):
        return {}

    @outages.outlived
    def instantiate_vnf(self, context, vnf_instance, vnfd_dict,
                        vim_connection_info, instantiate_vnf_req,
                        grant_response, plugin=None, vnf_package_path=None):
        """Make every guest of the VNF.

        Tacker calls it for a new VNF and, after delete, to heal a whole one.
        A heal finds the servers and ports still there, and the states of the
        guests with their live handler writes.

        :returns: the label Tacker keeps as instance_id
        :raises: ClickOSError; of a new VNF no server and no port is left
        """
        info = vnf_instance.instantiated_vnf_info
        flavour = loader.load(vnf_package_path,
                              instantiate_vnf_req.flavour_id)
        vdus = flavour.vdus
        healing = self._is_healing(vnf_instance)
        if not healing:
            state.drop_claims(info)
        values = self._wanted_values(vdus, instantiate_vnf_req, healing)
        keep = (state.kept_handlers(info, flavour, vnf_instance.vnfd_id)
                if healing else None)
        resources.name_vnfcs(info)
        specs = guests.guest_specs(vdus, info.vnfc_resource_info,
                                   instantiate_vnf_req, values, keep)
        connection = vim.connect(vim_connection_info.access_info)
        fleet = guests.Guests(
            connection, vnf_instance.id,
            vnf_instance.vnf_instance_name,
            state.Record.of(info) if healing else None,
            state.state_ids(vnf_instance) if healing else {})
        if healing:
            self._record_found(info, vim_connection_info.id, fleet)
        with self._known_to_tacker(vnf_instance, healing):
            self._make_all(vnf_instance, vim_connection_info.id, fleet,
                           specs, healing, lambda servers: shared.declare(
                               clickos_api.Client(connection),
                               vnf_instance.id, vdus, values, servers))
        if healing:
            fleet.keep_pairs(vdus)
        info = vnf_instance.instantiated_vnf_info    # save() replaced it
        state.set_param(info, state.PROPERTIES, values)
        state.set_flavour(info, flavour, vnf_instance.vnfd_id)
        vnfd_dict['instance_id'] = info.instance_id
        scaling.announce(vnfd_dict, flavour.scaling,
                         instantiate_vnf_req.instantiation_level_id)
        return info.instance_id

    @staticmethod
    @contextlib.contextmanager
    def _known_to_tacker(vnf_instance, stays=False):
        """Save instance_id before anything is made, and take it back.

        Tacker calls delete for a VNF with an instance_id only. If its
        conductor dies meanwhile, another one finds what this one made.

        :param stays: after an error, too: there may be guests
        """
        before = vnf_instance.instantiated_vnf_info.instance_id
        _set_instance_id(vnf_instance, INSTANCE_PREFIX + vnf_instance.id)
        try:
            yield
        except Exception:
            with excutils.save_and_reraise_exception():
                if not stays:
                    _set_instance_id(vnf_instance, before)

    @staticmethod
    def _wanted_values(vdus, request, healing):
        """Return the values; the package of a heal may lack old ones."""
        wanted = (request.additional_params or {}).get(state.PROPERTIES) or {}
        values = vnfd_values.merge(
            model.properties(vdus), *((wanted, {}) if healing
                                      else ({}, wanted)))
        update.check_size(vdus, values)
        return values

    def _make_all(self, vnf_instance, vim_id, fleet, specs, healing, share):
        """Make the guests and record them; heal one after the other.

        :param share: called with {name: server} of all guests
        """
        info = vnf_instance.instantiated_vnf_info
        made = (fleet.heal_each(specs) if healing
                else self._boot_all(fleet, specs, share))
        vnfcs = {state.name(vnfc): vnfc for vnfc in info.vnfc_resource_info}
        for guest in made:
            resources.record(info, vnfcs[guest.name], guest, vim_id)
            state.set_param(info, state.STATES, fleet.states)
            fleet.record.keep(info)
        if healing:
            share({name: state.server_id(vnfc)
                   for name, vnfc in vnfcs.items()})

    @staticmethod
    def _record_found(info, vim_id, fleet):
        """Record the servers of a VNF: its heal may fail, or its conductor.
        """
        vnfcs = {state.name(vnfc): vnfc for vnfc in info.vnfc_resource_info}
        for name, guest in fleet.only(vnfcs).items():
            resources.record(info, vnfcs[name], guest, vim_id)

    @staticmethod
    def _boot_all(fleet, specs, share):
        names = [spec.name for spec in specs]
        fleet.sweep()      # what an interrupted attempt may have left
        fleet.forget(names)
        try:
            made = fleet.boot(specs)
            share({guest.name: guest.server.id for guest in made})
            return made
        except Exception:
            with excutils.save_and_reraise_exception():
                fleet.sweep()
                fleet.forget(names)

    def create_wait(self, plugin, context, vnf_dict, vnf_id, auth_attr):
        pass

    def update_stack_wait(self, plugin, context, vnf_dict, stack_id,
                          auth_attr):
        pass

    def post_vnf_instantiation(self, context, vnf_instance,
                               vim_connection_info, instantiate_vnf_req):
        resources.set_started(vnf_instance.instantiated_vnf_info)
        state.show(vnf_instance)
        state.set_metadata(
            vnf_instance,
            tenant=vim_connection_info.access_info.get('project_name'))

    # Termination, also the first half of healing a whole VNF.

    @outages.outlived
    def delete(self, plugin, context, vnf_id, auth_attr, region_name=None,
               vnf_instance=None, terminate_vnf_req=None):
        """Remove the guests; may be called again.

        To heal, nothing is removed: instantiate_vnf makes each guest again.

        :raises: PortInChain, before anything is removed
        """
        if terminate_vnf_req is None and self._is_healing(vnf_instance):
            return
        connection = vim.connect(auth_attr)
        fleet = guests.Guests(connection, vnf_instance.id,
                              states=state.state_ids(vnf_instance))
        chained.require_none(connection, {
            port.id: name for name, port in ports.of_vnf(
                connection, vnf_instance.id).items()})
        fleet.remove()
        shared.forget(clickos_api.Client(connection), vnf_instance.id,
                      state.params(vnf_instance.instantiated_vnf_info).get(
                          state.SHARED) or ())
        state.set_metadata(vnf_instance, **{state.STATE: None})
        fleet.forget([
            state.name(vnfc) for vnfc in
            vnf_instance.instantiated_vnf_info.vnfc_resource_info])

    @outages.outlived
    def delete_wait(self, plugin, context, vnf_id, auth_attr,
                    region_name=None, vnf_instance=None):
        if not self._is_healing(vnf_instance):
            guests.Guests(vim.connect(auth_attr), vnf_instance.id).sweep()

    def delete_vnf_instance_resource(self, context, vnf_instance,
                                     vim_connection_info, vnf_resource):
        pass

    @staticmethod
    def _is_healing(vnf_instance):
        """Terminate marks the VNF as not instantiated before delete_wait."""
        return (vnf_instance.instantiation_state
                == fields.VnfInstanceState.INSTANTIATED)

    # Healing of single guests.

    @outages.outlived
    def heal_vnf(self, context, vnf_instance, vim_connection_info,
                 heal_vnf_request):
        """Make guests again; each keeps its ports and live handler writes.

        :raises: ClickOSError; another heal begins with the first guest
        """
        replacement.Replacement(
            context, vnf_instance, vim_connection_info,
            heal_vnf_request.vnfc_instance_id).heal(
                objects.InstantiateVnfRequest.from_vnf_instance(
                    vnf_instance), automatic.asked(heal_vnf_request))

    def heal_vnf_wait(self, context, vnf_instance, vim_connection_info,
                      heal_vnf_request):
        pass

    def post_heal_vnf(self, context, vnf_instance, vim_connection_info,
                      heal_vnf_request):
        pass

    # Operations that the OpenStack driver leaves to Heat.

    def get_cinder_list(self, vnf_info):
        return []       # for the grant request of a heal

    # The interface before SOL003, which Tacker 16 does not call.

    def _no_legacy(self, *args, **kwargs):
        raise exception.NotSupported(
            operation='be managed through the interface before SOL003',
            cure='use /vnflcm/v1')

    create = update = update_wait = get_resource_info = _no_legacy


def _set_instance_id(vnf_instance, instance_id):
    """Save it, unless Tacker knows it already."""
    info = vnf_instance.instantiated_vnf_info
    if info.instance_id != instance_id:
        info.instance_id = instance_id
        vnf_instance.save()
