// One connection kept up, with a network that does exactly what the test says.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Http } from '../../../service/reattach/client/http.js'
import { Line } from '../../../service/reattach/client/line.js'
import { spread } from '../../../service/reattach/client/pace.js'

const frame = (n, event = 'step.done') => `id: r:${n}\nevent: ${event}\ndata: {}\n\n`
const settled = () => pause(5)

/** A line over connections that the test opens, feeds and ends; they do not even notice when they are given up. */
function setup({ token, ...about } = {}) {
  const asked = []
  const got = []
  const states = []
  const lost = []
  const fetch = (url, { headers }) => new Promise((resolve, reject) => asked.push({ url, headers, resolve, reject }))
  const http = new Http({ base: 'http://x', fetch, token })
  const sink = { frames: frames => got.push(...frames.map(({ id }) => id)), state: state => states.push(state), lost: error => lost.push(error) }
  const line = new Line(http, '/e', { stall: 60_000, delay: () => 0, isLast: ({ event }) => event === 'run.succeeded', ...about }, sink)
  const open = async (at = asked.length - 1) => {
    let controller
    const body = new ReadableStream({ start: given => (controller = given) })
    asked[at].resolve(new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } }))
    await settled()
    return {
      say: async text => (controller.enqueue(new TextEncoder().encode(text)), settled()),
      end: async () => (controller.close(), settled()),
      break: async () => (controller.error(new TypeError('network error')), settled()),
    }
  }
  const refuse = async (status, headers = {}, body = '') => (asked.at(-1).resolve(new Response(body, { status, headers })), settled())
  return { line, asked, got, states, lost, open, refuse }
}

test('what an earlier connection still says belongs to nobody', async () => {
  const { line, got, open, asked } = setup()
  line.start(null)
  await settled()
  const old = await open()
  await old.say(frame(1))
  line.cut(0)
  await settled()
  assert.equal(asked.length, 2)
  await old.say(frame(2))
  assert.deepEqual(got, ['r:1'])
  const next = await open()
  await old.say(frame(3))
  await next.say(frame(2))
  assert.deepEqual(got, ['r:1', 'r:2'])
  line.stop()
})

test('a response that comes after another attempt has begun is nobody’s either', async () => {
  const { line, got, open, states } = setup()
  line.start(null)
  await settled()
  line.cut(0)
  await settled()
  const late = await open(0)
  await late.say(frame(1)).catch(() => {})
  assert.deepEqual(got, [])
  assert.equal(states.at(-1).state, 'connecting')
  line.stop()
})

test('a complete body is the end only after the last event', async () => {
  const { line, asked, open, states } = setup()
  line.start('r:4')
  await settled()
  const first = await open()
  await first.say(frame(5))
  await first.end()
  assert.equal(asked.length, 2)
  assert.ok(asked[1].url.endsWith('?after=r%3A5'))
  assert.ok(states.some(({ reason }) => reason === 'closed'))
  const second = await open()
  await second.say(frame(6, 'run.succeeded'))
  await second.end()
  assert.equal(states.at(-1).state, 'ended')
  assert.equal(asked.length, 2)
})

test('it begins again after the last whole event', async () => {
  const { line, asked, open } = setup()
  line.start(null)
  await settled()
  assert.ok(asked[0].url.endsWith('/e'))
  const stream = await open()
  await stream.say(`${frame(1)}${frame(2)}id: r:3\nevent: step.done\nda`)
  await stream.break()
  assert.ok(asked[1].url.endsWith('?after=r%3A2'))
  line.stop()
})

test('a goodbye is told with its reason, and a token that may have run out is asked for anew', async () => {
  const refreshed = []
  const { line, asked, states, open } = setup({ token: ({ refresh }) => (refreshed.push(refresh), 't') })
  line.start(null)
  await settled()
  await (await open()).say('event: stream.closing\ndata: {"reason":"drain"}\n\n')
  await (await open()).say(`${frame(1)}event: stream.closing\ndata: {"reason":"unauthorized"}\n\n`)
  assert.deepEqual(states.filter(({ reason }) => reason).map(({ reason }) => reason), ['drain', 'unauthorized'])
  assert.deepEqual(refreshed, [false, false, true])
  assert.equal(asked[2].headers.authorization, 'Bearer t')
  line.stop()
})

test('what the server asks for is waited', async () => {
  const waits = []
  const { line, states, open, refuse } = setup({ delay: about => (waits.push(about), 0) })
  line.start(null)
  await settled()
  const stream = await open()
  await stream.say(': x\nretry: 1234\n\n')
  await stream.break()
  assert.equal(waits[0].retry, 1234)
  const before = Date.now()
  await refuse(503, { 'retry-after': '7', 'content-type': 'application/problem+json' }, '{"code":"store_unavailable"}')
  const { state, reason, retryAt, error } = states.at(-1)
  assert.deepEqual([state, reason, error.status], ['retrying', 'store_unavailable', 503])
  assert.ok(retryAt - before >= 7000 && retryAt - before < 9000)
  line.nudge()
  assert.equal(states.at(-1).state, 'retrying')
  line.stop()
})

test('pauses double up to half a minute, and are 50 to 100 % of that', () => {
  const random = Math.random
  try {
    Math.random = () => 0
    assert.deepEqual([1, 2, 3, 10, 5000].map(failures => spread(1000, failures)), [500, 1000, 2000, 15_000, 15_000])
    Math.random = () => 1
    assert.deepEqual([1, 2, 3, 10, 5000].map(failures => spread(1000, failures)), [1000, 2000, 4000, 30_000, 30_000])
  } finally {
    Math.random = random
  }
})

test('somebody else’s answer is no answer', async () => {
  const { line, states, refuse } = setup()
  line.start(null)
  await settled()
  await refuse(200, { 'content-type': 'text/html' }, '<h1>Sign in to this network</h1>')
  assert.ok(states.some(({ state, reason }) => state === 'retrying' && reason === 'unexpected'))
  line.stop()
})

test('a refused cursor is for its owner to mend; nothing is tried meanwhile', async () => {
  for (const [status, code] of [[410, 'cursor_expired'], [416, 'future_cursor'], [400, 'malformed_cursor'], [400, 'cursor_session_mismatch']]) {
    const { line, asked, lost, states, refuse } = setup()
    line.start('r:9')
    await settled()
    await refuse(status, { 'content-type': 'application/problem+json' }, JSON.stringify({ code }))
    assert.deepEqual([lost[0].code, states.at(-1).state, asked.length], [code, 'idle', 1])
  }
})

test('204 is the end', async () => {
  const { line, states, asked } = setup()
  line.start('r:9')
  await settled()
  asked[0].resolve(new Response(null, { status: 204 }))
  await settled()
  assert.equal(states.at(-1).state, 'ended')
})
