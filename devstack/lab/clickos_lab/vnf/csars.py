# SPDX-License-Identifier: Apache-2.0
"""``make csars``: builds the package of every VNF and checks what is in it.

It also draws the graph of each.
"""

import tempfile

from clickos_lab import log
from clickos_lab import shell
from clickos_lab.vnf import csar
from clickos_lab.vnf import programs
from clickos_lab.vnf import rendering


def run(state, _arguments):
    """Build all packages into the state folder, and draw their graphs."""
    folder, graphs = state.root / 'csars', state.root / 'graphs'
    folder.mkdir(exist_ok=True)
    graphs.mkdir(exist_ok=True)
    for name in csar.names():
        check(name)
        (graphs / f'{name}.svg').write_text(picture(name))
        target = folder / f'{name}.csar'
        csar.build(name, target, '--click-check',
                   programs.path('click-check'))
        log.info(f'{target}: {target.stat().st_size} bytes')


def check(name):
    """Have a guest's own reader judge a VNF's configuration.

    :raises LabError: with its words if the configuration is wrong
    """
    vdu = rendering.vdu(name)
    interfaces = [rendering.interface(vdu, index, False)
                  for index in range(len(vdu.cps))]
    wanted = rendering.wanted(rendering.scenario(name))
    made = rendering.configuration(vdu, interfaces, wanted)
    with tempfile.NamedTemporaryFile('w', suffix='.click') as file:
        file.write(made.config)
        file.flush()
        _output('click', '--check', '--guest', '--vifs', len(vdu.cps),
                '-f', file.name)


def picture(name):
    """Return the graph of a VNF's configuration as SVG."""
    with tempfile.NamedTemporaryFile('w', suffix='.click') as file:
        file.write(csar.configuration(name))
        file.flush()
        return _output('click-pretty', file.name)


def _output(program, *arguments):
    return shell.output([programs.path(program), *arguments])
