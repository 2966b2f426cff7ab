// SPDX-License-Identifier: Apache-2.0
// Shows the graph of a guest and asks for it again while the page is seen.
(function () {
  'use strict';
  const EVERY_MS = 2000;

  function show(box, error, text) {
    const picture = new DOMParser().parseFromString(text, 'image/svg+xml');
    const root = picture.documentElement;
    if (root.nodeName !== 'svg') {
      error.textContent = 'the answer is no picture';
      return;
    }
    error.textContent = '';
    window.clickos.zoom(box).show(document.importNode(root, true));
    list(root);
  }

  // Says the same in words: what there was when the list was opened.
  function list(root) {
    const details = document.getElementById('clickos-graph-list');
    const entries = details.querySelector('ul');
    if (!details.open) {
      entries.replaceChildren();
    } else if (!entries.firstChild) {
      entries.replaceChildren(
        ...[...root.querySelectorAll('g > title')].map(function (title) {
          const entry = document.createElement('li');
          entry.textContent = title.textContent;
          return entry;
        }));
    }
  }

  async function ask(box, error) {
    const answer = await fetch(box.dataset.url, {
      credentials: 'same-origin',
      headers: {'X-Requested-With': 'XMLHttpRequest'}
    });
    if (answer.ok) {
      show(box, error, await answer.text());
    } else {
      const body = await answer.json().catch(function () { return {}; });
      error.textContent = body.error || answer.statusText;
    }
  }

  // Horizon loads a tab's content when the tab is opened.
  async function turn() {
    const box = document.getElementById('clickos-graph');
    const error = document.getElementById('clickos-graph-error');
    if (box && box.offsetParent !== null && !document.hidden) {
      try {
        await ask(box, error);
      } catch (problem) {
        error.textContent = String(problem);
      }
    }
    setTimeout(turn, box && box.firstChild ? EVERY_MS : EVERY_MS / 4);
  }

  turn();
}());
