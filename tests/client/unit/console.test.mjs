/** What the console makes of texts, times and addresses. */
import assert from 'node:assert/strict'
import test from 'node:test'

import { parse, typed } from '../../../service/reattach/client/console/exact.js'
import { place, read, runPlace, sessionPlace } from '../../../service/reattach/client/console/router.js'
import { border, clip, many, name, pretty, size, visible } from '../../../service/reattach/client/console/text.js'
import { ago, countdown, duration } from '../../../service/reattach/client/console/time.js'

test('what steers a display is written out, and nothing else is touched', () => {
  assert.equal(visible('a\u202eb\u2066c\u200bd\u0007e\u009bf\ufeffg\u{e0041}'), 'a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩d⟨U+0007⟩e⟨U+009B⟩f⟨U+FEFF⟩g⟨U+E0041⟩')
  assert.equal(visible('half \ud83d of a pair'), 'half ⟨U+D83D⟩ of a pair')
  const fine = 'line\n\ttab, é, 中文, שלום, 😀 and e\u0301'
  assert.equal(visible(fine), fine)
  assert.equal(name('two\nlines'), 'two lines')
})

test('a cut never splits a character', () => {
  assert.equal(clip('ab😀', 3), 'ab…')
  assert.equal(clip('ab😀', 4), 'ab😀')
  assert.equal(border('ab😀cd', 3), 2)
  assert.equal(border('ab😀cd', 4), 4)
  assert.equal(border('ab', 9), 2)
})

test('numbers for people', () => {
  assert.equal(many(1, 'event'), '1 event')
  assert.equal(many(50_000, 'event'), '50,000 events')
  assert.deepEqual([size(999), size(1500), size(560_000), size(2_500_000)], ['999 bytes', '1.5 kB', '560 kB', '2.5 MB'])
})

test('durations', () => {
  const shown = [0, 47, 4200, 9949, 9950, 59_400, 200_000, 7_500_000, 86_400_000].map(duration)
  assert.deepEqual(shown, ['0 ms', '47 ms', '4.2 s', '9.9 s', '10 s', '59 s', '3 min 20 s', '2 h 5 min', '1 d'])
  assert.deepEqual([0, 5000, 61_000, 90_000_000].map(ago), ['just now', '5 s ago', '1 min ago', '1 d ago'])
  assert.deepEqual([-1, 1, 61_000, 3_599_001, 3_600_000].map(countdown), ['0:00', '0:01', '1:01', '1:00:00', '1:00:00'])
})

test('addresses are read as they are written', () => {
  const strange = 'a/b?c#d&é%'
  assert.deepEqual([read(sessionPlace(strange)).name, read(sessionPlace(strange)).id], ['session', strange])
  assert.deepEqual([read(runPlace('run_1')).name, read(runPlace('run_1')).id], ['run', 'run_1'])
  assert.equal(place('/', { state: 'running', agent: '' }), '#/?state=running')
  assert.equal(read('#/?state=running').query.get('state'), 'running')
  assert.deepEqual(['', '#', '#/', '#/sessions', '#/start', '#/runs/', '#/x'].map(hash => read(hash).name), [
    'runs', 'runs', 'runs', 'sessions', 'start', 'lost', 'lost',
  ])
  assert.equal(read('#/runs/%E0%A4%A').id, '%E0%A4%A')
})

test('what somebody typed is JSON or is not', () => {
  assert.deepEqual(typed(' {"a": [1]} '), { value: { a: [1] } })
  assert.match(typed('{a: 1}').error, /^This is not JSON/)
  assert.match(typed('  ').error, /JSON value/)
  assert.equal(pretty(parse('{"a":1}')), '{\n  "a": 1\n}')
})

test('numbers keep their digits where the browser can', { skip: typeof JSON.rawJSON !== 'function' }, () => {
  assert.equal(JSON.stringify(parse('[12345678901234567890,1e400,1.0]')), '[12345678901234567890,1e400,1.0]')
})
