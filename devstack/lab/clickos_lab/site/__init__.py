# SPDX-License-Identifier: Apache-2.0
"""Pages of the site that are made from the code, as a Sphinx extension.

The page in docs/ holds the introduction. Sphinx reads the generated Markdown
after it, in every build.
"""

from clickos_lab import paths
from clickos_lab.site import duties
from clickos_lab.site import elements
from clickos_lab.site import openapi
from clickos_lab.site import suites
from clickos_lab.site import verbs

#: Page: the function that returns the rest of its text.
PAGES = {'docs/reference/control-sockets': verbs.markdown,
         'docs/reference/duties': duties.markdown,
         'docs/reference/elements': elements.markdown,
         'docs/reference/http-api': openapi.markdown,
         'docs/reference/suites': suites.markdown}


def setup(app):
    """Sphinx calls this when it loads the extension."""
    app.connect('env-get-outdated', _outdated)
    app.connect('source-read', _complete)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


def _outdated(_app, environment, *_changes):
    """The code may have changed, so these pages are read again."""
    return [page for page in PAGES if page in environment.found_docs]


def _complete(_app, page, source):
    if page in PAGES:
        source[0] += PAGES[page](paths.REPO)
