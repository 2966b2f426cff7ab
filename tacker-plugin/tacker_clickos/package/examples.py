# SPDX-License-Identifier: Apache-2.0
"""The configurations of a package with example values, to be tried."""

import dataclasses
import io
import tempfile

from tacker_clickos.clickgen import prelude
from tacker_clickos.package import archive
from tacker_clickos.vnfd import loader

#: Values of properties without a default.
_VALUES = {
    'ip': '192.0.2.1', 'ipv4': '192.0.2.1', 'ipv4_list': ['192.0.2.1'],
    'ipv4_prefix': '192.0.2.0/24', 'ipv6': '2001:db8::1',
    'ipv6_prefix': '2001:db8::/32', 'mac': '02:00:00:00:00:01', 'port': 1,
    'boolean': False, 'filter_rules': ['deny all'],
    'inspection_rules': [],
    'port_range': '1024-65535', 'string': 'x',
    'secret': 'clickos-secret:00000000-0000-4000-8000-000000000000'}


@dataclasses.dataclass(frozen=True)
class Example:
    """A VDU's configuration with a value for each variable.

    :param vifs: interfaces of the guest
    """

    vdu: str
    vifs: int
    text: str


def of_package(content):
    """Return the Example of each VDU in each flavour.

    :param content: the bytes of a CSAR without faults
    """
    with tempfile.TemporaryDirectory(prefix='clickos-') as folder:
        archive.extract(io.BytesIO(content), folder)
        return [_example(vdu) for flavour in loader.flavours(folder)
                for vdu in flavour.vdus.values()]


def _example(vdu):
    found = vdu.configuration
    values = {name: _value(prop) for name, prop in found.properties.items()
              if prop.define}
    interfaces = [
        prelude.Interface(cp, f'02:00:00:00:00:{index:02x}',
                          f'192.0.2.{16 * index + 1}',
                          f'192.0.2.{16 * index}/28', None, 1500,
                          f'2001:db8:{index}::1', f'2001:db8:{index}::/64')
        for index, cp in enumerate(vdu.cps)]
    return Example(vdu.name, len(vdu.cps), prelude.render(
        found, interfaces, values) + found.text)


def _value(prop):
    """Return the default of a property, or else an example."""
    if prop.default is not None:
        return prop.default
    if prop.values:
        return prop.values[0]
    if prop.type == 'list':
        return [_value(prop.items)]
    if prop.type == 'record':
        return {name: _value(field) for name, field in prop.fields.items()}
    return _VALUES.get(prop.type, prop.minimum or 0)
