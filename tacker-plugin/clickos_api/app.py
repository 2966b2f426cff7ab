# SPDX-License-Identifier: Apache-2.0
"""The WSGI application, assembled."""

import time

from clickos_client import limits as client_limits
import flask
from keystonemiddleware import auth_token
from oslo_log import log as logging
import oslo_middleware
from werkzeug import exceptions as http_exc
from werkzeug.middleware import dispatcher

from clickos_api.db import schema
from clickos_api import errors
from clickos_api.http import openapi
from clickos_api.http import routes
from clickos_api import metrics
from clickos_api.operations import background
from clickos_api import service

LOG = logging.getLogger(__name__)

#: A body may spell each byte of a value as \u00xx; the rest is names.
ESCAPED = 6
ENVELOPE_BYTES = 65536


def create(conf):
    """Return the application for a configuration that is read."""
    app = flask.Flask('clickos_api')
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    limits = conf.clickos_api
    app.config['MAX_CONTENT_LENGTH'] = (
        ESCAPED * (limits.max_state_bytes + client_limits.CONFIG_BYTES)
        + ENVELOPE_BYTES)
    parts = service.Service(conf)
    app.register_blueprint(routes.blueprint(parts))
    app.extensions['clickos'] = background.Background(parts, conf)
    _count_requests(app, routes.limiter(parts, limits),
                    schema.Guard(parts.store))
    _show_errors(app)
    app.wsgi_app = _behind_middleware(app.wsgi_app, conf)
    return app


def _behind_middleware(application, conf):
    application = auth_token.AuthProtocol(application,
                                          {'oslo_config_config': conf})
    application = dispatcher.DispatcherMiddleware(
        application, {'/healthcheck': oslo_middleware.Healthcheck(None, conf)})
    application = oslo_middleware.RequestId(openapi.Documents(application),
                                            conf)
    return oslo_middleware.HTTPProxyToWSGI(application, conf)


def _count_requests(app, limit, tables):
    @app.before_request
    def begin():
        flask.g.began_s = time.monotonic()
        limit()
        tables.require()
        app.extensions['clickos'].start()

    @app.after_request
    def end(answer):
        rule = flask.request.url_rule
        of = (metrics.method(flask.request.method),
              rule.endpoint if rule else 'unknown')
        metrics.REQUESTS.labels(*of, answer.status_code).inc()
        if 'began_s' in flask.g:
            metrics.SECONDS.labels(*of).observe(
                time.monotonic() - flask.g.began_s)
        return answer


def _show_errors(app):
    app.register_error_handler(errors.ApiError, _api_error)
    app.register_error_handler(http_exc.HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)


def _api_error(error):
    headers = {'Retry-After': '1'} if error.status in (429, 503) else {}
    return errors.body(error), error.status, headers


def _http_error(error):
    code = error.name.lower().replace(' ', '-')
    return _body(code, error.description), error.code, _headers(error)


def _headers(error):
    """Keep what HTTP wants next to a status, such as Allow next to 405."""
    return [(name, value) for name, value in error.get_headers()
            if name.lower() not in ('content-type', 'content-length')]


def _unexpected(error):
    LOG.exception('Request failed unexpectedly')
    return _body('internal', 'something went wrong in clickos-api; its log'
                 ' has it under the request id of this answer'), 500


def _body(code, message):
    return {'error': {'code': code, 'message': message}}
