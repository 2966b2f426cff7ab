// SPDX-License-Identifier: Apache-2.0
// Brings Horizon's question before actions that end something and are not
// red; Horizon asks before the red ones only. And makes the question a text:
// Horizon puts names and reasons into it as markup.
(function () {
  'use strict';
  const MARKUP = /[&<>"']/g;
  const create = horizon.modals.create;

  function escaped(character) {
    return '&#' + character.charCodeAt(0) + ';';
  }

  horizon.modals.create = function (title, body) {
    const text = String(body).replace(MARKUP, escaped);
    return create.apply(this, [title, text, ...[...arguments].slice(2)]);
  };

  document.addEventListener('click', function (event) {
    const button = event.target.closest('form button[data-clickos-asks]');
    if (button) {
      event.preventDefault();
      horizon.datatables.confirm(button);
    }
  });
}());
