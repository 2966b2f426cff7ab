# SPDX-License-Identifier: Apache-2.0
"""From a template to a guest's configuration, as the Tacker driver does it."""

import dataclasses
import importlib.util
import pathlib
import tempfile

from tacker_clickos.clickgen import document
from tacker_clickos.clickgen import prelude
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values

from clickos_lab.vnf import csar

FLAVOUR = 'simple'


def vdu(name):
    """Return the model.Vdu of a VNF with one VDU."""
    with tempfile.TemporaryDirectory() as folder:
        for path, content in csar.files(name).items():
            target = pathlib.Path(folder, path)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)
        (found,) = loader.load(folder, FLAVOUR).vdus.values()
    return found


def interface(found, index, shared):
    """Return the addresses of a VNF's vif.

    Those of IPv6 only if its connection point may have some.

    :param found: model.Vdu
    :param shared: all vifs are in the network of vif 0
    """
    cp, network = found.cps[index], 1 if shared else index + 1
    host = index + 1 if shared else 1
    point = found.point(cp)
    six = (f'2001:db8:{network}::{host}', f'2001:db8:{network}::/64') \
        if 6 in point.versions else (None, None)
    return prelude.Interface(
        cp, f'02:00:00:09:{index + 1:02x}:01', f'10.9.{network}.{host}',
        f'10.9.{network}.0/24', None, 1500, *six, is_dual=point.is_dual)


def configuration(found, interfaces, wanted):
    """Return the document.Configuration of the only guest.

    It has all of the limits that guests share.

    :param wanted: values of properties
    """
    checked = values.merge(found.configuration.properties, {}, wanted)
    own = values.of_guest(found, checked, f'{found.name}-0')
    made = document.render(found.configuration, interfaces, own)
    shares = [[prop.handler, str(own[name])]
              for name, prop in model.shared(found).items()]
    return dataclasses.replace(made, writes=(*made.writes, *shares))


def wanted(found):
    """Return the values of a scenario's properties.

    :param found: its module; ``PROPERTIES``, or ``properties()`` where a
        program makes the values
    """
    made = getattr(found, 'properties', None)
    return made() if made else getattr(found, 'PROPERTIES', {})


def scenario(name):
    """Return the module ``scenario.py`` of a VNF."""
    path = csar.TEMPLATES / name / 'scenario.py'
    spec = importlib.util.spec_from_file_location(f'scenario_{name}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
