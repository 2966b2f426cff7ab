// SPDX-License-Identifier: Apache-2.0
// Lets one drag the hops of a chain; the actions do the same by keyboard.
(function () {
  'use strict';
  const note = document.getElementById('clickos-order');
  const body = document.querySelector('#hops tbody');
  if (!note || !body) {
    return;
  }
  let dragged = null, before = '';

  function rows() {
    return [...body.querySelectorAll('tr[data-object-id]')];
  }

  function order() {
    return rows().map(function (row) { return row.dataset.objectId; });
  }

  async function send(hops) {
    const form = new URLSearchParams();
    for (const hop of hops) {
      form.append('hop', hop);
    }
    const token = document.querySelector('[name=csrfmiddlewaretoken]');
    const answer = await fetch(note.dataset.url, {
      method: 'POST', credentials: 'same-origin', body: form,
      headers: {'X-CSRFToken': token.value,
                'X-Requested-With': 'XMLHttpRequest'}
    });
    const said = await answer.json().catch(function () { return {}; });
    if (answer.ok) {
      window.location.reload();
    } else {
      note.querySelector('span').textContent =
        said.error || answer.statusText;
    }
  }

  for (const row of rows()) {
    row.draggable = true;
    row.classList.add('clickos-draggable');
  }
  body.addEventListener('dragstart', function (event) {
    dragged = event.target.closest('tr');
    before = order().join();
    event.dataTransfer.effectAllowed = 'move';
    event.dataTransfer.setData('text/plain', dragged.dataset.objectId);
  });
  body.addEventListener('dragover', function (event) {
    const over = event.target.closest('tr[data-object-id]');
    if (dragged && over) {
      event.preventDefault();
      const box = over.getBoundingClientRect();
      const below = event.clientY > box.top + box.height / 2;
      if (over !== dragged) {
        body.insertBefore(dragged, below ? over.nextSibling : over);
      }
    }
  });
  body.addEventListener('drop', function (event) {
    event.preventDefault();
  });
  body.addEventListener('dragend', function () {
    dragged = null;
    if (order().join() !== before) {
      send(order()).catch(function (problem) {
        note.querySelector('span').textContent = String(problem);
      });
    }
  });
}());
