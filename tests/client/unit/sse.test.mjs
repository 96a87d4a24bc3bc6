// The parser against the rules of the WHATWG HTML standard, section 9.2.6.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventStreamParser } from '../../../service/reattach/client/sse.js'

const bytes = text => new TextEncoder().encode(text)
const parse = text => new EventStreamParser().feed(bytes(text))

test('a frame has an event, data and an id of its own', () => {
  assert.deepEqual(parse('id: a:1\nevent: x.y\ndata: {"n":1}\n\n'), [{ event: 'x.y', data: '{"n":1}', id: 'a:1' }])
})

test('data lines are joined, one leading space goes, and a field without a colon is empty', () => {
  assert.deepEqual(parse('data: a\ndata:  b\ndata\ndata:c\n\n'), [{ event: 'message', data: 'a\n b\n\nc', id: null }])
})

test('comments and unknown fields say nothing, and a frame without data is none', () => {
  assert.deepEqual(parse(': hello\n\nevent: x\n\nfoo: bar\ndata: 1\n\n'), [{ event: 'message', data: '1', id: null }])
})

test('an id belongs to its frame, and stays the last one; one with a NUL does not count', () => {
  const parser = new EventStreamParser()
  const frames = parser.feed(bytes('id: 1\ndata: a\n\ndata: b\n\nid: 2\0\ndata: c\n\n'))
  assert.deepEqual(frames.map(frame => frame.id), ['1', null, null])
  assert.equal(parser.lastEventId, '1')
  parser.feed(bytes('id\ndata: d\n\n'))
  assert.equal(parser.lastEventId, '')
})

test('retry is taken if it is digits', () => {
  const parser = new EventStreamParser()
  parser.feed(bytes('retry: 1500\n\nretry: 5s\n\nretry: -1\n\nretry:\n\n'))
  assert.equal(parser.retry, 1500)
})

test('what is not finished is not told', () => {
  assert.deepEqual(parse('data: a\n\ndata: b\n'), [{ event: 'message', data: 'a', id: null }])
})

test('lines end with LF, CR or CRLF, wherever bytes are divided; a byte order mark is no part of the first', () => {
  const text = '\uFEFFid: 1\r\nevent: é.\rdata: 🌍 a\r\ndata: b\n\r\n: c\r\rdata: x\n\ndata: y\r\r'
  const whole = [{ event: 'é.', data: '🌍 a\nb', id: '1' }, { event: 'message', data: 'x', id: null }, { event: 'message', data: 'y', id: null }]
  const all = bytes(text)
  for (let size = 1; size <= all.length; size++) {
    const parser = new EventStreamParser()
    const frames = []
    for (let at = 0; at < all.length; at += size) frames.push(...parser.feed(all.slice(at, at + size)))
    assert.deepEqual(frames, whole, `in portions of ${size}`)
  }
})

test('a line that never ends is not kept for ever', () => {
  const parser = new EventStreamParser()
  const megabyte = bytes('x'.repeat(1 << 20))
  parser.feed(bytes('data: '))
  assert.throws(() => { for (let n = 0; n < 20; n++) parser.feed(megabyte) }, RangeError)
  const lines = new EventStreamParser()
  const line = bytes(`data: ${'x'.repeat(1 << 20)}\n`)
  assert.throws(() => { for (let n = 0; n < 20; n++) lines.feed(line) }, RangeError)
})

test('long data in many small portions is not looked through again and again', () => {
  const parser = new EventStreamParser()
  const started = performance.now()
  for (let n = 0; n < 20_000; n++) parser.feed(bytes('data: 0123456789'.slice(n ? 6 : 0)))
  const [frame] = parser.feed(bytes('\n\n'))
  assert.equal(frame.data.length, 200_000)
  assert.ok(performance.now() - started < 2000)
})
