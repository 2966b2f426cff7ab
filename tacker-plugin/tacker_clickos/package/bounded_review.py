# SPDX-License-Identifier: Apache-2.0
"""Reviews packages in processes of their own, fair between projects.

Tacker's API serves all projects from one thread, so it unpacks and parses no
byte of a package. A tenant's text controls tosca-parser, a large program. All
that the text makes it do ends with the process.
"""

import contextlib

from clickos_client import bounded

from tacker_clickos import elements
from tacker_clickos import exception
from tacker_clickos.package import fair_queue
from tacker_clickos import stock

LIMITS = bounded.Limits(cpu_s=5, memory_bytes=1 << 30, wall_s=120)
#: Reviews at the same time.
PLACES = 2
#: Uploads of one project, and of all, that wait or are reviewed.
OF_PROJECT = 4
OF_ALL = 64
_FUNCTION = 'tacker_clickos.package.review:%s'

_queue = fair_queue.FairQueue(PLACES, OF_PROJECT, OF_ALL)


@contextlib.contextmanager
def upload(project_id):
    """Keep room for an upload while its body comes and is reviewed.

    :raises: TooManyRequests
    """
    with contextlib.ExitStack() as entered:
        try:
            place = entered.enter_context(_queue.entry(project_id))
        except fair_queue.Full as full:
            raise full.refusal('uploads of packages')
        yield place


def require(project_id, file, place, may_run=False):
    """Refuse a package that ClickOS or Tacker cannot read.

    :param project_id: whose upload it is
    :param file: an open file with the bytes of the CSAR
    :param place: what upload() yields
    :param may_run: see package.check()
    :returns: the VNFD's id
    :raises: PackageFaulty with a line for each fault
    """
    try:
        with place:
            found, vnfd_id, texts = bounded.call(
                _FUNCTION % _judge(may_run), file, LIMITS)
            found = found or elements.faults(
                texts, elements.Allowance(project_id))
    except bounded.Exceeded as exceeded:
        found = ['the package: its review %s' % exceeded]
    if found:
        raise exception.PackageFaulty(faults='\n'.join(found))
    return vnfd_id


def _judge(may_run):
    """Return the name of the function of the review."""
    if not stock.is_allowed():
        return 'judge'
    return 'judge_with_scripts' if may_run else 'judge_any'
