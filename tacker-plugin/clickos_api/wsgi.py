# SPDX-License-Identifier: Apache-2.0
"""The entry point for a WSGI server: clickos_api.wsgi:application.

The configuration files are named by --config-file arguments (uWSGI's pyargv)
or by the environment variable OS_CLICKOS_CONFIG_FILES, ';' between them.
Nothing is connected here, so the server may fork after loading this. The
first request starts the threads of a process; uWSGI starts them at once if
it loads the application in each process (lazy-apps).
"""

import sys

from clickos_client import release
from oslo_reports import guru_meditation_report as gmr
from oslo_reports import opts as report_opts

from clickos_api import app
from clickos_api import conf

_settings = conf.load(sys.argv[1:], conf.files_from_environment())
report_opts.set_defaults(_settings)
# A WSGI server has its own use for signals: a report is written when the file
# [oslo_reports] file_event_handler changes.
gmr.TextGuruMeditation.setup_autorun(release.Product, conf=_settings,
                                     setup_signal=False)
application = app.create(_settings)
if 'uwsgi' in sys.modules and sys.modules['uwsgi'].worker_id():
    application.extensions['clickos'].start()
