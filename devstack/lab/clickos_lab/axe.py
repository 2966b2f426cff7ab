# SPDX-License-Identifier: Apache-2.0
"""axe-core, which judges the accessibility of the dashboard's pages.

A package of PyPI carries the script (MPL-2.0). It also needs a browser's
driver that the tests do not use, so it comes without its dependencies.
"""

import shutil

from clickos_lab import log
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab import venv

#: Has axe-core 4.12.1.
_PACKAGE = 'axe-playwright-python==0.1.8'
_SCRIPT = 'axe_playwright_python/axe.min.js'
#: Judges our part of the page: WCAG 2.1, levels A and AA. A color that is
#: just changing is not judged: transitions end first.
_AUDIT = '''
const done = arguments[arguments.length - 1];
const parts = ['#content_body', '.modal.in'].filter(
  part => document.querySelector(part)).map(part => [part]);
const changes = document.getAnimations().filter(
  each => each.effect.getComputedTiming().endTime < Infinity).map(
  each => each.finished.catch(() => null));
Promise.all(changes).then(() => axe.run({include: parts}, {runOnly: [
  'wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})).then(found => done(
    found.violations.flatMap(fault => fault.nodes.map(
      node => [fault.id, node.target.join(' ') + ': ' +
               node.failureSummary]))));
'''


def ensure(state):
    """Fetch the script, once."""
    stamp = _folder(state) / 'package.stamp'
    if stamps.fresh(stamp, _PACKAGE):
        return
    with log.step('axe-core'):
        shutil.rmtree(_folder(state), ignore_errors=True)
        shell.run([venv.uv(state), 'pip', 'install', '--no-deps', '--target',
                   _folder(state), _PACKAGE], state.log / 'venv.log')
        stamp.write_text(_PACKAGE)


def script(state=None):
    """Return the text of the script."""
    return (_folder(state or paths.State()) / _SCRIPT).read_text()


def audit(driver):
    """Return what axe-core finds on a browser's page: [(rule, place)]."""
    driver.execute_script(script())
    return [tuple(fault) for fault in driver.execute_async_script(_AUDIT)]


def _folder(state):
    return state.root / 'axe'
