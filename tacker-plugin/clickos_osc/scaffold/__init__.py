# SPDX-License-Identifier: Apache-2.0
"""The files of a new VNF."""

from importlib import resources
import uuid

#: Where each file goes, and the file it is made from.
_FILES = {
    'Definitions/@NAME@.yaml': ('clickos_osc.scaffold', 'vnfd.yaml'),
    'Definitions/clickos_types.yaml': ('clickos_types', 'clickos_types.yaml'),
    'Files/@NAME@.click': ('clickos_osc.scaffold', 'vnf.click'),
    'README.md': ('clickos_osc.scaffold', 'readme.txt'),
    'Scripts/mgmt_driver.py': ('clickos_types', 'mgmt_driver.py'),
    'request.json': ('clickos_osc.scaffold', 'request.json'),
}
META = 'TOSCA-Metadata/TOSCA.meta'
_META = """TOSCA-Meta-File-Version: 1.0
CSAR-Version: 1.1
Created-By: ClickOS
Entry-Definitions: Definitions/@NAME@.yaml
"""
#: Folders of the package; the other files are for its author.
PACKED = ('Definitions', 'Files', 'Scripts', 'TOSCA-Metadata')


def files(name, image):
    """Return {path: text} of a VNF; every call gives the VNFD another id.

    :param name: letters, digits and hyphens
    :param image: name in Glance of the guests' image
    """
    values = {'@NAME@': name, '@IMAGE@': image, '@ID@': str(uuid.uuid4()),
              '@TYPE@': ''.join(map(str.capitalize, name.split('-')))}
    texts = {path: resources.files(package).joinpath(source).read_text()
             for path, (package, source) in _FILES.items()}
    texts[META] = _META
    return {_filled(path, values): _filled(text, values)
            for path, text in texts.items()}


def _filled(text, values):
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
