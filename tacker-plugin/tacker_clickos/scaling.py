# SPDX-License-Identifier: Apache-2.0
"""Scales a VNF: guests come and go by their numbers.

A scale level says which guests there are: VDU1-0 to VDU1-N. Every step aims
at the level that Tacker wants, never at "one more", so a retry after a
failure finishes what began. Scale-in removes the guests that came last.

Tacker gives one dictionary, vnf_info, to all calls of an operation. The
driver keeps there what it did, until scale_resource_update records it.
"""

import contextlib
import json

from clickos_client import chains
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging
from oslo_utils import excutils
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm.infra_drivers import scale_driver

from tacker_clickos import clickos_api
from tacker_clickos import exception
from tacker_clickos import guests
from tacker_clickos import outages
from tacker_clickos import ports
from tacker_clickos import resources
from tacker_clickos import shared
from tacker_clickos import state
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values

LOG = logging.getLogger(__name__)

#: What the driver keeps in vnf_info: (VNFC, its link ports) of guests that it
#: made, {name: id} of their states, ids of the VNFCs that it removed.
_MADE = 'clickos_made'
_STATES = 'clickos_made_states'
_GONE = 'clickos_gone'
_GROUP = 'scale_group'


def announce(vnfd_dict, scaling, level):
    """Tell Tacker how a new VNF scales: its API reads scale_group.

    :param vnfd_dict: Tacker's, of the instantiation
    :param scaling: model.Scaling
    :param level: the instantiation level asked for, or None
    """
    levels = scaling.scale_levels(level)
    for info in vnfd_dict.get('scale_status') or ():    # a whole heal
        levels = dict(levels, **{info.aspect_id: info.scale_level})
    if not levels:
        return
    vnfd_dict['scale_status'] = [
        objects.ScaleInfo(aspect_id=name, scale_level=number)
        for name, number in levels.items()]
    vnfd_dict.setdefault('attributes', {})[_GROUP] = json.dumps(
        {'scaleGroupDict': {name: _group(scaling.aspects[name], number)
                            for name, number in levels.items()}})


def _group(aspect, level):
    """Return an aspect in the words of Tacker's scale group."""
    return {'vdu': list(aspect.steps), 'num': sum(aspect.steps.values()),
            'maxLevel': aspect.max_level, 'initialLevel': level,
            'initialNum': sum(aspect.initial.values()),
            'default': sum(aspect.guests(level).values())}


class Operation:
    """One scaling of one VNF, as far as it has come.

    :param vnf_info: Tacker's dictionary of the operation
    :param aspect: the name of the scaling aspect
    """

    def __init__(self, context, vnf_info, aspect):
        self._vnf_info = vnf_info
        self._vnf = objects.VnfInstance.get_by_id(context, vnf_info['id'])
        self._info = self._vnf.instantiated_vnf_info
        self._flavour = loader.load(
            vnflcm_utils.get_vnf_package_path(context, self._vnf.vnfd_id),
            self._info.flavour_id)
        self._aspect = self._flavour.scaling.aspects[aspect]
        self._request = objects.InstantiateVnfRequest.from_vnf_instance(
            self._vnf)

    def present(self):
        """Return the aspect's VNFCs: recorded, made, and not removed."""
        gone = self._vnf_info.get(_GONE, ())
        made = [vnfc for vnfc, _links in self._vnf_info.get(_MADE, ())]
        return [vnfc for vnfc in [*self._info.vnfc_resource_info, *made]
                if vnfc.vdu_id in self._aspect.steps and vnfc.id not in gone]

    def surplus(self):
        """Return the VNFCs that the wanted level does not have."""
        wanted = self._wanted()
        return [vnfc for vnfc in self.present()
                if state.name(vnfc) not in wanted]

    def _wanted(self):
        return self._aspect.names(self._vnf_info['after_scale_level'])

    def carry_out(self, access_info):
        """Make the guests that lack and remove those in excess.

        Chains share their flows among the existing guests.

        :raises: ClickOSError; the new guests are gone, and another try
            starts where this one stopped
        """
        connection = vim.connect(access_info)
        fleet = guests.Guests(connection, self._vnf.id,
                              self._vnf.vnf_instance_name,
                              state.Record.of(self._info), self._states())
        self._remove(connection, fleet)
        names = self._missing()
        try:
            self._make(connection, fleet, names)
        except Exception:
            with excutils.save_and_reraise_exception():
                self._leave_chains(connection, names)
                fleet.drop(self._flavour.vdus, names)

    def _states(self):
        return {**state.state_ids(self._vnf),
                **self._vnf_info.get(_STATES, {})}

    def _remove(self, connection, fleet):
        """Remove the surplus, and what an interrupted try has left."""
        surplus = self.surplus()
        names = [*map(state.name, surplus), *self._unrecorded()]
        given = self._transfer_flows(connection, surplus)
        self._leave_chains(connection, names)
        # Packets have changed flows until the guests were out of the chains.
        self._transfer_flows(connection, given)
        if surplus:
            shared.release(clickos_api.Client(connection), self._vnf.id,
                           self._aspect_vdus(), self._values(),
                           self._servers(gone=surplus))
        fleet.drop(self._flavour.vdus, names)
        self._vnf_info.setdefault(_GONE, set()).update(
            vnfc.id for vnfc in surplus)

    def _transfer_flows(self, connection, surplus):
        """Let the guests that stay go on with the flows of those that go.

        A guest that is dead or has another configuration gives none, and
        goes all the same.

        :returns: the VNFCs that gave theirs
        """
        api = clickos_api.Client(connection)
        given = []
        for vnfc in surplus:
            heirs = [state.server_id(each) for each in self.present()
                     if each.vdu_id == vnfc.vdu_id and each not in surplus]
            heirs = [server_id for server_id in heirs if server_id]
            if not heirs or not state.server_id(vnfc):
                continue
            try:
                count = api.transfer_flows(state.server_id(vnfc), heirs)
            except exception.ClickOSError as error:
                LOG.warning('VNF %s: flows of %s end: %s', self._vnf.id,
                            state.name(vnfc), error)
                continue
            LOG.info('VNF %s: %s gave %d flows', self._vnf.id,
                     state.name(vnfc), count)
            given.append(vnfc)
        return given

    def _unrecorded(self):
        recorded = {state.name(vnfc) for vnfc in self.present()}
        return [name for name in self._aspect.names(self._aspect.max_level)
                if name not in recorded]

    def _missing(self):
        present = {state.name(vnfc) for vnfc in self.present()}
        return [name for name in self._wanted() if name not in present]

    def _make(self, connection, fleet, names):
        vdus, values = self._flavour.vdus, self._values()
        made = [resources.vnfc(name, vdus[name.rpartition('-')[0]])
                for name in names]
        started = fleet.boot(guests.guest_specs(vdus, made, self._request,
                                                values))
        if started:
            shared.declare(
                clickos_api.Client(connection), self._vnf.id,
                self._aspect_vdus(), values,
                {**self._servers(), **{guest.name: guest.server.id
                                       for guest in started}})
        self._join_chains(connection, made)
        vim_id = self._vnf.vim_connection_info[0].id
        for vnfc, guest in zip(made, started):
            resources.record(self._info, vnfc, guest, vim_id)
            links = resources.link_ports(vnfc, guest, self._request, vim_id)
            self._vnf_info.setdefault(_MADE, []).append((vnfc, links))
        self._vnf_info.setdefault(_STATES, {}).update(
            {name: fleet.states[name] for name in names})

    def _values(self):
        return vnfd_values.merge(model.properties(self._flavour.vdus),
                                 state.in_force(self._vnf), {})

    def _aspect_vdus(self):
        return {name: self._flavour.vdus[name] for name in self._aspect.steps}

    def _servers(self, gone=()):
        """Return {name: server} of the guests of the aspect that stay."""
        return {state.name(vnfc): state.server_id(vnfc)
                for vnfc in self.present() if vnfc not in gone}

    def _join_chains(self, connection, made):
        existing = ports.of_vnf(connection, self._vnf.id)
        for vnfc in made:
            siblings = [self._ports(existing, each) for each in self.present()
                        if each.vdu_id == vnfc.vdu_id]
            with _without_chains():
                chains.join(connection.network, siblings, state.name(vnfc),
                            self._ports(existing, vnfc))

    def _ports(self, existing, vnfc):
        """Return {connection point: port id} of a guest."""
        names = {cp: '%s-%s' % (state.name(vnfc), cp)
                 for cp in self._flavour.vdus[vnfc.vdu_id].cps}
        return {cp: existing[name].id for cp, name in names.items()
                if name in existing}

    def _leave_chains(self, connection, names):
        gone = {'%s-%s' % (name, cp) for name in names
                for cp in self._flavour.vdus[name.rpartition('-')[0]].cps}
        existing = ports.of_vnf(connection, self._vnf.id)
        with _without_chains():
            chains.leave(connection.network, {
                port.id for name, port in existing.items() if name in gone})


@contextlib.contextmanager
def _without_chains():
    """Go on where Neutron has no networking-sfc."""
    try:
        yield
    except sdk_exceptions.NotFoundException:
        LOG.debug('Neutron has no chains')


class Scaling(scale_driver.VnfScaleAbstractDriver):
    """The methods that Tacker calls to scale a VNF, or to undo it."""

    def get_scale_ids(self, plugin, context, vnf_dict, auth_attr,
                      region_name=None):
        """Return the aspect's servers, before and after a scale-out."""
        operation = Operation(context, vnf_dict, vnf_dict['policy_name'])
        return [state.server_id(vnfc) for vnfc in operation.present()]

    def get_scale_in_ids(self, plugin, context, vnf_dict, is_reverse,
                         auth_attr, region_name, number_of_steps):
        """Return servers and names that go, and how many guests stay."""
        operation = Operation(context, vnf_dict, vnf_dict['policy_name'])
        surplus = operation.surplus()
        return ([state.server_id(vnfc) for vnfc in surplus],
                [state.name(vnfc) for vnfc in surplus], None,
                len(operation.present()) - len(surplus))

    def get_rollback_ids(self, plugin, context, vnf_dict, aspect_id,
                         auth_attr, region_name):
        """Return servers and names that a scale-out left behind."""
        surplus = Operation(context, vnf_dict, aspect_id).surplus()
        return ([state.server_id(vnfc) for vnfc in surplus],
                [state.name(vnfc) for vnfc in surplus], None)

    @outages.outlived
    def scale(self, context, plugin, auth_attr, policy, region_name):
        """Reach the wanted level; Tacker calls it once a step."""
        Operation(context, policy['vnf'], policy['name']).carry_out(auth_attr)

    @outages.outlived
    def scale_in_reverse(self, context, plugin, auth_attr, vnf_info,
                         scale_vnf_request, region_name, scale_name_list,
                         grp_id, vnf_instance):
        """Reach the wanted level, also to roll a scale-out back."""
        Operation(context, vnf_info,
                  scale_vnf_request.aspect_id).carry_out(auth_attr)

    @outages.outlived
    def scale_out_initial(self, context, plugin, auth_attr, vnf_info,
                          scale_vnf_request, region_name, vnf_instance):
        """Reach the wanted level from none."""
        Operation(context, vnf_info,
                  scale_vnf_request.aspect_id).carry_out(auth_attr)

    def scale_wait(self, context, plugin, auth_attr, policy, region_name,
                   last_event_id):
        """Nothing to wait for: scale waits."""

    def scale_update_wait(self, context, plugin, auth_attr, vnf_info,
                          region_name):
        """Nothing to wait for: the other steps wait."""

    def scale_resource_update(self, context, vnf_instance, scale_vnf_request,
                              vnf_info, vim_connection_info):
        """Record what came and went; Tacker calls it after a failure, too."""
        info = vnf_instance.instantiated_vnf_info
        made, gone = vnf_info.get(_MADE, ()), vnf_info.get(_GONE, ())
        states = {**state.state_ids(vnf_instance),
                  **vnf_info.get(_STATES, {})}
        resources.remove(info, gone)
        known = {vnfc.id for vnfc in info.vnfc_resource_info}
        for vnfc, links in made:
            if vnfc.id not in known and vnfc.id not in gone:
                resources.add(info, vnfc, links)
        if made or gone:
            there = {state.name(vnfc) for vnfc in info.vnfc_resource_info}
            state.set_param(info, state.STATES, {
                name: state_id for name, state_id in states.items()
                if name in there})
            state.show(vnf_instance)

    def get_grant_resource(self, *args, **kwargs):
        """Refuse: an NFVO would be asked for resources that Heat names."""
        raise exception.NotSupported(
            operation='be scaled with a grant of an NFVO',
            cure='leave base_url of [connect_grant] empty in tacker.conf')
