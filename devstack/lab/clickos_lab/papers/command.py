# SPDX-License-Identifier: Apache-2.0
"""Measures and draws the papers' figures."""

import datetime
import os
import sys

from clickos_lab import errors
from clickos_lab import log
from clickos_lab.papers import delays
from clickos_lab.papers import middleboxes
from clickos_lab.papers import throughput
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.suites import progress
from clickos_lab import venv

FOLDER = paths.REPO / 'docs/reference/figures'
REQUIREMENTS = paths.REPO / 'devstack/lab/requirements-figures.txt'
#: What measures, by the number of the figure in the NSDI paper.
FIGURES = {
    '4': throughput.switch, '5': delays.boots, '6': delays.round_trips,
    '7': throughput.rings, '9': delays.handlers, '10': throughput.chains,
    '11': throughput.crowd, '12': throughput.ports,
    '13': middleboxes.catalog}


def run(state, names):
    """Measure the figures named, or all.

    :raises LabError: naming a figure that does not exist
    """
    if unknown := set(names) - set(FIGURES):
        raise errors.LabError(
            f'{", ".join(sorted(unknown))}: no such figure; there are '
            f'{", ".join(FIGURES)}')
    os.umask(0o022)
    FOLDER.mkdir(exist_ok=True)
    for name in names or FIGURES:
        with log.step(f'figure {name}'):
            _draw(state, [_write(made) for made in _measured(state, name)])


def _measured(state, name):
    load = os.getloadavg()[0]
    made = FIGURES[name](state)
    figures = made if isinstance(made, tuple) else (made,)
    return [(figure, load) for figure in figures]


def _write(measured):
    """Write a figure's values; return the file."""
    figure, load = measured
    path = FOLDER / f'{figure.name}.json'
    path.write_text(figure.text(
        date=str(datetime.date.today()), commit=progress.commit(),
        processors=os.cpu_count(), load_before=round(load, 1)))
    return path


def _draw(state, files):
    shell.run([venv.uv(state), 'run', '--no-project', '--python',
               sys.executable, '--with-requirements', REQUIREMENTS,
               'python', '-m', 'clickos_lab.papers.draw', *files],
              state.log / 'figures.log', env={
                  **os.environ, 'PYTHONPATH': paths.REPO / 'devstack/lab'})
