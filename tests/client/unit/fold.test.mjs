// What pages rely on beyond the vectors: nothing changes in place, and what did not change is the same object.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { begin, fold } from '../../../service/reattach/client/reattach.js'

let sequence = 0
const say = (type, payload) => ({ sequence: ++sequence, type, occurred_at: '2026-08-28T12:00:00.000Z', payload })
const delta = (message_id, text) => say('message.delta', { message_id, text })

test('an unchanged part of a snapshot is the same object', () => {
  const first = fold(begin({ run_id: 'r' }), [delta('a', 'x'), delta('b', 'y'), say('tool.requested', { tool_call_id: 'c', tool: 't' })])
  const second = fold(first, [delta('b', 'z'), say('invoice.drafted', {})])
  assert.equal(second.messages[0], first.messages[0])
  assert.notEqual(second.messages[1], first.messages[1])
  for (const part of ['tools', 'resources', 'unresolved', 'cancel']) assert.equal(second[part], first[part], part)
  assert.equal(fold(second, [say('invoice.drafted', {}), say('message.delta', {})]).messages, second.messages)
})

test('all of a snapshot is frozen, also what an agent gave', () => {
  const given = { message_id: 'm', content: [{ type: 'card', rows: [[1]] }] }
  const run = fold(begin({ run_id: 'r' }), [say('message.completed', given), say('run.succeeded', { outcome: { list: [1] } })])
  const walk = value => {
    if (typeof value !== 'object' || value === null) return
    assert.ok(Object.isFrozen(value), JSON.stringify(value))
    Object.values(value).forEach(walk)
  }
  walk(run)
})

test('an event is folded once', () => {
  const event = delta('a', 'x')
  const run = fold(begin({ run_id: 'r' }), [event])
  assert.throws(() => fold(run, [event]), RangeError)
})

test('payloads nested as deep as the service lets them are no trouble', () => {
  const deep = JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`)
  const run = fold(begin({ run_id: 'r' }), [say('message.completed', { message_id: 'm', content: [deep] })])
  assert.equal(run.messages.length, 1)
})

test('a long message costs what is new, not what is there', () => {
  const events = Array.from({ length: 50_000 }, () => delta('a', 'word '))
  const started = performance.now()
  const run = fold(begin({ run_id: 'r' }), events)
  assert.equal(run.messages[0].content[0].text.length, 250_000)
  assert.ok(performance.now() - started < 3000)
})
