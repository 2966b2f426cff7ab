# SPDX-License-Identifier: Apache-2.0
"""Tacker's APIs: VIMs, VNF packages (SOL005), life cycle (SOL003 v1)."""

import time

from clickos_client import tacker
from clickos_client import vnf as _vnf

from clickos_dashboard.api import sessions
from clickos_dashboard import exceptions
from clickos_dashboard.guests import turns

#: Seconds to wait for the verdict on an update, and between two looks.
_VERDICT_S, _PAUSE_S = 10, 0.2


def vims(request):
    """List the VIMs of the project, the default one first."""
    return tacker.vims(_call(request, 'GET', tacker.VIMS).json())


def packages(request):
    """List VNF packages."""
    return _call(request, 'GET', tacker.PACKAGES + tacker.ALL).json()


def package(request, package_id):
    """Return a VNF package."""
    return _call(request, 'GET', _path(tacker.PACKAGES, package_id)).json()


def package_content(request, package_id):
    """Return the CSAR's bytes."""
    path = _path(tacker.PACKAGES, package_id) + '/package_content'
    return _call(request, 'GET', path,
                 headers={'Accept': 'application/zip'}).content


def create_package(request):
    """Make an empty package; return its id."""
    return _call(request, 'POST', tacker.PACKAGES,
                 json={'userDefinedData': {}}).json()['id']


def upload_package(request, package_id, content):
    """Upload a CSAR; Tacker reads it after the answer."""
    path = _path(tacker.PACKAGES, package_id) + '/package_content'
    _call(request, 'PUT', path, data=content,
          headers={'Content-Type': 'application/zip'})


def delete_package(request, package_id):
    """Take a package out of service and delete it."""
    path = _path(tacker.PACKAGES, package_id)
    if package(request, package_id)['operationalState'] == 'ENABLED':
        _call(request, 'PATCH', path, json={'operationalState': 'DISABLED'})
    _call(request, 'DELETE', path)


def vnfs(request):
    """List the project's VNFs as vnf.Vnf, each with its last operation."""
    bodies = _call(request, 'GET', tacker.INSTANCES + tacker.ALL).json()
    return tacker.vnfs(bodies, operations(request))


def vnf(request, vnf_id):
    """Return a vnf.Vnf."""
    body = _call(request, 'GET', _path(tacker.INSTANCES, vnf_id)).json()
    return _vnf.Vnf.of(body, next(iter(operations(request, vnf_id)), None))


def operations(request, vnf_id=None, has_requests=False):
    """List operations, the newest first; of one VNF or of all.

    :param has_requests: with the body of each request, which may have 2 MB
    """
    path = tacker.operations_path(vnf_id, has_requests)
    return tacker.operations(_call(request, 'GET', path).json(), vnf_id)


def create_vnf(request, vnfd_id, name, description):
    """Make a VNF that is not launched yet; return its id."""
    return _call(request, 'POST', tacker.INSTANCES, json={
        'vnfdId': vnfd_id, 'vnfInstanceName': name,
        'vnfInstanceDescription': description}).json()['id']


def start(request, vnf_id, operation, **body):
    """Start instantiate, heal, scale or terminate."""
    _call(request, 'POST', f'{_path(tacker.INSTANCES, vnf_id)}/{operation}',
          json=body)


def update_vnf(request, vnf_id, **changes):
    """Change a VNF; Tacker does so after the answer."""
    _call(request, 'PATCH', _path(tacker.INSTANCES, vnf_id), json=changes)


def update_properties(request, vnf, wanted):
    """Change properties of a VNF; return the verdict.

    :param vnf: vnf.Vnf from before
    :param wanted: {property: value}
    :returns: as Vnf.verdict; None if there is not one after some seconds, or
        if another page of the user waits for one
    :raises TackerError: with the reason, if Tacker refuses it at once
    """
    update_vnf(request, vnf.id, metadata={'clickos_properties': wanted})
    try:
        with turns.turn(request):
            return _verdict(request, vnf)
    except turns.Busy:
        return None


def _verdict(request, vnf):
    """Wait for a verdict, in a thread that Horizon needs for others."""
    path = _path(tacker.INSTANCES, vnf.id)
    end_s = time.monotonic() + _VERDICT_S
    while time.monotonic() < end_s:
        found = _vnf.Vnf.of(_call(request, 'GET', path).json(), None)
        if found.verdict_number != vnf.verdict_number:
            return found.verdict
        time.sleep(_PAUSE_S)
    return None


def delete_vnf(request, vnf_id):
    """Delete a VNF that is not launched."""
    _call(request, 'DELETE', _path(tacker.INSTANCES, vnf_id))


def fail_operation(request, operation_id):
    """Give up an operation that waits for a decision (FAILED_TEMP)."""
    _call(request, 'POST', _path(tacker.OPERATIONS, operation_id) + '/fail')


def retry_operation(request, operation_id):
    """Begin such an operation again."""
    _call(request, 'POST', _path(tacker.OPERATIONS, operation_id) + '/retry')


def _path(collection, object_id):
    """Return an object's path; an id with other characters is refused."""
    text = str(object_id)
    if not text.replace('-', '').isalnum() or not text.isascii():
        raise exceptions.NotFound(404, 'no such object')
    return f'{collection}/{text}'


def _call(request, method, path, **options):
    adapter = sessions.adapter(request, sessions.TACKER)
    options['headers'] = {**tacker.HEADERS, **options.get('headers', {})}
    answer = adapter.request(path, method, **options)
    if answer.status_code == 404:
        raise exceptions.NotFound(404, _reason(answer))
    if answer.status_code >= 400:
        raise exceptions.TackerError(answer.status_code, _reason(answer))
    return answer


def _reason(answer):
    """Return what an error's body says: a problem document or a fault."""
    return tacker.reason(answer) or f'Tacker answers {answer.status_code}'
