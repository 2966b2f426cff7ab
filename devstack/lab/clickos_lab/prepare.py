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
from clickos_lab.xen import background
from clickos_lab.xen import command
from clickos_lab.xen import image
from clickos_lab.xen import linux_image
from clickos_lab.xen import packages as xen_packages
from clickos_lab.xen import snapshot
from clickos_lab.xen import toolstack
from clickos_lab.xen import variants
from clickos_lab.xen import xen_paths


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


def xen(state, wanted=variants.PATCHED):
    """Install and build what a Xen compute host needs, too.

    :param wanted: variant of Xen; where the sources of the patched one are
        not to be had, it is the stock one, and a message says so
    """
    command.install(state)
    places_ = xen_paths.XenPaths(state)
    variant = background.variant(state, places_, wanted)
    snapshot.ensure(places_, variant)
    image.build_profiles(state)
    toolstack.build(state, places_, variant)
    if variant == variants.PATCHED:     # it has a compiler and the headers
        linux_image.build(state, places_)
    variants.choose(places_, variant)


def packages(state):
    """Build what the Debian packages of a host hold, stock Xen or none."""
    places_ = xen_paths.XenPaths(state)
    xen_packages.ensure(places_)
    image.build_profiles(state)
    toolstack.build(state, places_)


def xen_package(state):
    """Build what the package of Xen's tools holds; return whether it can be.

    Where the sources of Xen are not to be had, a message says so.
    """
    places_ = xen_paths.XenPaths(state)
    variant = background.variant(state, places_, variants.PATCHED)
    if variant == variants.PATCHED:
        toolstack.build(state, places_, variant)
    return variant == variants.PATCHED


def _python(state):
    venv.ensure(state)
    venv.install_ours(state)
    dashboard.ensure(state)
    venv.compile_modules(state)
    entry_points.ensure(state)


def _native(state):
    store.build(state)
    rust.build(state)
