# SPDX-License-Identifier: Apache-2.0
"""Reads the VNFD of one deployment flavour from an onboarded package."""

import os
import re

import yaml

from tacker_clickos.clickgen import prelude
from tacker_clickos import exception
from tacker_clickos.vnfd import interfaces
from tacker_clickos.vnfd import mapping
from tacker_clickos.vnfd import model

POLICY = 'clickos.policies.Configuration'
ARTIFACT = 'clickos.artifacts.Configuration'
VDU = 'tosca.nodes.nfv.Vdu.Compute'
CP = 'tosca.nodes.nfv.VduCp'
MAX_CONFIGURATION = 24000
MAX_CPS = 8

_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_SIZE = re.compile(r'([0-9]{1,9}) *(MiB|MB|GiB|GB)\Z')
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_-]{0,31}\Z')
_FILE_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z')


def load(package_dir, flavour_id):
    """Return {VDU name: model.Vdu}.

    :param package_dir: the folder Tacker extracted the package to
    :param flavour_id: the deployment flavour of the VNF
    :raises: VnfdInvalid naming file, node and reason
    """
    path, vnfd = _find(package_dir, flavour_id)
    place = os.path.relpath(path, package_dir)
    try:
        return _vdus(place, vnfd['topology_template'], package_dir, path)
    except (AttributeError, KeyError, TypeError) as error:
        raise _invalid(place, 'is not a VNFD: %s' % error)


def _vdus(place, topology, package_dir, path):
    nodes = topology.get('node_templates') or {}
    vdus = {name: node for name, node in nodes.items()
            if node.get('type') == VDU}
    if not vdus:
        raise _invalid(place, 'no node of type %s' % VDU)
    interfaces.check(place, nodes, package_dir)
    policies = _policies(place, topology)
    found = {name: _vdu('%s: %s' % (place, name), name, node, nodes,
                        policies.get(name), package_dir, path)
             for name, node in vdus.items()}
    _check_shared(place, found)
    return found


def _check_shared(place, vdus):
    """A property of several VDUs must mean the same in each."""
    shared = model.properties(vdus)
    for vdu in vdus.values():
        for name, prop in vdu.configuration.properties.items():
            if prop != shared[name]:
                raise _invalid('%s: %s' % (place, vdu.name),
                               'property %s differs in another VDU' % name)


def _invalid(place, reason):
    return exception.VnfdInvalid(place=place, reason=reason)


def _find(package_dir, flavour_id):
    for folder in ('Definitions', '.'):
        folder = os.path.join(package_dir, folder)
        for name in sorted(os.listdir(folder) if os.path.isdir(folder)
                           else ()):
            if name.endswith(('.yaml', '.yml')):
                path = os.path.join(folder, name)
                vnfd = _parse(path)
                if _flavour(vnfd) == flavour_id:
                    return path, vnfd
    raise _invalid('Definitions', 'no file has the flavour %r' % flavour_id)


def _parse(path):
    try:
        with open(path, encoding='utf-8') as stream:
            # A safe loader in C.
            return yaml.load(stream, Loader=_LOADER)  # nosec B506
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _invalid(os.path.basename(path), str(error))


def _flavour(vnfd):
    for key in ('topology_template', 'substitution_mappings', 'properties'):
        vnfd = vnfd.get(key) if isinstance(vnfd, dict) else None
    return vnfd.get('flavour_id') if isinstance(vnfd, dict) else None


def _policies(place, topology):
    """Return {VDU name: (policy name, its properties)}."""
    found = {}
    for entry in topology.get('policies') or []:
        for name, policy in entry.items():
            if policy.get('type') != POLICY:
                continue
            for target in policy.get('targets') or []:
                if target in found:
                    raise _invalid('%s: %s' % (place, name),
                                   '%s has another %s' % (target, POLICY))
                found[target] = (name, policy.get('properties') or {})
    return found


def _vdu(place, name, node, nodes, policy, package_dir, path):
    if not _NAME.match(name):
        raise _invalid(place, 'a VDU name has A-Z a-z 0-9 _ - and at most '
                              '32 characters')
    if policy is None:
        raise _invalid(place, 'no policy of type %s has it as a target'
                       % POLICY)
    compute = _dig(node, 'capabilities', 'virtual_compute', 'properties')
    cps = _cps(place, name, nodes)
    return model.Vdu(
        name=name, image=_image(place, node), flavor=_flavor(compute),
        memory_mib=_memory(place, compute),
        vcpus=_dig(compute, 'virtual_cpu').get('num_virtual_cpu', 1),
        cps=cps,
        configuration=_configuration(place, node, policy, cps, package_dir,
                                     path))


def _dig(node, *keys):
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _image(place, node):
    image = _dig(node, 'properties', 'sw_image_data').get('name')
    if not isinstance(image, str) or not image:
        raise _invalid(place, 'sw_image_data has no name')
    return image


def _flavor(compute):
    return _dig(compute, 'requested_additional_capabilities',
                'properties').get('requested_additional_capability_name')


def _memory(place, compute):
    text = str(_dig(compute, 'virtual_memory').get('virtual_mem_size', ''))
    size = _SIZE.match(text)
    if not size:
        raise _invalid(place, 'virtual_mem_size %r is not a size such as '
                              '8 MiB' % text[:32])
    return int(size.group(1)) * (1024 if size.group(2)[0] == 'G' else 1)


def _cps(place, vdu, nodes):
    """Return the names of the VDU's connection points, vif 0 first."""
    cps = []
    for name, node in nodes.items():
        bound = any(requirement.get('virtual_binding') == vdu
                    for requirement in node.get('requirements') or [])
        if node.get('type') == CP and bound:
            if not _NAME.match(name):
                raise _invalid(place, 'connection point %r: a name has A-Z '
                                      'a-z 0-9 _ -' % name[:64])
            cps.append((_dig(node, 'properties').get('order', 0), name))
    if len(cps) > MAX_CPS:
        raise _invalid(place, '%d connection points, the limit is %d'
                       % (len(cps), MAX_CPS))
    if len({prelude.prefix(cp) for _order, cp in cps}) < len(cps):
        raise _invalid(place, 'two connection points have the same variables')
    return tuple(cp for _order, cp in sorted(cps))


def _configuration(place, node, policy, cps, package_dir, path):
    name, settings = policy
    place = '%s: %s' % (place, name)
    artifact = settings.get('artifact')
    entry = _dig(node, 'artifacts', artifact)
    if entry.get('type') != ARTIFACT:
        raise _invalid(place, 'the VDU has no artifact %r of type %s'
                       % (artifact, ARTIFACT))
    properties = mapping.properties(place, settings.get('properties', {}))
    for prop in properties.values():
        if prop.define and prop.define.startswith(
                tuple(prelude.prefix(cp) for cp in cps)):
            raise _invalid(place, 'define %s is a variable of a connection '
                                  'point' % prop.define)
    file_name, text = _read(place, entry.get('file'), package_dir, path)
    return model.Configuration(
        file_name=file_name, text=text, properties=properties,
        routed=settings.get('routed') is True)


def _read(place, name, package_dir, path):
    """Return name and text of an artifact, which stands beside the VNFD."""
    root = os.path.realpath(package_dir)
    target = os.path.realpath(os.path.join(os.path.dirname(path), str(name)))
    if os.path.commonpath((root, target)) != root:
        raise _invalid(place, 'artifact %s is outside the package' % name)
    if not os.path.isfile(target):
        raise _invalid(place, 'artifact %s is missing in the package'
                       % os.path.relpath(target, root))
    file_name = os.path.basename(target)
    if not _FILE_NAME.match(file_name):
        raise _invalid(place, 'artifact %r: a file name has A-Z a-z 0-9 _ . -'
                       % file_name[:64])
    if os.path.getsize(target) > MAX_CONFIGURATION:
        raise exception.DocumentTooLong(
            what=file_name, size=os.path.getsize(target),
            limit=MAX_CONFIGURATION)
    try:
        with open(target, encoding='utf-8') as stream:
            return file_name, stream.read()
    except UnicodeDecodeError:
        raise _invalid(file_name, 'is not UTF-8 text')
