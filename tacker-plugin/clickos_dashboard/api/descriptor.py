# SPDX-License-Identifier: Apache-2.0
"""What a package's descriptor offers: the fields of the launch form.

The package is a tenant's file. A process of its own, with limits, unpacks and
parses it. Tacker and its driver check what is launched.
"""

import dataclasses

from clickos_client import bounded
from clickos_client import vnf

from clickos_dashboard import exceptions

_LIMITS = bounded.Limits(cpu_s=2, memory_bytes=1 << 29, wall_s=20)
_FUNCTION = 'clickos_client.descriptor_reader:answer'


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
    """A port of a VDU; a link of the VNF connects an internal one."""

    name: str
    vdu: str
    internal: bool = False


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
    try:
        found = bounded.call_on_bytes(_FUNCTION, csar, _LIMITS)
    except bounded.Exceeded as exc:
        raise exceptions.DescriptorError(f'the package: its reading {exc}')
    if 'fault' in found:
        raise exceptions.DescriptorError(found['fault'])
    return _descriptor(**found['descriptor'])


def _descriptor(flavour, description, vdus, connection_points, properties):
    return Descriptor(
        flavour, description, tuple(Vdu(**each) for each in vdus),
        tuple(ConnectionPoint(**each) for each in connection_points),
        tuple(Property(**each) for each in properties))
