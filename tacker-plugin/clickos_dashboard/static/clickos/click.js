// SPDX-License-Identifier: Apache-2.0
// Colors the Click language in the editor and in shown configurations.
(function () {
  'use strict';
  // Characters of a text that is colored; each token is an element.
  const MOST = 64 * 1024;
  // What looks ahead looks at a bounded number of characters: a word, a list
  // of names or ${ that does not end costs no more than its length.
  const SPACE = '\\s{0,16}', WORD = '[\\w@/]{1,100}';
  const TOKEN = new RegExp([
    '(?<comment>//[^\\n]*|/\\*[^]*?(?:\\*/|$))',
    '(?<string>"(?:\\\\[^]|[^"\\\\])*"?|\'[^\']*\'?)',
    '(?<keyword>\\b(?:elementclass|require|provide|define|export|library' +
      '|input|output)\\b)',
    '(?<name>(?<![\\w@/])[A-Za-z_@][\\w@/]{0,99}(?![\\w@/])(?=' + SPACE +
      '(?:,' + SPACE + WORD + SPACE + '){0,16}::))',
    '(?<kind>\\b[A-Z][\\w@/]*)',
    '(?<variable>\\$\\w+|\\$\\{[^}]{0,100}\\})',
    '(?<arrow>->|=>|::)',
    '(?<number>\\b(?:\\d[\\w.:/]*)\\b)'
  ].join('|'), 'g');

  // Fills an element with spans; text never becomes markup.
  function color(element, text) {
    if (text.length > MOST) {
      element.textContent = text + '\n';
      return;
    }
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(TOKEN)) {
      const kind = Object.keys(match.groups).find(function (name) {
        return match.groups[name] !== undefined;
      });
      const span = document.createElement('span');
      span.className = 'clickos-' + kind;
      span.textContent = match[0];
      parts.push(text.slice(end, match.index), span);
      end = match.index + match[0].length;
    }
    parts.push(text.slice(end) + '\n');
    element.replaceChildren(...parts);
  }

  // A color layer of the same letters lies below the field.
  function dress(field, layer) {
    function follow() {
      layer.scrollTop = field.scrollTop;
      layer.scrollLeft = field.scrollLeft;
    }
    function paint() {
      color(layer, field.value);
      follow();
    }
    field.addEventListener('input', paint);
    field.addEventListener('scroll', follow);
    field.parentElement.classList.add('clickos-dressed');
    paint();
  }

  function go(field, line, column) {
    const lines = field.value.split('\n');
    const before = lines.slice(0, line - 1);
    const at = before.join('\n').length + (before.length ? 1 : 0) +
      Math.max(0, column - 1);
    const until = at + Math.max(1, (lines[line - 1] || '').length - column);
    field.focus();
    field.setSelectionRange(at, until);
    field.scrollTop = (line - 4) * field.scrollHeight / lines.length;
  }

  function look() {
    for (const shown of document.querySelectorAll('pre[data-click]')) {
      shown.removeAttribute('data-click');
      color(shown, shown.textContent);
    }
  }

  const field = document.getElementById('clickos-text');
  if (field) {
    dress(field, document.getElementById('clickos-lit'));
    document.addEventListener('click', function (event) {
      const link = event.target.closest('a[data-line]');
      if (link) {
        event.preventDefault();
        go(field, Number(link.dataset.line), Number(link.dataset.column));
      }
    });
  }
  look();
  // Horizon loads a tab's content when the tab is opened.
  new MutationObserver(look).observe(document.body,
                                     {childList: true, subtree: true});
}());
