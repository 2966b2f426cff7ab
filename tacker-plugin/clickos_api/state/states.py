# SPDX-License-Identifier: Apache-2.0
"""Values of desired state, and how changes lead from one to the next."""

import dataclasses
import json
import typing

from clickos_client import rpc

#: Words for the status of a change, besides those of outcomes.
PENDING, APPLIED = 'pending', 'applied'


class Read(typing.NamedTuple):
    """A read of a handler; with a parameter, the answer is no state."""

    name: str
    parameter: str = ''


@dataclasses.dataclass(frozen=True)
class State:
    """A desired state.

    :param revision: how many changes were accepted; 0 if none
    :param writes: [[handler, value], ...], the last written last
    :param configuration: {'config', 'config_name'} that replaced the first
        one, or None
    :param number: of the newest change, with a verdict or without one
    :param project_id: the owner, or None if it is not known
    :param key: of the state in the database
    """

    revision: int = 0
    writes: list = dataclasses.field(default_factory=list)
    configuration: dict | None = None
    number: int = 0
    project_id: str | None = None
    key: str | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True)
class ChangeId:
    """A change that is noted as pending.

    :param number: above all earlier ones of the state
    :param incarnation: of the guest that is to take it, if known
    """

    number: int
    incarnation: str | None = None

    def on_wire(self):
        """Return it as RPC and cosmosd have it."""
        return rpc.change_id(self.number, self.incarnation)


@dataclasses.dataclass(frozen=True)
class Passing:
    """The writes of a change that a start of the guest must not repeat.

    :param commands: places of writes that did something once
    :param edits: places of writes that changed a part of a table
    """

    commands: tuple = ()
    edits: tuple = ()


@dataclasses.dataclass(frozen=True)
class Accepted:
    """The changes that a guest accepted.

    :param applied: numbers of changes
    :param incarnation: of the guest
    :param passing: {number: Passing}
    """

    applied: list
    incarnation: str | None = None
    passing: dict = dataclasses.field(default_factory=dict)


def values(change, passing=None):
    """Return the part of a change that says what is in force from now on.

    :param change: writes, or a configuration
    :param passing: Passing of the writes
    """
    if isinstance(change, dict) or passing is None:
        return change
    others = {*passing.commands, *passing.edits}
    return [pair for place, pair in enumerate(change) if place not in others]


def names(writes, places):
    """Return the handlers of the writes at some places, each once."""
    return list(dict.fromkeys(
        writes[place][0] for place in places if 0 <= place < len(writes)))


def merge(kept, writes):
    """Return what is to be kept after writes: per handler the last value.

    Ordered by each handler's last write, so that writing them again in this
    order ends where the guest is now.
    """
    merged = {name: value for name, value in kept}
    for name, value in writes:
        merged.pop(name, None)
        merged[name] = value
    return [[name, value] for name, value in merged.items()]


def changed(configuration, writes, change):
    """Return configuration and writes after a change.

    A new configuration says all that is in force, so it ends the writes.

    :param change: writes, or a configuration
    """
    if isinstance(change, dict):
        return change, []
    return configuration, merge(writes, change)


def replaced(configuration, writes, change):
    """Return what a change replaces, for undo()."""
    if isinstance(change, dict):
        return {'configuration': configuration, 'writes': writes}
    names = {name for name, _value in change}
    return {'changed': sorted(names), 'before': [
        [index, name, value] for index, (name, value) in enumerate(writes)
        if name in names]}


def undo(configuration, writes, before):
    """Return configuration and writes as they were before a change.

    :param before: of replaced()
    """
    if 'changed' not in before:
        return before['configuration'], before['writes']
    kept = [pair for pair in writes if pair[0] not in before['changed']]
    for index, name, value in before['before']:
        kept.insert(index, [name, value])
    return configuration, kept


def size(configuration, writes):
    """Return the bytes of a state."""
    return (sum(len(part.encode()) for write in writes for part in write)
            + (len(configuration['config'].encode()) if configuration else 0))


def stored(text):
    """Return the bytes that a change keeps.

    :param text: its body, or replaced(); None for no bytes
    """
    return 0 if text is None else len(
        json.dumps(text, ensure_ascii=False).encode())
