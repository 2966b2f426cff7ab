# SPDX-License-Identifier: Apache-2.0
"""Reads a package's descriptor, as plain values.

The package is a tenant's file, so Horizon calls this module in a process of
its own, by clickos_client.bounded. The commands read the user's own packages
in theirs.
"""

import contextlib
import io
import posixpath
import zipfile
import zlib

from clickos_client import plain_yaml

MAX_BYTES = plain_yaml.MAX_BYTES
MAX_FILES = 256
#: Bytes of all files of a package; tacker_clickos takes no more.
MAX_UNPACKED = 16 * 1024 * 1024
#: More fields than a form of use has.
MAX_FIELDS = 256
#: Characters of an error, which may repeat what the package says.
_MAX_SHOWN = 400
_META = 'TOSCA-Metadata/TOSCA.meta'
_POLICY = 'clickos.policies.Configuration'
_VDU = 'tosca.nodes.nfv.Vdu.Compute'
_CP = 'tosca.nodes.nfv.VduCp'
_PRODUCT = ('product_name', 'provider', 'software_version')
_DAMAGED = (KeyError, NotImplementedError, OSError, RuntimeError, TypeError,
            ValueError, EOFError, zipfile.BadZipFile, zlib.error)


class Damaged(Exception):
    """A package that cannot be read: file and reason."""


def answer(csar):
    """Return what read() returns, or the text of a fault."""
    try:
        return {'descriptor': read(csar)}
    except Damaged as fault:
        return {'fault': str(fault)[:_MAX_SHOWN]}


def read(csar):
    """Return what a CSAR's descriptor offers, as descriptor.Descriptor.

    :raises Damaged: naming the file and the reason
    """
    with _opened(csar) as archive:
        name = _entry(archive)
        return _descriptor(archive, name, _yaml(archive, name))


def entry(csar):
    """Return the name of the definitions' first file.

    :raises Damaged: as read()
    """
    with _opened(csar) as archive:
        return _entry(archive)


def files(csar):
    """Return [(zipfile.ZipInfo, bytes)] of a CSAR's files.

    :raises Damaged: as read(), and if they are too large
    """
    with _opened(csar) as archive:
        size = sum(info.file_size for info in archive.infolist())
        if size > MAX_UNPACKED:
            raise Damaged(f'the package: {size} bytes when unpacked, the'
                          f' limit is {MAX_UNPACKED}')
        return [(info, archive.read(info)) for info in archive.infolist()]


def product(csar):
    """Return name, provider and version of a CSAR's VNF.

    :raises Damaged: as read(), and if there is no VNF
    """
    found = _vnf_properties(csar)
    return tuple(str(found.get(key, '')) for key in _PRODUCT)


def vnfd_id(csar):
    """Return the descriptor_id of a CSAR's VNF.

    :raises Damaged: as product()
    """
    return str(_vnf_properties(csar)['descriptor_id'])


def _vnf_properties(csar):
    """Return the properties of the node that is the VNF."""
    with _opened(csar) as archive:
        document = _yaml(archive, _entry(archive))
    for _name, node in _items(_dig(document, 'topology_template',
                                   'node_templates')):
        if _dig(node, 'properties', 'descriptor_id'):
            return node['properties']
    raise Damaged('the package has no descriptor_id')


@contextlib.contextmanager
def _opened(csar):
    try:
        with zipfile.ZipFile(io.BytesIO(csar)) as archive:
            if len(archive.infolist()) > MAX_FILES:
                raise Damaged(f'the package: {len(archive.infolist())} files,'
                              f' the limit is {MAX_FILES}')
            yield archive
    except _DAMAGED as exc:
        raise Damaged(f'the package: {exc}')


def _entry(archive):
    """Return the name of the definitions' first file.

    Without TOSCA.meta it is the YAML file at the root (SOL004, option 2).
    """
    names = archive.namelist()
    if _META not in names:
        return next((name for name in names if '/' not in name
                     and name.endswith(('.yaml', '.yml'))), '')
    meta = _yaml_text(_META, _bytes(archive, _META).split(b'\n\n')[0])
    return str(_dig(meta, 'Entry-Definitions', default=''))


def _bytes(archive, name):
    if archive.getinfo(name).file_size > MAX_BYTES:
        raise Damaged(
            f'{name}: more than {MAX_BYTES} bytes')
    return archive.read(name)


def _yaml(archive, name):
    return _yaml_text(name, _bytes(archive, name))


def _yaml_text(name, text):
    try:
        return plain_yaml.load(text)
    except plain_yaml.Refused as exc:
        line = f'line {exc.line}: ' if exc.line else ''
        raise Damaged(f'{name}: {line}{exc}')


def _descriptor(archive, entry, document):
    topology = _dig(document, 'topology_template', default={})
    nodes = _dig(topology, 'node_templates', default={})
    policies = _policies(topology)
    points = [(_dig(node, 'properties', 'order', default=0), str(name),
               _binding(node), _is_internal(node))
              for name, node in _items(nodes) if _dig(node, 'type') == _CP]
    return {
        'flavour': str(_dig(topology, 'substitution_mappings', 'properties',
                            'flavour_id', default='')),
        'description': str(_dig(document, 'description', default='')),
        'vdus': [_vdu(archive, entry, str(name), node, policies)
                 for name, node in _few('VDUs', (
                     each for each in _items(nodes)
                     if _dig(each[1], 'type') == _VDU))],
        'connection_points': _few('connection points', (
            {'name': name, 'vdu': vdu, 'internal': internal}
            for _order, name, vdu, internal in sorted(points,
                                                      key=_by_order))),
        'properties': _properties(policies)}


def _few(what, found):
    found = list(found)
    if len(found) > MAX_FIELDS:
        raise Damaged(
            f'{len(found)} {what}, the limit is {MAX_FIELDS}')
    return found


def _by_order(point):
    return point[0] if isinstance(point[0], int) else 0, point[1]


def _policies(topology):
    """Return the policies that hold configurations."""
    entries = _dig(topology, 'policies', default=[])
    found = [policy for entry in (entries if isinstance(entries, list) else ())
             for _name, policy in _items(entry)]
    return [p for p in found if _dig(p, 'type') == _POLICY]


def _binding(node):
    return str(_target(node, 'virtual_binding') or '')


def _is_internal(node):
    """Return whether a link of the VNF connects the point."""
    return bool(_target(node, 'virtual_link'))


def _target(node, requirement):
    found = _dig(node, 'requirements', default=[])
    for each in found if isinstance(found, list) else ():
        target = _dig(each, requirement)
        if target:
            return target
    return None


def _vdu(archive, entry, name, node, policies):
    memory = _dig(node, 'capabilities', 'virtual_compute', 'properties',
                  'virtual_memory', 'virtual_mem_size', default='')
    return {
        'name': name, 'memory': str(memory),
        'description': str(_dig(node, 'properties', 'description',
                                default='')),
        'configuration': _configuration(archive, entry, name, node,
                                        policies)}


def _configuration(archive, entry, name, node, policies):
    """Return the text of a VDU's Click configuration, or nothing."""
    for policy in policies:
        if name in (_dig(policy, 'targets', default=[]) or ()):
            artifact = _dig(policy, 'properties', 'artifact')
            file = _dig(node, 'artifacts', artifact, 'file')
            if file:
                path = posixpath.normpath(posixpath.join(
                    posixpath.dirname(entry), str(file)))
                return _bytes(archive, path).decode(errors='replace')
    return ''


def _properties(policies):
    found = {}
    for policy in policies:
        for name, body in _items(_dig(policy, 'properties', 'properties')):
            found[str(name)] = _property(str(name), body)
    return _few('properties', found.values())


def _property(name, body):
    body = body if isinstance(body, dict) else {}
    return {
        'name': name, 'type': str(body.get('type')),
        'description': str(body.get('description') or ''),
        'default': _plain(body.get('default')),
        'live': bool(body.get('handler')),
        'limits': {key: _plain(value) for key, value in body.items()
                   if key in ('min', 'max', 'or_zero', 'values', 'max_items',
                              'items')}}


def _plain(value):
    """Return a value as JSON has it: dates and the like as text."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _dig(node, *keys, default=None):
    """Return what lies at a path of keys, or the default."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return default if node is None else node


def _items(node):
    return node.items() if isinstance(node, dict) else ()
