# SPDX-License-Identifier: Apache-2.0
"""What the drivers need of a VNF descriptor."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Property:
    """A value the tenant may set, and where it goes.

    Exactly one of handler and define is set: a handler ("fw.config") can be
    written while the guest runs, a define enters the configuration once.
    """

    name: str
    type: str
    handler: typing.Optional[str] = None
    define: typing.Optional[str] = None
    default: typing.Any = None
    minimum: typing.Optional[int] = None
    maximum: typing.Optional[int] = None
    values: tuple = ()
    max_items: int = 64


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A Click configuration and its properties, by name.

    A routed one forwards packets with the addresses of others, a transparent
    one whole frames.
    """

    file_name: str
    text: str
    routed: bool
    transparent: bool
    properties: dict


@dataclasses.dataclass(frozen=True)
class Vdu:
    """A guest type: its image, its size and its connection points in order.

    flavor is Nova's flavor name, or None: then the smallest one with
    memory_mib and vcpus is taken.
    """

    name: str
    image: str
    flavor: typing.Optional[str]
    memory_mib: int
    vcpus: int
    cps: tuple
    configuration: Configuration


def properties(vdus):
    """Return {name: Property} of a VNF; VDUs may share a property."""
    return {name: prop for vdu in vdus.values()
            for name, prop in vdu.configuration.properties.items()}
