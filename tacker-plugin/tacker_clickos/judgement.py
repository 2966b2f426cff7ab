# SPDX-License-Identifier: Apache-2.0
"""Judges what a request asks of a package, in a process of its own.

A tenant wrote the package and the request, and both say how much work they
are. A request has 2 MB at most, and values for 64 guests. Tacker's API serves
all projects from one thread. So early.py asks through clickos_client.bounded,
and projects take turns.
"""

import dataclasses
import json
import tempfile

from clickos_client import bounded

from tacker_clickos import elements
from tacker_clickos import exception
from tacker_clickos.package import fair_queue
from tacker_clickos import state
from tacker_clickos import update
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values

LIMITS = bounded.Limits(cpu_s=2, memory_bytes=1 << 30, wall_s=30)
PLACES = 2
#: Requests of one project, and of all, that wait or are judged: scripts begin
#: operations of many VNFs together. api_filter.py bounds their bytes.
OF_PROJECT, OF_ALL = 32, 128
_FUNCTION = 'tacker_clickos.judgement:answer'

_queue = fair_queue.FairQueue(PLACES, OF_PROJECT, OF_ALL)


@dataclasses.dataclass(frozen=True)
class Question:
    """A request to be judged by a package.

    :param kind: one of _JUDGES
    :param package: the folder of the package
    :param flavour: name of its deployment flavour
    :param about: arguments of the judge, as JSON has them
    """

    kind: str
    package: str
    flavour: str
    about: dict


def require(project_id, question):
    """Refuse a request that cannot succeed; return what a judge found.

    A package that cannot be read here is the drivers' to judge.

    :param project_id: whose turn it takes
    :returns: of kind 'values' a list of [image, {group of elements: class}
        or None] of each VDU; else None
    :raises: RequestRefused, TooManyRequests or Busy
    """
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(dataclasses.asdict(question)).encode())
        file.seek(0)
        try:
            with _queue.entry(project_id) as place, place:
                reason, found = bounded.call(_FUNCTION, file, LIMITS)
                found = found and _with_groups(found, project_id)
        except fair_queue.Full as full:
            raise full.refusal('requests whose values are judged')
        except bounded.Exceeded as exceeded:
            reason = 'the values: judging them %s' % exceeded
    if reason is not None:
        raise exception.RequestRefused(reason=reason)
    return found


def answer(raw):
    """Return why a request cannot succeed or None, and what a judge found.

    :param raw: the JSON of a Question
    """
    question = Question(**json.loads(raw))
    try:
        flavour = loader.load(question.package, question.flavour)
    except (exception.ClickOSError, OSError):
        return None, None
    try:
        return None, _JUDGES[question.kind](flavour, **question.about)
    except exception.ClickOSError as refused:
        return str(refused), None


def _values(flavour, wanted):
    """Refuse values of properties out of their bounds.

    :returns: [image, {group of elements: class} that the package names or
        None, text that has to be asked for them or None, whether it is a
        pair] of each VDU
    """
    update.check_size(flavour.vdus, vnfd_values.merge(
        model.properties(flavour.vdus), {}, wanted))
    found, budget = [], elements.Budget()
    for vdu in flavour.vdus.values():
        named, text = vdu.configuration.groups, vdu.configuration.text
        asked = named is None and budget.takes(text)
        found.append([vdu.image, named, text if asked else None,
                      vdu.configuration.pair])
    return found


def _with_groups(found, project_id):
    """Return what require() does, of what _values() returns.

    The program that knows the groups takes time and memory, so it runs while
    the project has its turn.
    """
    allowance = elements.Allowance(project_id)
    return [[image, named if text is None
             else elements.needed(text, None, allowance, is_pair)]
            for image, named, text, is_pair in found]


def _update(flavour, guests, in_force, wanted):
    """Refuse an update that no guest could take.

    :param guests: [(VDU, name)]
    :param wanted: the request, or its JSON text
    """
    if not all(vdu in flavour.vdus for vdu, _name in guests):
        return    # they are of another package until a heal
    wanted = update.parse(wanted) if isinstance(wanted, str) else wanted
    update.Update(flavour.vdus, _Guests([_Guest(*each) for each in guests]),
                  in_force, wanted).judge()


def _level(flavour, aspect, level, steps):
    """Refuse a level that an aspect does not have.

    :param steps: from the level that the VNF is at
    """
    found = flavour.scaling.aspects.get(aspect)
    if found is not None and not 0 <= level + steps <= found.max_level:
        raise exception.RequestRefused(
            reason='aspect %s: level %d is outside 0 to %d; the VNF is at'
            ' level %d' % (aspect, level + steps, found.max_level, level))


@dataclasses.dataclass(frozen=True)
class _Guest:
    """A guest as Tacker's vnfcResourceInfo has it."""

    vdu_id: str
    name: str

    @property
    def metadata(self):
        return {'name': self.name}

    def obj_attr_is_set(self, key):
        return key == 'metadata'


@dataclasses.dataclass(frozen=True)
class _Guests:
    """The guests as Tacker's instantiatedVnfInfo has them."""

    vnfc_resource_info: list


def of(info):
    """Return the guests of an instantiated VNF for a Question."""
    return [(vnfc.vdu_id, state.name(vnfc))
            for vnfc in info.vnfc_resource_info or ()]


_JUDGES = {'values': _values, 'update': _update, 'level': _level}
