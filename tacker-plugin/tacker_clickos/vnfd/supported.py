# SPDX-License-Identifier: Apache-2.0
"""What of SOL001 the driver follows; the rest is refused by name.

An author who writes a property expects its effect. Descriptive properties
have none, so they pass, and so does any property without a value.
"""

from tacker_clickos.vnfd import topology

_VNF = ('descriptor_id', 'descriptor_version', 'provider', 'product_name',
        'product_info_name', 'product_info_description', 'software_version',
        'vnfm_info', 'localization_languages',
        'default_localization_language', 'flavour_id', 'flavour_description')
_VDU = ('name', 'description', 'vdu_profile', 'sw_image_data')
_CP = ('layer_protocols', 'order', 'description', 'role', 'protocol',
       'vnic_type')
#: The bit rates of a link's profile plan capacity; they limit nothing.
_LINK = ('connectivity_type', 'description', 'vl_profile', 'test_access')
_NODES = ((topology.VDU, _VDU), (topology.CP, _CP), (topology.LINK, _LINK),
          (topology.VNF, _VNF))
#: Keys of maps inside: (node type, keys that lead there): known keys.
_MAPS = {
    (topology.VDU, ('properties', 'vdu_profile')): (
        'min_number_of_instances', 'max_number_of_instances'),
    (topology.VDU, ('capabilities',)): ('virtual_compute',
                                        'virtual_binding'),
    (topology.VDU, ('capabilities', 'virtual_compute', 'properties')): (
        'virtual_cpu', 'virtual_memory', 'requested_additional_capabilities',
        'logical_node'),
    (topology.VDU, ('capabilities', 'virtual_compute', 'properties',
                    'virtual_cpu')): ('num_virtual_cpu',),
    (topology.VDU, ('capabilities', 'virtual_compute', 'properties',
                    'virtual_memory')): ('virtual_mem_size',),
    (topology.LINK, ('properties', 'connectivity_type')): (
        'layer_protocols', 'flow_pattern'),
    (topology.LINK, ('properties', 'vl_profile')): (
        'max_bitrate_requirements', 'min_bitrate_requirements',
        'virtual_link_protocol_data'),
}
_REQUIREMENTS = {
    topology.VDU: (), topology.LINK: (),
    topology.CP: ('virtual_binding', 'virtual_link')}
_REASONS = {
    'virtual_storage': 'a guest has no disk',
    'virtual_local_storage': 'a guest has no disk'}
_VNIC_TYPES = (None, 'normal', 'virtio')


def check(place, node, types):
    """Refuse a node with a property that the driver does not follow.

    :param node: a node template with its types' defaults
    :raises: VnfdInvalid naming the property
    """
    for base, known in _NODES:
        if types.is_a(node['type'], base):
            _check_map(place, topology.dig(node, 'properties'), known)
            _check_inside(place, base, node)
            _check_requirements(place, base, node)
            break
    if types.is_a(node['type'], topology.CP):
        _check_point(place, topology.dig(node, 'properties'))
    if types.is_a(node['type'], topology.VNF):
        _check_type(place, node['type'], types.definition(node['type']))


def _check_type(place, name, definition):
    """Refuse a VNF's type that Tacker 16 does not find its data by."""
    if (definition.get('derived_from') != topology.VNF
            or not topology.dig(definition, 'properties')):
        raise topology.refused(place, 'type %s: Tacker reads only a type '
                               'that derives directly from %s and has '
                               'properties' % (str(name)[:128],
                                               topology.VNF))


def _check_map(place, found, known):
    for name, value in found.items():
        if name not in known and value not in (None, {}, [], '', False):
            raise _refused(place, name, known)


def _refused(place, name, known):
    return topology.refused(place, '%s is not supported: %s' % (
        str(name)[:64], _REASONS.get(name) or 'ClickOS follows only %s'
        % (', '.join(known) or 'none here')))


def _check_inside(place, base, node):
    for (kind, keys), known in _MAPS.items():
        if kind == base:
            _check_map('%s: %s' % (place, keys[-1]),
                       topology.dig(node, *keys), known)


def _check_requirements(place, base, node):
    known = _REQUIREMENTS.get(base)
    for entry in node.get('requirements') or [] if known is not None else ():
        for name in entry if isinstance(entry, dict) else ():
            if name not in known:
                raise _refused(place, name, known)


def _check_point(place, properties):
    vnic_type = properties.get('vnic_type')
    if vnic_type not in _VNIC_TYPES:
        raise topology.refused(place, 'vnic_type %r is not supported; a port '
                               'of the switch is normal'
                               % str(vnic_type)[:64])
    for entry in properties.get('protocol') or []:
        if topology.dig({'': entry}, '').get('address_data'):
            raise topology.refused(place, 'address_data is not supported; '
                                   'the request names addresses')
