# SPDX-License-Identifier: Apache-2.0
"""What the drivers need of a VNF descriptor."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Property:
    """A value the tenant may set, and where it goes.

    Exactly one of handler and define is set: a handler ("fw.config") can be
    written while the guest runs, a define enters the configuration once. The
    items of a list and the fields of a record are properties without both.
    """

    name: str
    type: str
    handler: typing.Optional[str] = None
    define: typing.Optional[str] = None
    default: typing.Any = None
    minimum: typing.Optional[int] = None
    maximum: typing.Optional[int] = None
    #: of an integer: 0 may be a value below the minimum, which turns it off
    or_zero: bool = False
    values: tuple = ()
    max_items: int = 64
    min_items: int = 0
    #: of a list: what each item is, what stands between two, no item twice
    items: typing.Optional['Property'] = None
    separator: str = ', '
    unique: bool = False
    #: of a record: {name: Property}, and the text with $NAME for each
    fields: typing.Optional[dict] = None
    format: typing.Optional[str] = None
    #: of a field: a record may lack it
    optional: bool = False
    #: of a string
    pattern: typing.Optional[str] = None
    max_length: int = 64
    #: of a rate: what its number counts
    unit: typing.Optional[str] = None
    #: of a port range: each guest of the VDU gets its part
    split: bool = False
    #: of a rate or an integer: the guests of the VDU have shares of it
    shared: bool = False


@dataclasses.dataclass(frozen=True)
class Output:
    """A value to be read: the handler of a running guest."""

    name: str
    handler: str
    description: str = ''


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A Click configuration and its properties, by name.

    A routed one forwards packets with the addresses of others, a transparent
    one whole frames. One with whole_frames forwards whole frames in chains
    only. copies is the number of frames that it may make of one.
    """

    file_name: str
    text: str
    routed: bool
    transparent: bool
    properties: dict
    whole_frames: bool = False
    copies: int = 1
    #: two guests, of which one is active
    pair: bool = False
    #: {group of elements: a class of it} that the package names, or None
    groups: typing.Optional[dict] = None
    #: {name: Output}
    outputs: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Point:
    """A connection point: the IP versions that it may have, and its role.

    One with both versions needs an address of one of them only.
    """

    versions: tuple = (4,)
    role: typing.Optional[str] = None

    @property
    def is_dual(self):
        """Return whether it works without an address of one version."""
        return len(self.versions) > 1


@dataclasses.dataclass(frozen=True)
class InternalLink:
    """A network of a VNF's own."""

    name: str
    cidr: str


@dataclasses.dataclass(frozen=True)
class Placement:
    """A rule that guests of the VDUs share a host, or share none.

    policy is Nova's word: affinity or anti-affinity.
    """

    name: str
    policy: str
    vdus: tuple


@dataclasses.dataclass(frozen=True)
class Vdu:
    """A guest type: its image, its size and its connection points in order.

    flavor is Nova's flavor name; None takes the smallest one that has
    memory_mib and vcpus. most is the number of guests at the highest level.
    """

    name: str
    image: str
    flavor: typing.Optional[str]
    memory_mib: int
    vcpus: int
    cps: tuple
    configuration: Configuration
    #: {CP: Point}
    points: dict = dataclasses.field(default_factory=dict)
    most: int = 1
    #: {CP: InternalLink} of those that no request connects
    internal: dict = dataclasses.field(default_factory=dict)
    placement: typing.Optional[Placement] = None
    #: {extra spec: value} that the flavor needs
    specs: dict = dataclasses.field(default_factory=dict)

    def point(self, cp):
        """Return the Point of a connection point."""
        return self.points.get(cp, Point())


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

    def most(self, vdu):
        """Return the guests of a VDU at its highest scale level."""
        return max((aspect.guests(aspect.max_level).get(vdu, 1)
                    for aspect in self.aspects.values()), default=1)

    def guests(self, instantiation_level=None):
        """Return {VDU: guests} of an instantiation level."""
        levels = self.scale_levels(instantiation_level)
        return {vdu: count for name, level in levels.items()
                for vdu, count in self.aspects[name].guests(level).items()}


@dataclasses.dataclass(frozen=True)
class AutoScale:
    """When a VDU's aspect scales by itself.

    The average over the guests of what the handler reads decides. measure is
    rate, its growth a second, or value.
    """

    vdu: str
    aspect: str
    handler: str
    measure: str
    above: int
    below: int
    cooldown_s: int
    max_level: int


@dataclasses.dataclass(frozen=True)
class Automatic:
    """VDUs that heal, and AutoScales: operations without a request."""

    healed: tuple = ()
    scales: tuple = ()


@dataclasses.dataclass(frozen=True)
class Flavour:
    """A deployment flavour: {name: Vdu}, how their numbers grow, and what
    happens without a request.
    """

    vdus: dict
    scaling: Scaling
    automatic: Automatic = Automatic()


def shared(vdu):
    """Return {name: Property} of the limits that a VDU's guests share."""
    return {name: prop for name, prop in vdu.configuration.properties.items()
            if prop.shared}


def properties(vdus):
    """Return {name: Property} of a VNF; VDUs may share a property."""
    return {name: prop for vdu in vdus.values()
            for name, prop in vdu.configuration.properties.items()}
