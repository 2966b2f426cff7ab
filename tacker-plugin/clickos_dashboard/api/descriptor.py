# SPDX-License-Identifier: Apache-2.0
"""What a package's descriptor offers: the fields of the launch form.

The package is a tenant's file: the reader bounds its size and takes plain
values only. Tacker and its driver check what is launched.
"""

import contextlib
import dataclasses
import io
import posixpath
import zipfile
import zlib

from clickos_client import vnf
import yaml

from clickos_dashboard import exceptions

MAX_BYTES = 256 * 1024
#: More fields than a form of use has.
MAX_FIELDS = 256
_META = 'TOSCA-Metadata/TOSCA.meta'
_POLICY = 'clickos.policies.Configuration'
_VDU = 'tosca.nodes.nfv.Vdu.Compute'
_CP = 'tosca.nodes.nfv.VduCp'
_PRODUCT = ('product_name', 'provider', 'software_version')
_DAMAGED = (KeyError, NotImplementedError, OSError, RuntimeError, TypeError,
            ValueError, EOFError, zipfile.BadZipFile, zlib.error)


class _Loader(yaml.SafeLoader):
    """Plain YAML: a few lines of aliases expand without end."""

    def compose_node(self, parent, index):
        """Refuse an alias, else do as YAML does."""
        if self.check_event(yaml.AliasEvent):
            line = self.peek_event().start_mark.line + 1
            raise exceptions.DescriptorError(f'line {line}: an alias')
        return super().compose_node(parent, index)


@dataclasses.dataclass(frozen=True)
class Property:
    """A typed property and its limits."""

    name: str
    type: str
    description: str
    default: object
    live: bool
    limits: dict

    @property
    def shown_default(self):
        """Return the default as text."""
        return '–' if self.default is None else vnf.shown(self.default)


@dataclasses.dataclass(frozen=True)
class ConnectionPoint:
    """A port of a VDU."""

    name: str
    vdu: str


@dataclasses.dataclass(frozen=True)
class Vdu:
    """A guest type and its Click configuration."""

    name: str
    description: str
    memory: str
    configuration: str


@dataclasses.dataclass(frozen=True)
class Descriptor:
    """One deployment flavour of a VNF."""

    flavour: str
    description: str
    vdus: tuple
    connection_points: tuple
    properties: tuple


def read(csar):
    """Return the Descriptor of a CSAR's bytes.

    :raises DescriptorError: naming the file and the reason
    """
    with _opened(csar) as archive:
        name = _entry(archive)
        return _descriptor(archive, name, _yaml(archive, name))


def entry(csar):
    """Return the name of the definitions' first file.

    :raises DescriptorError: as read()
    """
    with _opened(csar) as archive:
        return _entry(archive)


def product(csar):
    """Return name, provider and version of a CSAR's VNF.

    :raises DescriptorError: as read(), and if there is no VNF
    """
    with _opened(csar) as archive:
        document = _yaml(archive, _entry(archive))
    for _name, node in _items(_dig(document, 'topology_template',
                                   'node_templates')):
        if _dig(node, 'properties', 'descriptor_id'):
            return tuple(str(_dig(node, 'properties', key, default=''))
                         for key in _PRODUCT)
    raise exceptions.DescriptorError('the package has no descriptor_id')


@contextlib.contextmanager
def _opened(csar):
    try:
        with zipfile.ZipFile(io.BytesIO(csar)) as archive:
            yield archive
    except _DAMAGED as exc:
        raise exceptions.DescriptorError(f'the package: {exc}')


def _entry(archive):
    """Return the name of the definitions' first file."""
    meta = _yaml_text(_META, _bytes(archive, _META).split(b'\n\n')[0])
    return str(_dig(meta, 'Entry-Definitions', default=''))


def _bytes(archive, name):
    if archive.getinfo(name).file_size > MAX_BYTES:
        raise exceptions.DescriptorError(
            f'{name}: more than {MAX_BYTES} bytes')
    return archive.read(name)


def _yaml(archive, name):
    return _yaml_text(name, _bytes(archive, name))


def _yaml_text(name, text):
    try:
        return yaml.load(text, Loader=_Loader)  # nosec B506
    except (yaml.YAMLError, ValueError, RecursionError,
            exceptions.DescriptorError) as exc:
        raise exceptions.DescriptorError(f'{name}: {exc}')


def _descriptor(archive, entry, document):
    topology = _dig(document, 'topology_template', default={})
    nodes = _dig(topology, 'node_templates', default={})
    policies = _policies(topology)
    points = [(_dig(node, 'properties', 'order', default=0), str(name),
               _binding(node)) for name, node in _items(nodes)
              if _dig(node, 'type') == _CP]
    return Descriptor(
        str(_dig(topology, 'substitution_mappings', 'properties',
                 'flavour_id', default='')),
        str(_dig(document, 'description', default='')),
        tuple(_vdu(archive, entry, str(name), node, policies)
              for name, node in _items(nodes) if _dig(node, 'type') == _VDU),
        _few('connection points', (
            ConnectionPoint(name, vdu)
            for _order, name, vdu in sorted(points, key=_by_order))),
        _properties(policies))


def _few(what, found):
    found = tuple(found)
    if len(found) > MAX_FIELDS:
        raise exceptions.DescriptorError(
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
    for requirement in _dig(node, 'requirements', default=[]) or ():
        bound = _dig(requirement, 'virtual_binding')
        if bound:
            return str(bound)
    return ''


def _vdu(archive, entry, name, node, policies):
    memory = _dig(node, 'capabilities', 'virtual_compute', 'properties',
                  'virtual_memory', 'virtual_mem_size', default='')
    return Vdu(name, str(_dig(node, 'properties', 'description', default='')),
               str(memory),
               _configuration(archive, entry, name, node, policies))


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
    return Property(
        name, str(body.get('type')), str(body.get('description') or ''),
        body.get('default'), bool(body.get('handler')),
        {key: value for key, value in body.items()
         if key in ('min', 'max', 'values', 'max_items')})


def _dig(node, *keys, default=None):
    """Return what lies behind keys, or the default."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return default if node is None else node


def _items(node):
    return node.items() if isinstance(node, dict) else ()
