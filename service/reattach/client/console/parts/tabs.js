/**
 * Panes of which one is shown, by the keyboard pattern for tabs: arrows move, only the chosen one is a stop for Tab.
 */

import { h, say, unique } from '../dom.js'

/**
 * @param {string} label What the panes are of.
 * @param {{name: string, element: HTMLElement, shown?: () => void}[]} panes
 * @returns {{element: HTMLElement, label: (name: string, more: string) => void}}
 */
export function tabs(label, panes) {
  const stem = unique('tab')
  const made = panes.map((pane, at) => {
    const more = h('span', { class: 'tab-more' })
    const button = h(
      'button',
      { type: 'button', class: 'tab', role: 'tab', id: `${stem}-${at}`, 'aria-controls': `${stem}-${at}-pane`, onclick: () => choose(at) },
      pane.name,
      more,
    )
    const box = h('div', { role: 'tabpanel', id: `${stem}-${at}-pane`, 'aria-labelledby': `${stem}-${at}` }, pane.element)
    return { ...pane, button, box, more }
  })
  const list = h(
    'div',
    { class: 'tabs', role: 'tablist', 'aria-label': label, onkeydown: pressed },
    made.map(each => each.button),
  )
  let chosen = 0

  function choose(at) {
    chosen = at
    made.forEach(({ button, box }, each) => {
      button.setAttribute('aria-selected', String(each === at))
      button.tabIndex = each === at ? 0 : -1
      box.hidden = each !== at
    })
    made[at].shown?.()
  }

  function pressed(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    choose((chosen + step + made.length) % made.length)
    made[chosen].button.focus()
  }

  choose(0)
  return {
    element: h(
      'div',
      { class: 'panes' },
      list,
      made.map(each => each.box),
    ),
    label: (name, more) => say(made.find(each => each.name === name).more, more),
  }
}
