// A page without a browser: one mirror, told what to do on standard input, telling every change on standard output, one JSON text a line.
import { createInterface } from 'node:readline'
import * as reattach from '../../service/reattach/client/reattach.js'

const { kind, id, base, tokens, tickets, delay, ...options } = JSON.parse(process.argv[2])
const asked = []
let given
const first = new Promise(resolve => (given = resolve))
if (tokens) {
  options.token = async ({ refresh }) => {
    if (!tokens.length) await first
    asked.push(refresh)
    if (refresh && tokens.length > 1) tokens.shift()
    return tokens[0]
  }
}
if (tickets) options.ticket = () => tickets[0]
if (delay !== undefined) options.delay = () => delay
const say = value => process.stdout.write(`${JSON.stringify(value)}\n`)
const open = { base, window: 100_000, ...options }
const mirrors = { run: reattach.RunMirror, session: reattach.SessionMirror }
const mirror = new mirrors[kind](id, open)

const applied = {}
const known = new WeakSet()
function tell() {
  const view = mirror.getSnapshot()
  for (const event of view.events) {
    if (known.has(event)) continue
    known.add(event)
    applied[event.event_id] = (applied[event.event_id] ?? 0) + 1
  }
  const { state, sequence } = view[kind] ?? {}
  const { connection, counters, loading, error } = view
  say({ change: { state, sequence, connection, counters, loading, error, asked: asked.length } })
}
mirror.subscribe(tell)
tell()

const acts = {
  view: () => ({ ...mirror.getSnapshot(), applied, asked }),
  cut: ms => mirror.cut(ms),
  nudge: () => mirror.nudge(),
  reload: () => mirror.reload(),
  earlier: count => mirror.earlier(count),
  close: () => mirror.close(),
  tokens: list => given(tokens.push(...list)),
  start: ([request, about]) => reattach.start(request, { ...open, ...about }),
  cancel: ([run, about]) => reattach.cancel(run, about, open),
  answer: ([run, given]) => reattach.answer(run, given, open),
}
createInterface({ input: process.stdin }).on('line', async line => {
  const { act, about } = JSON.parse(line)
  try {
    say({ answer: (await acts[act](about)) ?? null })
  } catch (error) {
    say({ refused: { code: error.code, status: error.status, message: error.message } })
  }
}).on('close', () => process.exit(0))
