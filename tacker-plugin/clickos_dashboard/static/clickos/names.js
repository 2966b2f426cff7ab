// SPDX-License-Identifier: Apache-2.0
// Names Horizon's controls that show a symbol only, for screen readers.
(function () {
  'use strict';
  const NAMES = [['.modal .close', gettext('Close')],
                 ['.dropdown-toggle', gettext('More actions')],
                 ['.spinner-up', gettext('Increase')],
                 ['.spinner-down', gettext('Decrease')]];

  function name() {
    for (const [selector, text] of NAMES) {
      for (const control of document.querySelectorAll(selector)) {
        if (!control.textContent.trim() && !control.ariaLabel) {
          control.ariaLabel = text;
        }
      }
    }
    // The steps of a wizard have no role of tabs, so they are links.
    for (const list of document.querySelectorAll('.workflow [role=tablist]')) {
      list.removeAttribute('role');
    }
  }

  new MutationObserver(name).observe(document.body,
                                     {childList: true, subtree: true});
  name();
}());
