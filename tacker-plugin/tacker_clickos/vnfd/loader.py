# SPDX-License-Identifier: Apache-2.0
"""Reads the VNFD of one deployment flavour from an onboarded package."""

import contextlib
import dataclasses
import os
import re
import typing

from clickos_client import hop_tags
from clickos_client import plain_yaml

from tacker_clickos.clickgen import prelude
from tacker_clickos import exception
from tacker_clickos.vnfd import automatic
from tacker_clickos.vnfd import groups
from tacker_clickos.vnfd import interfaces
from tacker_clickos.vnfd import mapping
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import points as _points
from tacker_clickos.vnfd import scaling
from tacker_clickos.vnfd import sizes
from tacker_clickos.vnfd import supported
from tacker_clickos.vnfd import topology
from tacker_clickos.vnfd import virtual_links

ARTIFACT = 'clickos.artifacts.Configuration'
#: clickos-api keeps 1 MiB; our own lines before it take the rest.
MAX_CONFIGURATION = 960 * 1024
MAX_CPS = 8
#: Groups of elements of one configuration.
MAX_GROUPS = 64
#: Guests of a VDU with ha: pair.
_PAIR = 2
_LINK_LEVELS = 'tosca.policies.nfv.VirtualLinkInstantiationLevels'

_GROUP = re.compile(r'[A-Za-z0-9_]{1,64}\Z')
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_-]{0,31}\Z')
_FILE_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z')
_FOLDERS = ('Definitions', '.')
#: Parts of a topology that the driver would not follow.
_SECTIONS = ('outputs', 'relationship_templates', 'workflows')


class _Policies(typing.NamedTuple):
    """Policies besides the configurations, by name.

    scaling holds policies, the others hold (kind, policy).
    """

    scaling: dict
    automatic: dict
    placement: dict


def load(package_dir, flavour_id):
    """Return a model.Flavour.

    :param package_dir: the folder Tacker extracted the package to
    :param flavour_id: the deployment flavour of the VNF
    :raises: VnfdInvalid naming file, node and reason
    """
    documents = _documents(package_dir)
    for path, document in documents.items():
        if _flavour(document) == flavour_id:
            flavour, faults = _read_flavour(path, documents, package_dir)
            for fault in faults:
                raise fault
            return flavour
    raise _invalid('Definitions', 'no file has the flavour %r' % flavour_id)


def flavours(package_dir):
    """Return the model.Flavour of each deployment flavour.

    :raises: VnfdInvalid naming file, node and reason
    """
    names = map(_flavour, _documents(package_dir).values())
    return [load(package_dir, name) for name in names if name]


def review(package_dir):
    """Return all that is wrong with the flavours of a package.

    :returns: list of ClickOSError; each text begins with file and node
    """
    try:
        documents = _documents(package_dir)
    except exception.ClickOSError as fault:
        return [fault]
    found = [path for path in documents if _flavour(documents[path])]
    if not found:
        return [_invalid('Definitions', 'no file has a flavour_id under '
                         'substitution_mappings')]
    return [fault for path in found
            for fault in _read_flavour(path, documents, package_dir)[1]]


def _documents(package_dir):
    """Return {path: content} of the YAML files that can hold a VNFD."""
    found = {}
    for folder in _FOLDERS:
        folder = os.path.join(package_dir, folder)
        for name in sorted(os.listdir(folder) if os.path.isdir(folder)
                           else ()):
            if name.endswith(('.yaml', '.yml')):
                path = os.path.join(folder, name)
                found[path] = _parse(path)
    return found


def _read_flavour(path, documents, package_dir):
    """Return a model.Flavour and the faults found on the way."""
    place = os.path.relpath(path, package_dir)
    try:
        return _whole(place, documents, path, package_dir)
    except exception.ClickOSError as fault:
        return None, [fault]
    except (AttributeError, KeyError, TypeError) as error:
        return None, [_invalid(place, 'is not a VNFD: %s' % error)]


def _whole(place, documents, path, package_dir):
    types = topology.Types(documents.values())
    template = documents[path]['topology_template']
    nodes, policies, other, faults = _topology(place, template, types)
    vdus = {name: node for name, node in nodes.items()
            if types.is_a(node['type'], topology.VDU)}
    if not vdus and not faults:
        raise _invalid(place, 'no node of type %s' % topology.VDU)
    found, points, rules = {}, {}, ()
    with _noted(place, faults):
        links, connected = virtual_links.read(place, nodes, types)
        points = {cp: links[name] for cp, name in connected.items()}
    with _noted(place, faults):
        rules = groups.read(place, other.placement, template, vdus)
    for name, node in nodes.items():
        if types.is_a(node['type'], topology.VNF):
            interfaces.check('%s: %s' % (place, name), node, package_dir)
    for name, node in vdus.items():
        node_place = '%s: %s' % (place, name)
        with _noted(node_place, faults):
            cps = _cps(node_place, name, nodes, types)
            found[name] = dataclasses.replace(
                _vdu(node_place, name, node, cps, points),
                points={cp: _points.read('%s: %s' % (place, cp), nodes[cp])
                        for cp in cps})
        with _noted(node_place, faults):
            configuration = _configuration(
                node_place, node, policies.get(name), package_dir, path,
                faults)
            _check_variables(node_place, configuration, found[name].cps)
            found[name] = dataclasses.replace(
                found[name], configuration=configuration)
    scales, own = None, None
    if not faults:
        _check_shared(place, found)
        scales = scaling.read(place, other.scaling, vdus)
        _check_pairs(place, found, scales)
        placed = {vdu: rule for rule in rules for vdu in rule.vdus}
        found = {name: dataclasses.replace(
            vdu, most=scales.most(name), placement=placed.get(name))
            for name, vdu in found.items()}
        own = automatic.read(place, other.automatic, vdus, scales.aspects)
    return model.Flavour(vdus=found, scaling=scales, automatic=own), faults


def _check_pairs(place, vdus, scales):
    """Refuse a pair that has not two guests at every level."""
    for name, vdu in vdus.items():
        counts = {aspect.guests(level)[name]
                  for aspect in scales.aspects.values()
                  if name in aspect.steps
                  for level in range(aspect.max_level + 1)} or {1}
        if vdu.configuration.pair and counts != {_PAIR}:
            raise _invalid('%s: %s' % (place, name), 'ha: a pair has %d '
                           'guests at every level, found %s'
                           % (_PAIR, sorted(counts)))


def _topology(place, template, types):
    """Return what a topology has, with all references resolved.

    :returns: nodes, configurations by VDU, _Policies, faults
    """
    for name in _SECTIONS:
        if template.get(name):
            raise _invalid(place, '%s is not supported; remove it' % name)
    inputs = topology.dig(template, 'inputs')
    nodes, faults = {}, []
    for name, node in topology.dig(template, 'node_templates').items():
        node_place = '%s: %s' % (place, name)
        with _noted(node_place, faults):
            _check_node(node_place, node, types)
            nodes[name] = topology.resolved(
                node_place, types.complete(node), inputs)
            supported.check(node_place, nodes[name], types)
    policies, other = {}, _Policies({}, {}, {})
    for entry in template.get('policies') or []:
        for name, policy in entry.items():
            policy_place = '%s: %s' % (place, name)
            with _noted(policy_place, faults):
                if scaling.is_known(policy.get('type')):
                    other.scaling[name] = topology.resolved(
                        policy_place, policy, inputs)
                elif kind := _kind(policy, types, automatic.KINDS):
                    other.automatic[name] = kind, topology.resolved(
                        policy_place, policy, inputs)
                elif kind := _kind(policy, types, groups.POLICIES):
                    other.placement[name] = kind, topology.resolved(
                        policy_place, policy, inputs)
                else:
                    _add_policy(policies, policy_place, name, policy, types,
                                inputs)
    return nodes, policies, other, faults


def _kind(policy, types, kinds):
    """Return which of the kinds a policy's type is or derives from."""
    return next((kind for kind in kinds
                 if types.is_a(policy.get('type'), kind)), None)


@contextlib.contextmanager
def _noted(place, faults):
    """Add a fault to the list, and go on after the block."""
    try:
        yield
    except exception.ClickOSError as fault:
        faults.append(fault)
    except (AttributeError, TypeError) as error:
        faults.append(_invalid(place, 'is not as SOL001 has it: %s' % error))
    except KeyError:
        if not faults:    # else the missing part is a fault noted before
            raise


def _check_node(place, node, types):
    if not isinstance(node, dict):
        raise _invalid(place, 'expected a map')
    kind = node.get('type')
    if not any(types.is_a(kind, base) for base in topology.NODES):
        raise _invalid(place, 'type %s is not supported; ClickOS knows %s '
                       'and what derives from them'
                       % (str(kind)[:128], ', '.join(topology.NODES)))


def _check_shared(place, vdus):
    """A property of several VDUs must mean the same in each.

    One whose value the guests share belongs to one VDU.
    """
    common, seen = model.properties(vdus), set()
    for vdu in vdus.values():
        for name, prop in vdu.configuration.properties.items():
            if prop != common[name]:
                raise _invalid('%s: %s' % (place, vdu.name),
                               'property %s differs in another VDU' % name)
            if prop.shared and name in seen:
                raise _invalid('%s: %s' % (place, vdu.name), 'property %s: '
                               'shared, but another VDU has it, too' % name)
            seen.add(name)


def _invalid(place, reason):
    return exception.VnfdInvalid(place=place, reason=reason)


def _parse(path):
    try:
        with open(path, 'rb') as stream:
            # Packages of earlier versions may have a key twice.
            return plain_yaml.load(stream.read(plain_yaml.MAX_BYTES + 1),
                                   may_repeat=True)
    except plain_yaml.Refused as fault:
        raise _invalid(os.path.basename(path), '%s%s' % (
            'line %d: ' % fault.line if fault.line else '', fault))


def _flavour(vnfd):
    properties = topology.dig(vnfd, 'topology_template',
                              'substitution_mappings', 'properties')
    return properties.get('flavour_id')


def _add_policy(found, place, name, policy, types, inputs):
    """Add {VDU name: (policy name, its properties)} of a policy."""
    if not types.is_a(policy.get('type'), topology.CONFIGURATION):
        _check_policy(place, policy.get('type'), types)
        return
    settings = topology.resolved(place, policy.get('properties') or {},
                                 inputs)
    for target in policy.get('targets') or []:
        if target in found:
            raise _invalid(place, '%s has another %s'
                           % (target, topology.CONFIGURATION))
        found[target] = (name, settings)


def _check_policy(place, kind, types):
    """Refuse a policy that ClickOS would not follow.

    The levels of virtual links change no number of guests.
    """
    if not types.is_a(kind, _LINK_LEVELS):
        raise _invalid(place, 'policy type %s is not supported; remove the '
                       'policy' % str(kind)[:128])


def _vdu(place, name, node, cps, points):
    """Return a VDU whose configuration is not read yet.

    :param points: {CP: model.InternalLink}
    """
    if not _NAME.match(name):
        raise _invalid(place, 'a VDU name has A-Z a-z 0-9 _ - and at most '
                              '32 characters')
    compute = topology.dig(node, 'capabilities', 'virtual_compute',
                           'properties')
    return model.Vdu(
        name=name, image=_image(place, node), flavor=_flavor(compute),
        memory_mib=_memory(place, compute),
        vcpus=topology.dig(compute, 'virtual_cpu').get('num_virtual_cpu', 1),
        cps=cps, configuration=None, specs=_specs(place, compute),
        internal={cp: points[cp] for cp in cps if cp in points})


def _image(place, node):
    image = topology.dig(node, 'properties', 'sw_image_data').get('name')
    if not isinstance(image, str) or not image:
        raise _invalid(place, 'sw_image_data has no name')
    return image


def _flavor(compute):
    wanted = topology.dig(compute, 'requested_additional_capabilities',
                          'properties')
    return wanted.get('requested_additional_capability_name')


def _specs(place, compute):
    """Return the flavor's extra specs that capabilities ask for."""
    found = {}
    for name, entry in topology.dig(
            compute, 'requested_additional_capabilities').items():
        asked = topology.dig({'': entry}, '', 'target_performance_parameters')
        if name == 'properties' or topology.dig(
                {'': entry}, '').get('support_mandatory') is False:
            continue
        if not asked:
            raise _invalid(place, 'requested_additional_capabilities: %s '
                           'has no target_performance_parameters'
                           % str(name)[:64])
        found.update(asked)
    for entry in topology.dig(compute, 'logical_node').values():
        found.update(topology.dig({'': entry}, '',
                                  'logical_node_requirements'))
    return {str(key): str(value) for key, value in found.items()}


def _memory(place, compute):
    memory = topology.dig(compute, 'virtual_memory')
    text = str(memory.get('virtual_mem_size', ''))
    try:
        return sizes.mib(text)
    except ValueError as error:
        raise _invalid(place, 'virtual_mem_size %s' % error)


def _cps(place, vdu, nodes, types):
    """Return the names of the VDU's connection points, vif 0 first."""
    cps = []
    for name, node in nodes.items():
        bound = vdu in topology.targets(node, 'virtual_binding')
        if bound and types.is_a(node['type'], topology.CP):
            if not _NAME.match(name):
                raise _invalid(place, 'connection point %r: a name has A-Z '
                                      'a-z 0-9 _ -' % name[:64])
            order = topology.dig(node, 'properties').get('order', 0)
            cps.append((order, name))
    if len(cps) > MAX_CPS:
        raise _invalid(place, '%d connection points, the limit is %d'
                       % (len(cps), MAX_CPS))
    if len({prelude.prefix(cp) for _order, cp in cps}) < len(cps):
        raise _invalid(place, 'two connection points have the same variables')
    return tuple(cp for _order, cp in sorted(cps))


def _configuration(place, node, policy, package_dir, path, faults):
    name, settings = policy or _only_artifact(place, node)
    place = '%s: %s' % (place, name)
    artifact = settings.get('artifact')
    entry = topology.dig(node, 'artifacts', artifact)
    if entry.get('type') != ARTIFACT:
        raise _invalid(place, 'the VDU has no artifact %r of type %s'
                       % (artifact, ARTIFACT))
    file_name, text = _read(place, entry.get('file'), package_dir, path)
    return model.Configuration(
        file_name=file_name, text=text,
        properties=mapping.properties(
            place, settings.get('properties', {}), faults),
        outputs=mapping.outputs(place, settings.get('outputs', {}), faults),
        copies=_copies(place, settings), pair=_pair(place, settings),
        groups=_groups(place, settings),
        **_reach(place, settings))


def _only_artifact(place, node):
    """Return a policy for a VDU that has none, but one configuration."""
    found = [name for name, entry in topology.dig(node, 'artifacts').items()
             if topology.dig({'': entry}, '').get('type') == ARTIFACT]
    if len(found) != 1:
        raise _invalid(place, 'no policy of type %s has it as a target, and '
                       'it has %d artifacts of type %s'
                       % (topology.CONFIGURATION, len(found), ARTIFACT))
    return found[0], {'artifact': found[0]}


def _reach(place, settings):
    """Return which kinds of forwarding a policy declares."""
    found = {kind: settings.get(kind, False)
             for kind in ('routed', 'transparent', 'whole_frames')}
    for kind, value in found.items():
        if not isinstance(value, bool):
            raise _invalid(place, '%s: expected true or false, got %r'
                           % (kind, str(value)[:32]))
    if found['routed'] and found['transparent']:
        raise _invalid(place, 'routed and transparent exclude each other')
    return found


def _pair(place, settings):
    """Return whether a policy asks for a pair of guests."""
    found = settings.get('ha')
    if found not in (None, 'pair'):
        raise _invalid(place, 'ha: expected pair, got %r' % str(found)[:32])
    if found and settings.get('transparent'):
        raise _invalid(place, 'ha: a transparent VNF has no addresses that '
                       'its other guest could take over')
    return found is not None


def _copies(place, settings):
    """Return how many frames the VDU may make of one."""
    found = settings.get('copies', 1)
    if type(found) is not int or not 1 <= found <= hop_tags.MAX_COPIES:
        raise _invalid(place, 'copies: expected a whole number of 1 to %d, '
                       'got %r' % (hop_tags.MAX_COPIES, str(found)[:32]))
    return found


def _groups(place, settings):
    """Return {group of elements: class} that a policy names, or None."""
    found = settings.get('groups')
    if found is None:
        return None
    if not isinstance(found, dict) or len(found) > MAX_GROUPS or not all(
            isinstance(word, str) and _GROUP.match(word)
            for each in found.items() for word in each):
        raise _invalid(place, 'groups: expected at most %d groups, each with '
                       'a class, got %r' % (MAX_GROUPS, str(found)[:64]))
    return {**found, 'ha': 'VRRP'} if settings.get('ha') else found


def _check_variables(place, configuration, cps):
    """Refuse a define that would hide a variable of a connection point."""
    taken = tuple(prelude.prefix(cp) for cp in cps)
    for prop in configuration.properties.values():
        if prop.define and prop.define.startswith(taken):
            raise _invalid(place, 'define %s is a variable of a connection '
                                  'point' % prop.define)


def _read(place, name, package_dir, path):
    """Return name and text of an artifact, which stands next to the VNFD."""
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
