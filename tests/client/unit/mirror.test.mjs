// What a mirror makes of what it hears, in whatever order it hears it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Mirror } from '../../../service/reattach/client/mirror.js'

const frame = n => ({ id: `r:${n}`, event: 'x.y', data: JSON.stringify({ sequence: n }) })
const frames = (...all) => all.map(frame)

/** A mirror of a list of numbers, with snapshots and a connection that are the test's. */
function setup() {
  const asked = []
  let sink
  const opened = []
  const model = {
    name: 'list', path: '/l', at: event => event.sequence, over: () => false, adopt: snapshot => snapshot,
    read: ({ data }) => JSON.parse(data),
    fold: (state, events) => ({ sequence: events.at(-1).sequence, seen: [...state.seen, ...events.map(event => event.sequence)] }),
  }
  const http = { base: '', ask: (path, { etag }) => new Promise((resolve, reject) => asked.push({ etag, resolve, reject })) }
  const status = { state: 'live' }
  const connection = { status, open: () => opened.push(sink.cursor()), close: () => {}, nudge: () => {}, cut: () => {} }
  const mirror = new Mirror(model, http, { window: 5 }, given => ((sink = given), connection))
  mirror.reload()
  const snapshot = async (sequence, seen = []) => (asked.at(-1).resolve({ sequence, seen }), pause(1))
  const view = () => mirror.getSnapshot()
  return { mirror, sink: () => sink, asked, opened, snapshot, view }
}

test('what comes while the snapshot is on its way is folded onto it, once', async () => {
  const { sink, snapshot, view, opened } = setup()
  sink().frames(frames(8, 9, 10))
  sink().frames(frames(11))
  assert.equal(view().list, null)
  await snapshot(9)
  assert.deepEqual(view().list, { sequence: 11, seen: [10, 11] })
  assert.deepEqual(view().counters, { events: 2, resumes: 0, duplicates: 0, gaps: 0 })
  assert.equal(opened.length, 2)
})

test('an event that comes again is dropped and counted', async () => {
  const { sink, snapshot, view } = setup()
  await snapshot(3)
  sink().frames(frames(4, 4, 3, 5))
  sink().frames(frames(1, 2, 5, 6))
  assert.deepEqual([view().list.seen, view().counters.duplicates, view().counters.events], [[4, 5, 6], 5, 3])
})

test('a hole is made good by a snapshot, and what came after it is kept', async () => {
  const { sink, snapshot, view, asked } = setup()
  await snapshot(3)
  sink().frames(frames(4, 6, 7))
  assert.deepEqual([view().list.seen, view().loading, view().counters.gaps], [[4], true, 1])
  sink().frames(frames(8))
  assert.equal(asked.at(-1).etag, '"4"')
  await snapshot(6, ['from the server'])
  assert.deepEqual(view().list, { sequence: 8, seen: ['from the server', 7, 8] })
  assert.deepEqual([view().loading, view().events.map(event => event.sequence)], [false, [7, 8]])
})

test('a snapshot that is older than the hole is asked for again', async () => {
  const { sink, snapshot, view, asked } = setup()
  await snapshot(3)
  sink().frames(frames(9))
  await snapshot(5)
  assert.deepEqual([view().list.sequence, view().loading], [5, true])
  while (asked.length < 3) await pause(10)
  await snapshot(8)
  assert.deepEqual(view().list, { sequence: 9, seen: [9] })
})

test('a snapshot that knows less than what is shown changes nothing', async () => {
  const { mirror, snapshot, view, asked } = setup()
  await snapshot(7, ['seven'])
  mirror.reload()
  await snapshot(5, ['five'])
  assert.deepEqual(view().list.seen, ['seven'])
  while (asked.length < 3) await pause(10)
  await snapshot(7, ['seven'])
  assert.equal(view().loading, false)
})

test('another tab’s place tells that something was missed', async () => {
  const { sink, snapshot, view } = setup()
  await snapshot(3)
  sink().behind(3)
  assert.equal(view().loading, false)
  sink().behind(5)
  assert.equal(view().loading, true)
  await snapshot(5)
  assert.deepEqual([view().list.sequence, view().loading, view().counters.gaps], [5, false, 1])
})

test('the view is the same object until something changes', async () => {
  const { mirror, sink, snapshot, view } = setup()
  await snapshot(3)
  const calls = []
  const stop = mirror.subscribe(() => calls.push(view()))
  const before = view()
  sink().status(before.connection)
  sink().frames([])
  assert.equal(view(), before)
  assert.equal(calls.length, 0)
  sink().frames(frames(4))
  assert.equal(calls.length, 1)
  assert.notEqual(view(), before)
  assert.ok(Object.isFrozen(view()) && Object.isFrozen(view().events))
  stop()
  sink().frames(frames(5))
  assert.equal(calls.length, 1)
})

test('the window keeps the latest', async () => {
  const { sink, snapshot, view } = setup()
  await snapshot(0)
  sink().frames(frames(...Array.from({ length: 12 }, (_, n) => n + 1)))
  assert.deepEqual(view().events.map(event => event.sequence), [8, 9, 10, 11, 12])
})
