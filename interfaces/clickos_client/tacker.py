# SPDX-License-Identifier: Apache-2.0
"""Tacker's APIs: VIMs, VNF packages (SOL005), life cycle (SOL003 v1).

Callers send the requests, each with its own session and its own errors.
"""

from clickos_client import vnf

VIMS = '/v1.0/vims'
PACKAGES = '/vnfpkgm/v1/vnf_packages'
INSTANCES = '/vnflcm/v1/vnf_instances'
OPERATIONS = '/vnflcm/v1/vnf_lcm_op_occs'
#: Without it Tacker returns the first 100 entries of a list.
ALL = '?all_records=yes'
HEADERS = {'Version': '2.0.0'}


def operations_path(vnf_id=None, has_requests=False):
    """Return the path of the operations of a VNF, or of all.

    :param has_requests: with the body of each request, which may have 2 MB
    """
    path = OPERATIONS + ALL + '&fields=error' + (
        ',operationParams' if has_requests else '')
    return path if vnf_id is None else (
        f'{path}&filter=(eq,vnfInstanceId,{vnf_id})')


def operations(bodies, vnf_id=None):
    """List the operations of a VNF, or all, as vnf.Operation; newest first."""
    found = [vnf.Operation.of(body) for body in bodies
             if vnf_id in (None, body['vnfInstanceId'])]
    return sorted(found, key=lambda each: each.began, reverse=True)


def vnfs(bodies, newest_first):
    """List VNF instances as vnf.Vnf, each with its last operation.

    :param newest_first: the operations, from operations()
    """
    last = {}
    for operation in newest_first:
        last.setdefault(operation.vnf_id, operation)
    return [vnf.Vnf.of(body, last.get(body['id'])) for body in bodies]


def vims(body):
    """List the VIMs of an answer, the default one first."""
    return sorted(body['vims'], key=lambda vim: not vim.get('is_default'))


def reason(answer):
    """Return the reason in a refusal: a problem document or a fault.

    :returns: '' if the answer states none
    """
    try:
        body = answer.json()
    except ValueError:
        return ''
    while isinstance(body, dict) and body:
        body = (body.get('detail') or body.get('message')
                or next(iter(body.values())))
    return body if isinstance(body, str) else ''
