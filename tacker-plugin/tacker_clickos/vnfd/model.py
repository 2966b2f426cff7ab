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


@dataclasses.dataclass(frozen=True)
class Aspect:
    """Guests that come and go together, one step a level.

    steps and initial are guests by VDU: those of a step, and those of level
    0.
    """

    name: str
    max_level: int
    steps: dict
    initial: dict

    def guests(self, level):
        """Return {VDU: guests} of a scale level."""
        return {vdu: self.initial[vdu] + level * step
                for vdu, step in self.steps.items()}

    def names(self, level):
        """Return the names of the guests of a scale level, VDU1-0 first."""
        return ['%s-%d' % (vdu, number)
                for vdu, count in self.guests(level).items()
                for number in range(count)]


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How a VNF scales.

    levels is {instantiation level: {aspect: scale level}}, default the name
    of one of them; a VNF that does not scale has none.
    """

    aspects: dict
    levels: dict
    default: typing.Optional[str]

    def scale_levels(self, instantiation_level=None):
        """Return {aspect: scale level} of an instantiation level."""
        return self.levels.get(instantiation_level or self.default, {})

    def guests(self, instantiation_level=None):
        """Return {VDU: guests} of an instantiation level."""
        levels = self.scale_levels(instantiation_level)
        return {vdu: count for name, level in levels.items()
                for vdu, count in self.aspects[name].guests(level).items()}


@dataclasses.dataclass(frozen=True)
class Flavour:
    """A deployment flavour: {name: Vdu}, and how their numbers grow."""

    vdus: dict
    scaling: Scaling


def properties(vdus):
    """Return {name: Property} of a VNF; VDUs may share a property."""
    return {name: prop for vdu in vdus.values()
            for name, prop in vdu.configuration.properties.items()}
