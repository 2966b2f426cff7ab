# SPDX-License-Identifier: Apache-2.0
"""The program click-combine, which makes one configuration of several."""

import dataclasses
import pathlib
import tempfile

from clickos_client import programs

PROGRAM = 'click-combine'


class CombinerError(Exception):
    """The configurations cannot be combined: the program's reason."""


@dataclasses.dataclass(frozen=True)
class Hop:
    """A hop of a chain.

    :param name: elements get it as their prefix
    :param config: its configuration
    :param ingress: number of the device that gets the chain's packets
    :param egress: number of the device that sends them on
    """

    name: str
    config: str
    ingress: int
    egress: int


def fuse(program, hops):
    """Return the configuration of a chain; its devices are 0 and 1.

    :param program: name or path of click-combine
    :param hops: list of Hop in order
    :raises CombinerError: if there is no such configuration
    """
    links = [link for one, two in zip(hops, hops[1:]) for link in (
        f'{one.name}.{one.egress}={two.name}.{two.ingress}',
        f'{two.name}.{two.ingress}={one.name}.{one.egress}')]
    first, last = hops[0], hops[-1]
    with tempfile.TemporaryDirectory() as folder:
        components = []
        for hop in hops:
            path = pathlib.Path(folder, hop.name)
            path.write_text(hop.config, encoding='utf-8')
            components.append(f'{hop.name}={path}')
        done = programs.run(
            [program, '--fuse', *components, *links,
             '--device', f'{first.name}.{first.ingress}=0',
             '--device', f'{last.name}.{last.egress}=1'], '', CombinerError)
    if done.returncode:
        raise CombinerError(f'{program}: {done.stderr[:400].strip()}')
    return done.stdout
