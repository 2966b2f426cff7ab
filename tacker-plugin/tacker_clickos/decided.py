# SPDX-License-Identifier: Apache-2.0
"""Mends what Tacker answers about operations that failed.

Tacker 16 puts the text of an object where the reason belongs when a user lets
an operation fail for good. It refuses other operations of such a VNF without
saying that the user has to decide first.
"""

import re

from tacker_clickos import tacker_db

_FAIL = re.compile(r'/vnf_lcm_op_occs/([^/]+)/fail/?\Z')
_VNF = re.compile(r'/vnf_instances/([^/]+)(/\w+)?/?\Z')
_ADVICE = ('; operation %(name)s %(id)s failed and waits for a decision:'
           ' "openstack vnflcm op fail %(id)s" ends it, "op retry" tries it'
           ' again')


def answer(application, api, request):
    """Return Tacker's response to a request of one of routes.APIS."""
    if api != 'lifecycle':
        return request.get_response(application)
    failing = request.method == 'POST' and _FAIL.match(request.path_info)
    if failing:
        return _with_reason(application, request, failing[1])
    response = request.get_response(application)
    refused = _VNF.match(request.path_info)
    if response.status_int == 409 and refused:
        _advise(response, refused[1])
    return response


def _with_reason(application, request, operation_id):
    """Let an operation fail for good; it keeps the reason."""
    error = tacker_db.operation_error(operation_id)
    response = request.get_response(application)
    if response.status_int < 300 and error:
        tacker_db.set_operation_error(operation_id, error)
        body = _object(response)
        if body is not None and 'error' in body:
            response.json_body = {**body, 'error': error}
    return response


def _advise(response, vnf_id):
    """Say which operation has to be decided first, if there is one."""
    failed = tacker_db.failed_operation(vnf_id)
    body = _object(response)
    if failed is None or body is None:
        return
    place = body
    if 'detail' not in place:       # {"conflictingRequest": {"message": ...}}
        place = next((each for each in body.values()
                      if isinstance(each, dict)), {})
    for key in ('detail', 'message'):
        if isinstance(place.get(key), str):
            place[key] += _ADVICE % dict(zip(('id', 'name'), failed))
            response.json_body = body
            return


def _object(response):
    """Return the JSON object of a response, or None."""
    try:
        body = response.json_body
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
