/**
 * What is shown in place of something: that there is nothing, or why it cannot be shown.
 */

import { h } from '../dom.js'
import { problemText } from '../words.js'
import { visible } from '../text.js'

/** There is nothing here, and what to do about it. */
export function emptyNote(title, text, ...actions) {
  return h(
    'section',
    { class: 'note empty' },
    h('h2', {}, title),
    h('p', {}, text),
    actions.length > 0 && h('div', { class: 'actions' }, actions),
  )
}

/** Something was refused or not reached: what, why, and another try. */
export function problemNote(error, title, again) {
  const code = error?.code ? h('code', { class: 'code' }, visible(error.code)) : null
  return h(
    'section',
    { class: 'note problem', role: 'alert' },
    h('h2', {}, title),
    h('p', {}, visible(problemText(error)), code && ' ', code),
    again && h('div', { class: 'actions' }, h('button', { type: 'button', class: 'button', onclick: again }, 'Try again')),
  )
}
