# SPDX-License-Identifier: Apache-2.0
"""Tells Tacker's VNF instance which resources its guests became."""

from oslo_utils import uuidutils
from tacker import objects
from tacker.objects import fields
from tacker.objects import vnf_instantiated_info as inst_info


def name_vnfcs(info):
    """Give each vnfcResourceInfo its name: VDU and number, VDU1-0."""
    numbers = {}
    for vnfc in info.vnfc_resource_info:
        number = numbers[vnfc.vdu_id] = numbers.get(vnfc.vdu_id, -1) + 1
        vnfc.metadata = {'name': '%s-%d' % (vnfc.vdu_id, number)}


def vnfc(name, vdu):
    """Return the vnfcResourceInfo of a guest to be made.

    :param name: such as VDU1-2
    :param vdu: model.Vdu
    """
    return objects.VnfcResourceInfo(
        id=uuidutils.generate_uuid(), vdu_id=vdu.name,
        compute_resource=objects.ResourceHandle(), storage_resource_ids=[],
        metadata={'name': name},
        vnfc_cp_info=[objects.VnfcCpInfo(id=uuidutils.generate_uuid(),
                                         cpd_id=cp) for cp in vdu.cps])


def link_ports(vnfc, guest, request, vim_id):
    """Return {external link: [VnfLinkPortInfo]} of a guest's ports.

    :param request: InstantiateVnfRequest, which names each link's CPs
    """
    links = {cp.cpd_id: link.id for link in request.ext_virtual_links or []
             for cp in link.ext_cps or []}
    found = {}
    for cp_info in vnfc.vnfc_cp_info:
        cp_info.vnf_link_port_id = uuidutils.generate_uuid()
        found.setdefault(links.get(cp_info.cpd_id), []).append(
            objects.VnfLinkPortInfo(
                id=cp_info.vnf_link_port_id, cp_instance_id=cp_info.id,
                resource_handle=_port_handle(guest.ports[cp_info.cpd_id],
                                             vim_id)))
    return found


def add(info, vnfc, ports):
    """Add a VNFC to a VNF, and what link_ports() returned to its links."""
    info.vnfc_resource_info = [*info.vnfc_resource_info, vnfc]
    for link in info.vnf_virtual_link_resource_info or []:
        link.vnf_link_ports = [
            *(link.vnf_link_ports or []),
            *ports.get(link.vnf_virtual_link_desc_id, ())]
    set_started(info)


def remove(info, vnfc_ids):
    """Remove VNFCs from a VNF, and their connection points from its links."""
    gone = {cp.id for each in info.vnfc_resource_info if each.id in vnfc_ids
            for cp in each.vnfc_cp_info or []}
    info.vnfc_resource_info = [each for each in info.vnfc_resource_info
                               if each.id not in vnfc_ids]
    for link in info.vnf_virtual_link_resource_info or []:
        link.vnf_link_ports = [port for port in link.vnf_link_ports or []
                               if port.cp_instance_id not in gone]
    set_started(info)


def set_started(info):
    """List every VNFC as started in vnfcInfo."""
    info.vnfc_info = [
        objects.VnfcInfo(id=uuidutils.generate_uuid(), vdu_id=each.vdu_id,
                         vnfc_state=fields.VnfcState.STARTED)
        for each in info.vnfc_resource_info]


def record(info, vnfc, guest, vim_id):
    """Write a guest's server, addresses and ports into its VNFC."""
    vnfc.compute_resource = objects.ResourceHandle(
        vim_connection_id=vim_id, resource_id=guest.server.id,
        vim_level_resource_type='OS::Nova::Server')
    for cp_info in vnfc.vnfc_cp_info or []:
        port = guest.ports.get(cp_info.cpd_id)
        if port is not None:
            cp_info.cp_protocol_info = [_protocol_info(port)]
            _record_port(info, cp_info, port, vim_id)


def _protocol_info(port):
    addresses = [inst_info.IpAddress(
        type='IPV6' if ':' in fixed_ip['ip_address'] else 'IPV4',
        subnet_id=fixed_ip['subnet_id'],
        addresses=[fixed_ip['ip_address']])
        for fixed_ip in port.fixed_ips or []]
    return objects.CpProtocolInfo(
        layer_protocol='IP_OVER_ETHERNET',
        ip_over_ethernet=objects.IpOverEthernetAddressInfo(
            mac_address=port.mac_address, ip_addresses=addresses))


def _record_port(info, cp_info, port, vim_id):
    for virtual_link in info.vnf_virtual_link_resource_info or []:
        for link_port in virtual_link.vnf_link_ports or []:
            if link_port.cp_instance_id == cp_info.id:
                link_port.resource_handle = _port_handle(port, vim_id)


def _port_handle(port, vim_id):
    return objects.ResourceHandle(
        vim_connection_id=vim_id, resource_id=port.id,
        vim_level_resource_type='OS::Neutron::Port')
