/**
 * Something to take along: an id that is copied where it is pressed.
 */

import { announce } from '../announce.js'
import { h } from '../dom.js'
import { name } from '../text.js'

/** A button that shows a text and copies it. `label` says what it is. */
export function copyable(text, label) {
  const shown = h('span', { class: 'copy-text' }, name(text, 200))
  const button = h(
    'button',
    { type: 'button', class: 'copy', title: `Copy the ${label}`, onclick: copy },
    shown,
    h('span', { class: 'hidden' }, `, copy the ${label}`),
  )

  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      button.classList.add('copied')
      announce(`The ${label} is copied.`)
      setTimeout(() => button.classList.remove('copied'), 1200)
    } catch {
      // Without the permission to copy, selecting it is the next best thing.
      getSelection()?.selectAllChildren(shown)
    }
  }

  return button
}
