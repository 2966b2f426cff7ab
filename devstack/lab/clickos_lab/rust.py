# SPDX-License-Identifier: Apache-2.0
"""The daemons, tools and the guest's engine, from our Rust workspace."""

import os

from clickos_lab.config import options
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab import shell


def environment(state):
    """Return the environment for cargo: all output in the state folder."""
    cargo = prereq.rust_tool('cargo')
    return {**os.environ, 'CARGO_TARGET_DIR': str(state.target),
            'CARGO_INCREMENTAL': '0',
            'PATH': f'{os.path.dirname(cargo)}:{os.environ["PATH"]}',
            'CARGO_TERM_COLOR': 'never'}


#: Packages with what the lab starts.
_PACKAGES = tuple(options.DEFAULTS['CLICKOS_CRATES'].split())
#: Those of them that a host without OpenStack needs.
_PROCESS_HOST = ('clickos-process', 'cosmosd', 'cosmos', 'valed', 'vale-ctl')
#: The ``click`` programs take longer than all of these; the lab runs none.
_CLICK = ('click-run', 'click-check', 'click-doc')
#: What Horizon and Tacker call to check a configuration.
CHECKER = 'click-check'
#: What people call.
_TOOLS = ('cosmos', 'vale-ctl', 'vale-tc', 'pkt-gen', 'click',
          CHECKER, 'click-combine', 'click-doc', 'click-flatten',
          'click-pretty', 'click-uncombine')


def build(state):
    """Build the programs of a compute host and Horizon's, optimized."""
    _build(state, 'Rust programs', (*_PACKAGES, CHECKER))


def build_process_host(state):
    """Build what a process host needs without OpenStack, optimized."""
    _build(state, 'Rust programs', _PROCESS_HOST)


def build_click(state):
    """Build ``click`` and its relatives, optimized."""
    _build(state, 'click programs', _CLICK)


def _build(state, what, names):
    packages = [word for name in names for word in ('-p', name)]
    with log.step(what):
        shell.run([prereq.rust_tool('cargo'), 'build', '--release',
                   '--locked', '--bins', *packages],
                  state.log / 'cargo.log', env=environment(state),
                  cwd=paths.REPO, timeout_s=3600)
    _link_tools(state)


def _link_tools(state):
    """Give the programs that people call a folder of their own."""
    state.bin.mkdir(exist_ok=True)
    for name in _TOOLS:
        link = state.bin / name
        if state.binary(name).exists() and not link.is_symlink():
            link.symlink_to(state.binary(name))
