# SPDX-License-Identifier: Apache-2.0
"""Tells Tacker's VNF instance which resources its guests became."""

from tacker import objects
from tacker.objects import vnf_instantiated_info as inst_info


def name_vnfcs(info):
    """Give each vnfcResourceInfo its name: VDU and number, VDU1-0."""
    numbers = {}
    for vnfc in info.vnfc_resource_info:
        number = numbers[vnfc.vdu_id] = numbers.get(vnfc.vdu_id, -1) + 1
        vnfc.metadata = {'name': '%s-%d' % (vnfc.vdu_id, number)}


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
                link_port.resource_handle = objects.ResourceHandle(
                    vim_connection_id=vim_id, resource_id=port.id,
                    vim_level_resource_type='OS::Neutron::Port')
