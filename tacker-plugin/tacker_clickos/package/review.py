# SPDX-License-Identifier: Apache-2.0
"""Names all that is wrong with a package.

ClickOS' reader judges the package first. Then Tacker's own code reads it as
an on-boarding does, since its reasons reach no tenant later. The filter calls
judge() through clickos_client.bounded. So what Tacker and the drivers parse
later costs them no more than it costs here.
"""

import io
import logging
import pathlib
import re
import tempfile
import uuid

from clickos_client import bounded

from tacker_clickos import elements
from tacker_clickos import exception
from tacker_clickos import package
from tacker_clickos.package import archive
from tacker_clickos.package import lines
from tacker_clickos.vnfd import loader

MAX_FAULTS = 20
_FOR_STOCK = ("the package: uses no type of ClickOS, and Tacker's stock "
              'driver is off ([clickos] stock_driver of tacker.conf)')
_MAX_TEXT = 400
#: A fault of tosca-parser; the lines of its traceback have two tabs.
_OF_PARSER = re.compile(r"^\t(\S.*)$", re.MULTILINE)


def faults(content):
    """Return what is wrong, as texts that name file, line and node.

    :param content: the bytes of the CSAR
    """
    return judge(content)[0]


def judge(content):
    """Return the faults; without any also the VNFD's id, and configurations.

    :returns: faults, VNFD id, [file name, text, {group: class} that the
        package names or None] of the first configurations
    """
    return _judge(content, for_stock=False)


def judge_any(content):
    """Do so, and take packages for Tacker's stock driver, too."""
    return _judge(content, for_stock=True)


def judge_with_scripts(content):
    """Do so, and take scripts in these."""
    return _judge(content, for_stock=True, may_run=True)


def _judge(content, for_stock, may_run=False):
    try:
        is_ours = package.check(io.BytesIO(content), may_run)
    except exception.PackageRefused as fault:
        return [str(fault)], None, []
    vnfd_id, texts = None, []
    with tempfile.TemporaryDirectory(prefix='clickos-') as folder:
        files = archive.extract(io.BytesIO(content), folder)
        found = []
        if is_ours or not for_stock:
            found = [str(fault) for fault in loader.review(folder)]
        if found and not is_ours:
            found.append(_FOR_STOCK)
        if not found:
            found, vnfd_id = _of_tacker(content, folder)
        if not found and is_ours:
            texts = _configurations(folder)
    shown = [lines.located(text[:_MAX_TEXT], files)
             for text in found[:MAX_FAULTS]]
    more = len(found) - len(shown)
    return shown + (['and %d more' % more] if more else []), vnfd_id, texts


def _configurations(folder):
    found, budget = [], elements.Budget()
    for flavour in loader.flavours(folder):
        for vdu in flavour.vdus.values():
            each = vdu.configuration
            entry = [each.file_name, each.text, each.groups]
            if entry not in found and budget.takes(each.text):
                found.append(entry)
    return found


def _of_tacker(content, folder):
    """Return what Tacker's on-boarding says, and the VNFD's id."""
    with bounded.unmetered():
        from tacker.common import csar_utils
        from tacker.common import exceptions
        import tacker.conf
    conf = tacker.conf.CONF
    conf.import_opt('vnf_package_csar_path', 'tacker.conf.vnf_package',
                    'vnf_package')
    conf.set_override('vnf_package_csar_path', folder, 'vnf_package')
    path = pathlib.Path(folder) / ('%s.csar' % uuid.uuid4())
    path.write_bytes(content)
    tempfile.tempdir = folder    # tosca-parser leaves files behind
    logging.disable(logging.CRITICAL)    # the same faults with tracebacks
    try:
        vnfd = csar_utils.load_csar_data(None, path.stem, str(path))[0]
        return [], vnfd.get('descriptor_id')
    except exceptions.TackerException as fault:
        return _single(str(fault), folder), None
    finally:
        tempfile.tempdir = None
        logging.disable(logging.NOTSET)


def _single(text, folder):
    """Return the faults in a text of tosca-parser, without its traceback."""
    found = _OF_PARSER.findall(text) or [' '.join(text.split())]
    return [fault.replace(folder, '') for fault in found]
