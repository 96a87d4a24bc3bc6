// Folds what it is given, one JSON text a line: `{ run, events }` in, the snapshot after every event out.
import { createInterface } from 'node:readline'
import { begin, fold } from '../../service/reattach/client/reattach.js'
import { freeze } from '../../service/reattach/client/frozen.js'

for await (const line of createInterface({ input: process.stdin })) {
  const { run, events } = freeze(JSON.parse(line))
  let shown = begin(run)
  const snapshots = events.map(event => (shown = fold(shown, [event], run.retention)))
  const whole = fold(begin(run), events, run.retention)
  process.stdout.write(`${JSON.stringify({ snapshots, whole })}\n`)
}
