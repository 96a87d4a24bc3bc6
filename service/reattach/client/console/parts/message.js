/**
 * Messages as they are written. What an agent says is shown as it is, as text; only very long ones are shown in parts.
 */

import { h, reconcile, replace, say } from '../dom.js'
import { border, clip, many, name, pretty, size } from '../text.js'

const PART = 40_000
const LATEST = 100
const ROLES = { assistant: 'Agent', user: 'Person', system: 'System', tool: 'Tool' }

/** The conversation of a run: `{element, update(messages)}`. */
export function conversation() {
  const kept = new Map()
  const list = h('div', { class: 'messages' })
  const earlier = h('button', { type: 'button', class: 'button more', hidden: true, onclick: () => ((most += LATEST), update(last)) })
  const element = h('div', {}, earlier, list)
  let most = LATEST
  let last = []

  function update(messages) {
    last = messages
    const hidden = Math.max(0, messages.length - most)
    earlier.hidden = hidden === 0
    say(earlier, `Show ${many(Math.min(hidden, LATEST), 'earlier message')}`)
    reconcile(
      list,
      kept,
      hidden ? messages.slice(hidden) : messages,
      message => message.message_id,
      messageCard,
      (card, message) => card.update(message),
    )
  }

  return { element, update }
}

function messageCard(first) {
  const role = h('h2', { class: 'role' })
  const status = h('span', { class: 'message-status' })
  const body = h('div', { class: 'body' })
  const element = h('article', { class: 'message' }, h('header', {}, role, status), body)
  let shown = null
  let parts = []

  function update(message) {
    if (message === shown) return
    shown = message
    element.dataset.role = message.role in ROLES ? message.role : 'other'
    element.dataset.status = message.status
    say(role, ROLES[message.role] ?? name(message.role, 40))
    say(status, message.status === 'interrupted' ? 'broken off' : message.status === 'streaming' ? 'writing' : '')
    parts = contentParts(body, parts, message.content)
  }

  update(first)
  return { element, update }
}

/** Show a message's content; the parts it is made of are kept from one time to the next, so that a growing text only grows. */
function contentParts(body, parts, content) {
  const wanted = (Array.isArray(content) ? content : [content]).filter(part => part !== null && part !== undefined)
  const made = wanted.map((part, at) => {
    const text = typeof part === 'string' ? part : part?.type === 'text' && typeof part.text === 'string' ? part.text : null
    const kind = text === null ? 'data' : 'text'
    const same = parts[at]?.kind === kind ? parts[at] : kind === 'text' ? textPart() : dataPart()
    same.update(text ?? part)
    return same
  })
  if (made.length !== parts.length || made.some((part, at) => part !== parts[at])) replace(body, ...made.map(part => part.element))
  return made
}

function textPart() {
  const node = document.createTextNode('')
  const more = h('button', { type: 'button', class: 'button small', hidden: true, onclick: () => ((limit += PART), update(text)) })
  const element = h('div', { class: 'part' }, h('div', { class: 'text', dir: 'auto' }, node), more)
  let limit = PART
  let text = ''

  function update(next) {
    text = next
    const shown = text.length <= limit ? text : text.slice(0, border(text, limit))
    if (shown.length > node.length && node.length > 0 && shown.startsWith(node.data)) node.appendData(shown.slice(node.length))
    else if (shown !== node.data) node.data = shown
    const rest = text.length - shown.length
    more.hidden = rest === 0
    say(more, `Show more (${size(rest)} left)`)
  }

  return { kind: 'text', element, update }
}

function dataPart() {
  const element = h('pre', { class: 'data', tabindex: 0, 'aria-label': 'Data' })
  let shown

  function update(value) {
    if (value === shown) return
    shown = value
    say(element, clip(pretty(value), PART))
  }

  return { kind: 'data', element, update }
}
