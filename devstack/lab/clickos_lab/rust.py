# SPDX-License-Identifier: Apache-2.0
"""The daemons, tools and the guest's engine, from our Rust workspace."""

import os

from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab import say
from clickos_lab import shell


def environment(state):
    """Return the environment for cargo: all output in the state folder."""
    cargo = prereq.rust_tool('cargo')
    return {**os.environ, 'CARGO_TARGET_DIR': str(state.target),
            'PATH': f'{os.path.dirname(cargo)}:{os.environ["PATH"]}',
            'CARGO_TERM_COLOR': 'never'}


#: Packages with what the lab starts. Those of the ``click`` program take
#: longer than all of these: nothing here runs it.
_PACKAGES = ('clickos-process', 'cosmosd', 'cosmos', 'valed', 'vale-ctl',
             'pkt-gen')


def build(state):
    """Build the programs of a compute host, optimized."""
    packages = [word for name in _PACKAGES for word in ('-p', name)]
    with say.step('Rust programs'):
        shell.run([prereq.rust_tool('cargo'), 'build', '--release',
                   '--locked', '--bins', *packages],
                  state.log / 'cargo.log', env=environment(state),
                  cwd=paths.REPO, timeout_s=1200)
