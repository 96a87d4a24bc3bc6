/**
 * An address that leads nowhere.
 */

import { h } from '../dom.js'

/** @returns {import("../main.js").View} */
export function lostView() {
  const element = h(
    'div',
    { class: 'page narrow' },
    h('h1', { tabindex: -1 }, 'There is nothing here'),
    h('p', { class: 'lead' }, 'This address leads nowhere. It may have been cut when it was copied.'),
    h('div', { class: 'actions' }, h('a', { class: 'button primary', href: '#/' }, 'To the runs')),
  )
  return { element, title: 'Nothing here' }
}
