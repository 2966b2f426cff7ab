# SPDX-License-Identifier: Apache-2.0
"""What people see of a page: axe-core judges it, and pictures show it.

Pages of these tests have no styles of Horizon. With PICTURES=FOLDER in the
environment they get those of the lab's state folder, are judged with them,
and are saved in FOLDER.
"""

import os
import pathlib

from clickos_lab import axe
from clickos_lab import paths

#: WCAG 2.1, levels A and AA.
_AUDIT = '''
const done = arguments[arguments.length - 1];
axe.run({include: [['#content_body']]}, {runOnly: [
  'wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then(found => done(
    found.violations.flatMap(fault => fault.nodes.map(
      node => fault.id + ' ' + node.target.join(' ') + ': ' +
              node.failureSummary))));
'''
_DRESS = '''
const style = document.createElement('style');
style.textContent = arguments[0];
document.head.prepend(style);
'''


def faults(driver):
    """Return what is wrong with the page that a browser shows."""
    driver.execute_script(axe.script())
    return driver.execute_async_script(_AUDIT)


def dress(driver):
    """Give the page Horizon's styles, if it is to be pictured."""
    if 'PICTURES' not in os.environ:
        return
    sheets = (paths.State().static / 'dashboard/css').glob('output.*.css')
    largest = max(sheets, key=lambda path: path.stat().st_size)
    driver.execute_script(_DRESS, largest.read_text())


def picture(driver, name, top=None):
    """Save a picture of the window, if it is wanted.

    :param top: selector of what stands at the top
    """
    folder = os.environ.get('PICTURES')
    if folder:
        driver.execute_script(
            'const at = arguments[0] && document.querySelector(arguments[0]);'
            'if (at) { at.scrollIntoView(); scrollBy(0, -60); }', top)
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(pathlib.Path(folder, f'{name}.png')))
