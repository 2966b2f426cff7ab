# SPDX-License-Identifier: Apache-2.0
"""Installing and building everything the lab needs."""

import concurrent.futures

from clickos_lab import apt
from clickos_lab import dashboard
from clickos_lab import entry_points
from clickos_lab import prereq
from clickos_lab import rust
from clickos_lab import store
from clickos_lab import venv
from clickos_lab.xen import command
from clickos_lab.xen import image
from clickos_lab.xen import packages as xen_packages
from clickos_lab.xen import places
from clickos_lab.xen import toolstack


def everything(state):
    """Install and build; what is in place already takes no time.

    :raises LabError: if something is missing that only the user can get.
    """
    prereq.check()
    state.create()
    apt.ensure(state)
    # One waits for the network while the other computes.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        python = pool.submit(_python, state)
        _native(state)
        python.result()


def process_host(state):
    """Install and build what a process host needs, without OpenStack.

    :raises LabError: if something is missing that only the user can get.
    """
    prereq.check()
    state.create()
    apt.ensure(state, apt.PROCESS_HOST_PACKAGES)
    # One waits for the network while the other computes.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        made = pool.submit(store.build, state)
        rust.build_process_host(state)
        made.result()


def tools(state):
    """Install what linters and unit tests need; any user can.

    :raises LabError: if something is missing that only the user can get.
    """
    prereq.check_tools()
    state.create()
    venv.ensure(state)
    venv.install_ours(state)


def xen(state):
    """Install and build what a Xen compute host needs, too."""
    command.prepare(state)
    image.build_profiles(state)
    toolstack.build(state, places.Places(state))


def packages(state):
    """Build what the Debian packages hold."""
    places_ = places.Places(state)
    xen_packages.ensure(places_)
    image.build_profiles(state)
    toolstack.build(state, places_)


def _python(state):
    venv.ensure(state)
    venv.install_ours(state)
    dashboard.ensure(state)
    venv.compile_modules(state)
    entry_points.ensure(state)


def _native(state):
    store.build(state)
    rust.build(state)
