/**
 * The bar above a list that says what of it is shown. Every choice is an address, so it can be kept, sent and gone back from.
 */

import { h } from '../dom.js'
import { place } from '../router.js'
import { capital } from '../text.js'

/**
 * `{element, update(filter)}`.
 *
 * @param {{label: string, path: string, states: string[], fields: {key: string, label: string}[]}} about
 * @param {Record<string, string>} first What is chosen: `state`, and a text for each field.
 */
export function filterBar({ label, path, states, fields }, first) {
  let filter = first
  const links = ['', ...states].map(state => ({ state, link: h('a', { class: 'tab' }, capital(state || 'all')) }))
  const inputs = fields.map(field => ({ ...field, input: input(field) }))
  const element = h(
    'form',
    { class: 'filters', role: 'search', 'aria-label': label, onsubmit: event => (event.preventDefault(), go()) },
    h(
      'div',
      { class: 'tabs', role: 'group', 'aria-label': 'State' },
      links.map(each => each.link),
    ),
    h(
      'div',
      { class: 'fields' },
      inputs.map(each => h('span', { class: 'field' }, each.input)),
      h('button', { class: 'hidden-until-focus button' }, 'Filter'),
    ),
  )

  function go() {
    const typed = Object.fromEntries(inputs.map(each => [each.key, each.input.value.trim()]))
    location.hash = place(path, { state: filter.state, ...typed })
  }

  for (const each of inputs) each.input.addEventListener('change', go)

  function update(now) {
    filter = now
    const kept = Object.fromEntries(inputs.map(each => [each.key, now[each.key]]))
    for (const { state, link } of links) {
      link.href = place(path, { ...kept, state })
      if (state === now.state) link.setAttribute('aria-current', 'true')
      else link.removeAttribute('aria-current')
    }
    for (const each of inputs) each.input.value = now[each.key]
  }

  update(first)
  return { element, update }
}

function input({ key, label }) {
  const plain = { autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', maxlength: 128 }
  return h('input', { type: 'search', name: key, placeholder: label, 'aria-label': label, ...plain })
}
