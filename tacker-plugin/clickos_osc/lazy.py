# SPDX-License-Identifier: Apache-2.0
"""Modules that are loaded at their first use.

openstackclient loads the modules of all commands whenever it starts, to run
one of them.
"""

import importlib.util
import sys


def module(name):
    """Return a module whose code runs at the first use of an attribute."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    parent, _, own = name.rpartition('.')
    setattr(sys.modules[parent], own, found)
    return found
