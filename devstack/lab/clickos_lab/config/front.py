# SPDX-License-Identifier: Apache-2.0
"""The front: nginx before every HTTP interface.

nginx reads a request to its end before a thread of a service sees it. It
bounds the connections, requests, time and bytes of one client.
"""

import dataclasses

from clickos_lab import accounts
from clickos_lab.config import tls

#: Seconds for the whole header, and between two pieces of a body.
HEADER_S, BODY_S = 10, 20
#: Of one client address, at one service.
CONNECTIONS = 1024
REQUESTS_PER_S = 500
#: Of all clients, at all services.
WORKER_CONNECTIONS = 8192


@dataclasses.dataclass(frozen=True)
class Api:
    """A service behind the front; its account and port have its name."""

    name: str
    #: of a request's body, in nginx's notation
    body_max: str
    #: tacker-server speaks HTTP, the others uWSGI's protocol
    http: bool = False
    #: nginx itself serves the files below /static/
    static: bool = False


APIS = (
    Api('keystone', '256k'), Api('glance', '2g'), Api('placement', '1m'),
    Api('neutron', '1m'), Api('nova', '1m'), Api('clickos', '16m'),
    Api('tacker', '256m', http=True), Api('horizon', '5m', static=True))
HEAT = Api('heat', '1m')

_MAIN = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
pid {run}/pid;
error_log stderr warn;
events {{ worker_connections {worker_connections}; }}
http {{
    access_log off;
    server_tokens off;
    default_type application/json;
    types {{ }}
    client_body_temp_path {run}/body;
    proxy_temp_path {run}/proxy;
    uwsgi_temp_path {run}/uwsgi;
    fastcgi_temp_path {run}/fastcgi;
    scgi_temp_path {run}/scgi;
    # Tokens of many roles make long headers.
    large_client_header_buffers 4 32k;
    client_header_timeout {header_s}s;
    client_body_timeout {body_s}s;
    send_timeout 30s;
    keepalive_timeout 30s;
    reset_timedout_connection on;
    merge_slashes off;
    limit_conn_zone $binary_remote_addr$server_port zone=connections:4m;
    limit_req_zone $binary_remote_addr$server_port
        zone=requests:4m rate={requests}r/s;
    limit_conn connections {connections};
    limit_conn_status 429;
    limit_conn_log_level warn;
    limit_req zone=requests burst={requests} nodelay;
    limit_req_status 429;
    limit_req_log_level warn;
    error_page 408 @408;
    error_page 413 @413;
    error_page 429 @429;
    error_page 502 504 @502;
{tls}{servers}}}
"""

_SERVER = """\
    server {{
        listen 127.0.0.1:{port}{ssl} backlog=1024;
        client_max_body_size {body_max};
        location / {{
{way}
        }}
{static}{errors}    }}
"""
_TLS = """\
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:tls:4m;
"""
_STATIC = """\
        location /static/ {{
            alias {folder}/;
            include /etc/nginx/mime.types;
            expires 1h;
        }}
"""

#: What a client says of other proxies is not true here. nginx has put the
#: chunks of a body together.
_UNTRUSTED = ('X_FORWARDED_FOR', 'X_FORWARDED_PROTO', 'X_FORWARDED_HOST',
              'X_FORWARDED_PORT', 'X_FORWARDED_PREFIX', 'FORWARDED',
              'TRANSFER_ENCODING', 'PROXY')
_UWSGI = {
    'SCRIPT_NAME': '""', 'QUERY_STRING': '$query_string',
    'REQUEST_METHOD': '$request_method',
    'CONTENT_TYPE': '$content_type', 'CONTENT_LENGTH': '$content_length',
    'REQUEST_URI': '$request_uri', 'PATH_INFO': '$document_uri',
    'SERVER_PROTOCOL': '$server_protocol', 'UWSGI_SCHEME': '$scheme',
    'REMOTE_ADDR': '$remote_addr', 'REMOTE_PORT': '$remote_port',
    'SERVER_NAME': '$server_addr', 'SERVER_PORT': '$server_port'}

_ERRORS = {
    408: 'the request did not arrive in time',
    413: 'the request body is larger than the {body_max} that {name} takes',
    429: 'too many connections or requests from one address; try again later',
    502: '{name} does not answer'}


def write(site):
    """Write nginx.conf."""
    run = accounts.socket_folder(site.state, 'front')
    apis = (*APIS, HEAT) if site.has_heat else APIS
    servers = ''.join(_server(site, api) for api in apis)
    site.write('front/nginx.conf', _MAIN.format(
        run=run, files=2 * WORKER_CONNECTIONS,
        worker_connections=WORKER_CONNECTIONS, header_s=HEADER_S,
        body_s=BODY_S, requests=REQUESTS_PER_S, connections=CONNECTIONS,
        tls=_tls(site), servers=servers), 'front')


def _tls(site):
    if not site.settings.authority:
        return ''
    return _TLS.format(certificate=tls.certificate(site.state),
                       key=tls.key(site.state, 'front'))


def _server(site, api):
    socket = site.api_socket(api.name)
    way = _http_way(socket) if api.http else _uwsgi_way(socket)
    errors = ''.join(_error(api, status) for status in _ERRORS)
    static = _STATIC.format(folder=site.state.static) if api.static else ''
    return _SERVER.format(
        port=site.settings.ports[api.name],
        ssl=' ssl' if site.settings.authority else '', body_max=api.body_max,
        static=static,
        way='\n'.join(f'            {line};' for line in way), errors=errors)


def _uwsgi_way(socket):
    lines = [f'uwsgi_pass unix:{socket}', 'uwsgi_read_timeout 300s']
    lines += [f'uwsgi_param {k} {v}' for k, v in _UWSGI.items()]
    return lines + [f'uwsgi_param HTTP_{name} "" if_not_empty'
                    for name in _UNTRUSTED]


def _http_way(socket):
    lines = [f'proxy_pass http://unix:{socket}:', 'proxy_http_version 1.1',
             'proxy_read_timeout 300s', 'proxy_set_header Host $http_host',
             'proxy_set_header Connection ""']
    return lines + [
        f'proxy_set_header {name.title().replace("_", "-")} ""'
        for name in _UNTRUSTED if name != 'TRANSFER_ENCODING']


def _error(api, status):
    text = _ERRORS[status].format(name=api.name, body_max=api.body_max)
    return (f'        location @{status} {{ internal; return {status} '
            f'\'{{"error": {{"code": {status}, "message": "{text}"}}}}\'; '
            '}\n')
