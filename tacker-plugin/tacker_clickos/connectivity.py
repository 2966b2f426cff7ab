# SPDX-License-Identifier: Apache-2.0
"""Changes the external networks of a running VNF.

A guest's addresses are part of its configuration, so the guests with changed
connection points are replaced. Their new ports are made first: a request that
Neutron refuses leaves the VNF as it was.
"""

import types

from oslo_utils import excutils
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import chained
from tacker_clickos import exception
from tacker_clickos import links
from tacker_clickos import outages
from tacker_clickos import pairs
from tacker_clickos import ports
from tacker_clickos import replacement
from tacker_clickos import state
from tacker_clickos import vim
from tacker_clickos.vnfd import loader

#: The name of a port that takes the place of another one.
_NEW = '.new'


class Change:
    """One request against one VNF.

    :param request: Tacker's ChangeExtConnRequest
    """

    def __init__(self, context, vnf_instance, vim_connection_info, request):
        self._context = context
        self._vnf = vnf_instance
        self._vim_connection_info = vim_connection_info
        self._connection = vim.connect(vim_connection_info.access_info)
        info = vnf_instance.instantiated_vnf_info
        self._vdus = loader.load(
            vnflcm_utils.get_vnf_package_path(context, vnf_instance.vnfd_id),
            info.flavour_id).vdus
        self._record = state.Record.of(info)
        self._points = {cp.cpd_id for link in request.ext_virtual_links
                        for cp in link.ext_cps or []}
        self._request = _merged(vnf_instance, request, self._points)
        self._vnfcs = [vnfc for vnfc in info.vnfc_resource_info
                       if self._points & set(self._vdus[vnfc.vdu_id].cps)]

    def carry_out(self):
        """Make new ports, then replace the guests.

        :raises: ClickOSError; another try continues with the new ports
        """
        self._check()
        existing = ports.of_vnf(self._connection, self._vnf.id)
        self._check_chains(existing)
        self._check_pairs(existing)
        made = []
        try:
            for vnfc in self._vnfcs:
                self._make(vnfc, existing, made)
        except Exception:
            with excutils.save_and_reraise_exception():
                ports.delete(self._connection, made)
        replacement.Replacement(
            self._context, self._vnf, self._vim_connection_info,
            [vnfc.id for vnfc in self._vnfcs]).carry_out(
                self._request, self._put_in_place)
        self._vnf.task_state = None
        self._vnf.save()

    def _check(self):
        known = {cp for vdu in self._vdus.values() for cp in vdu.cps}
        for name in sorted(self._points - known):
            raise exception.ResourceNotUsable(
                kind='connection point', name=name[:64],
                reason='this VNF has only: %s' % ', '.join(sorted(known)))

    def _check_chains(self, existing):
        """Refuse while a chain holds a port that has to go."""
        gone = {existing[name].id: name for vnfc in self._vnfcs
                for name in self._names(vnfc) if name in existing}
        chained.require_none(self._connection, gone)

    def _check_pairs(self, existing):
        """Refuse networks that a pair cannot use, before a port is made."""
        for vdu in {vnfc.vdu_id for vnfc in self._vnfcs}:
            links_of = links.of_pair(self._vdus[vdu], self._request)
            wanted = {pairs.virtual_name(vdu, cp): link for cp, link
                      in links_of.items() if cp in self._points}
            pairs.require_addresses(self._connection, {
                name: link for name, link in wanted.items()
                if not _fits(existing.get(name), link)})

    def _names(self, vnfc):
        """Return {port name: connection point} of the changed ones."""
        return {'%s-%s' % (state.name(vnfc), cp): cp
                for cp in self._vdus[vnfc.vdu_id].cps if cp in self._points}

    def _make(self, vnfc, existing, made):
        """Make the ports of a guest that lack, under names of their own.

        :param existing: {name: port}, to which the new ones are added
        :param made: list of the new ones
        """
        vdu = self._vdus[vnfc.vdu_id]
        number = int(state.name(vnfc).rpartition('-')[2])
        wanted = links.of_guest(vdu, self._request, number)
        virtual = self._virtual(vdu, existing, made)

        def make(cp):
            return lambda name: ports.create(
                self._connection, self._vnf.id, name, wanted[cp], vdu, cp,
                self._record, virtual.get(cp))
        for name, cp in self._names(vnfc).items():
            has_moved = cp in virtual and virtual[cp].name.endswith(_NEW)
            self._port(name, None if has_moved else existing.get(name),
                       wanted[cp], existing, made, make(cp))

    def _virtual(self, vdu, existing, made):
        """Return {CP: port} of the addresses of a pair."""
        def make(link):
            return lambda name: pairs.reserve(
                self._connection, self._vnf.id, name, link)
        names = {cp: pairs.virtual_name(vdu.name, cp) for cp in vdu.cps}
        return {cp: self._port(names[cp], existing.get(names[cp]), link,
                               existing, made, make(link))
                for cp, link in links.of_pair(vdu, self._request).items()
                if cp in self._points}

    def _port(self, name, old, link, existing, made, make):
        """Return the port that fits: of an earlier try, the old or a new one.
        """
        new = existing.get(name + _NEW)
        if _fits(new, link):
            return new
        if new is not None:    # of another request
            ports.delete(self._connection, [new])
        if _fits(old, link):
            return old
        existing[name + _NEW] = make(name + _NEW)
        made.append(existing[name + _NEW])
        return made[-1]

    def _put_in_place(self):
        """Let the new ports take the names of the old ones."""
        existing = ports.of_vnf(self._connection, self._vnf.id)
        for name, port in existing.items():
            if name.endswith(_NEW):
                old = existing.get(name.removesuffix(_NEW))
                ports.delete(self._connection, [old] if old else [])
                self._connection.network.update_port(
                    port.id, name=name.removesuffix(_NEW))


def _fits(port, link):
    """Return whether a port is as wanted already."""
    if port is None or port.network_id != link.network_id:
        return False
    if link.mac and port.mac_address != link.mac.lower():
        return False
    have = {(fixed['subnet_id'], fixed['ip_address'])
            for fixed in port.fixed_ips or []}
    return all(any(wanted.get('subnet_id', subnet) == subnet
                   and wanted.get('ip_address', address) == address
                   for subnet, address in have)
               for wanted in link.fixed_ips)


def _merged(vnf_instance, request, points):
    """Return the links of a VNF after a request, as links.resolve reads."""
    before = objects.InstantiateVnfRequest.from_vnf_instance(vnf_instance)
    kept = [types.SimpleNamespace(
        id=link.id, resource_id=link.resource_id,
        ext_cps=[cp for cp in link.ext_cps or [] if cp.cpd_id not in points])
        for link in before.ext_virtual_links or []]
    return types.SimpleNamespace(
        ext_virtual_links=[*kept, *request.ext_virtual_links])


class Connectivity:
    """The methods that Tacker calls to change external connectivity."""

    @outages.outlived
    def change_ext_conn_vnf(self, context, vnf_instance, vnf_dict,
                            vim_connection_info, change_ext_conn_req):
        """Connect the VNF with other networks, or by other addresses."""
        Change(context, vnf_instance, vim_connection_info,
               change_ext_conn_req).carry_out()

    def change_ext_conn_vnf_wait(self, context, vnf_instance,
                                 vim_connection_info):
        """Nothing to wait for: change_ext_conn_vnf waits."""

    def post_change_ext_conn_vnf(self, context, vnf_instance,
                                 vim_connection_info):
        """Nothing to note: change_ext_conn_vnf noted it."""
