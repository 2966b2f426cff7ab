# SPDX-License-Identifier: Apache-2.0
"""The topology of a VNFD with its types, inputs and short forms resolved.

TOSCA lets an author derive types, refer to inputs and write a requirement in
two forms. The reader behind this module sees one form only.
"""

from tacker_clickos import exception

VNF = 'tosca.nodes.nfv.VNF'
VDU = 'tosca.nodes.nfv.Vdu.Compute'
CP = 'tosca.nodes.nfv.VduCp'
#: tosca-parser wants a node where two connection points share a link.
LINK = 'tosca.nodes.nfv.VnfVirtualLink'
CONFIGURATION = 'clickos.policies.Configuration'
NODES = (VNF, VDU, CP, LINK)
_MAX_DERIVED = 32
_FUNCTIONS = frozenset((
    'concat', 'get_artifact', 'get_attribute', 'get_nodes_of_type',
    'get_operation_output', 'get_property', 'join', 'token'))


def refused(place, reason):
    """Return the error for a place of a VNFD."""
    return exception.VnfdInvalid(place=place, reason=reason)


def dig(node, *keys):
    """Return the map at a path of keys, or an empty one."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


class Types:
    """The node and policy types of a package's files."""

    def __init__(self, documents):
        """Remember the types.

        :param documents: the parsed YAML files
        """
        self._types = {}
        for document in documents:
            for section in ('node_types', 'policy_types'):
                self._types.update(dig(document, section))

    def is_a(self, name, base):
        """Return whether a type is another or derives from it."""
        return base in self._line(name)

    def definition(self, name):
        """Return a type's own definition, or an empty one."""
        return dig(self._types, name)

    def complete(self, node):
        """Return a node template with the values its types give it."""
        whole = {}
        for name in reversed(self._line(node.get('type'))):
            whole = _merged(whole, _values_of(self._types.get(name)))
        return _merged(whole, node)

    def _line(self, name):
        """Return a type and what it derives from, the root last."""
        line = []
        while isinstance(name, str) and len(line) < _MAX_DERIVED:
            line.append(name)
            name = dig(self._types, name).get('derived_from')
        return line


def _values_of(entry):
    """Return the defaults of a type in the form of a node template."""
    capabilities = {
        name: {'properties': _defaults(capability)}
        for name, capability in dig(entry, 'capabilities').items()}
    return {'properties': _defaults(entry), 'capabilities': capabilities,
            'artifacts': dig(entry, 'artifacts')}


def _defaults(entry):
    return {name: prop['default']
            for name, prop in dig(entry, 'properties').items()
            if isinstance(prop, dict) and 'default' in prop}


def _merged(lower, upper):
    """Return maps merged key by key; any other value of upper wins."""
    if not (isinstance(lower, dict) and isinstance(upper, dict)):
        return upper
    both = {key: _merged(lower[key], upper[key])
            for key in lower.keys() & upper.keys()}
    return {**lower, **upper, **both}


def resolved(place, value, inputs):
    """Return a value with the inputs' defaults in place of get_input.

    :param inputs: the topology's inputs
    :raises: VnfdInvalid for an input without default, and for any other
        function of TOSCA
    """
    if isinstance(value, list):
        return [resolved(place, item, inputs) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, argument),) = value.items()
        if name == 'get_input':
            return _input(place, argument, inputs)
        if name in _FUNCTIONS:
            raise refused(place, 'function %s is not supported; write the '
                          'value' % name)
    return {key: resolved('%s: %s' % (place, key), item, inputs)
            for key, item in value.items()}


def _input(place, name, inputs):
    entry = inputs.get(name) if isinstance(name, str) else None
    if not isinstance(entry, dict):
        raise refused(place, 'get_input %r: no such input'
                      % str(name)[:64])
    if 'default' not in entry:
        raise refused(place, 'get_input %s: the input has no default; give '
                      'it one, or make it a property of the policy %s'
                      % (name, CONFIGURATION))
    return entry['default']


def targets(node, requirement):
    """Yield the nodes that a requirement names, in either of its forms."""
    for entry in node.get('requirements') or []:
        value = entry.get(requirement) if isinstance(entry, dict) else None
        if isinstance(value, dict):
            value = value.get('node')
        if isinstance(value, str):
            yield value
