/** The messages of a run, from its `message.*` events. A payload that does not fit is not projected. */
import { freeze, place, put } from './frozen.js'

const isText = value => typeof value === 'string'
const isOptionalText = value => value === undefined || value === null || isText(value)

function fits(p) {
  return typeof p === 'object' && p !== null && !Array.isArray(p) && isText(p.message_id)
}

function find(list, id) {
  // From the end: it is nearly always the last one that is written to.
  return list.findLastIndex(message => message.message_id === id)
}

function fresh(id) {
  return Object.freeze({ message_id: id, role: 'assistant', status: 'streaming', content: freeze([]) })
}

/** Whether a part is text and nothing else, so that more text goes into it. */
function isPlain(part) {
  return typeof part === 'object' && part !== null && part.type === 'text' && isText(part.text) && Object.keys(part).length === 2
}

function grow(content, more, keep) {
  const open = content.length > 0 && isPlain(content.at(-1))
  if (!more && (keep || !open)) return content
  const before = open ? content.slice(0, -1) : content
  const text = open && keep ? content.at(-1).text + more : more
  return freeze(text ? [...before, { type: 'text', text }] : before)
}

function text(list, p, keep) {
  if (!fits(p) || !isText(p.text)) return list
  const at = find(list, p.message_id)
  const message = at < 0 ? fresh(p.message_id) : list[at]
  if (message.status === 'completed') return list
  const next = put(message, { status: 'streaming', content: grow(message.content, p.text, keep) })
  return at >= 0 && next === message ? list : place(list, at, next)
}

/** `message.started`: begins a message, or begins it anew. */
export function start(list, p) {
  if (!fits(p) || !isOptionalText(p.role) || !(p.content === undefined || Array.isArray(p.content))) return list
  const content = freeze(p.content ?? [])
  return place(list, find(list, p.message_id), freeze({ ...fresh(p.message_id), role: p.role || 'assistant', content }))
}

/** `message.delta`: more text. */
export const write = (list, p) => text(list, p, true)

/** `message.checkpoint`: the text so far. */
export const checkpoint = (list, p) => text(list, p, false)

/** `message.completed`: the whole message. */
export function complete(list, p) {
  if (!fits(p) || !isOptionalText(p.role) || !isOptionalText(p.status) || !Array.isArray(p.content)) return list
  const at = find(list, p.message_id)
  const message = at < 0 ? fresh(p.message_id) : list[at]
  const status = p.status === 'interrupted' ? 'interrupted' : 'completed'
  return place(list, at, freeze({ ...message, role: p.role || message.role, status, content: p.content }))
}

/** Nobody goes on with the open messages. */
export function interrupt(list) {
  if (!list.some(message => message.status === 'streaming')) return list
  return Object.freeze(list.map(message => (message.status === 'streaming' ? put(message, { status: 'interrupted' }) : message)))
}
