// A worker in plain JavaScript (Node 20 or newer, no package): streams a text, adds a note once, asks a person, goes on, ends the run.
import { randomUUID } from 'node:crypto'
import { appendFile, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const { REATTACH_URL = 'http://127.0.0.1:8080', AGENT = 'node', NOTES = 'notes.txt', SLOW_MS = '0' } = process.env
async function post(path, body) { // until it is answered: everything a worker sends may be sent twice
  for (let pause = 100; ; pause = Math.min(pause * 2, 5000)) {
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const [status, text] = await fetch(REATTACH_URL + path, request).then(async r => [r.status, await r.text()]).catch(() => [503])
    if (status < 300) return text && JSON.parse(text)
    if (status < 500 && status !== 429) throw Object.assign(new Error(text), { refused: true })
    await sleep(pause * (0.5 + Math.random() / 2))
  }
}
class Run {
  constructor({ lease, run, effects }) {
    Object.assign(this, run, { effects, fence: lease.fence, batch: lease.next_batch, stop: new AbortController() }).keep()
  }
  send(verb, body) { return post(`/worker/runs/${this.run_id}/${verb}`, { fence: this.fence, ...body }) }
  async keep() { // renews the lease; the answer is held until the run shall stop, or a third of the lease has passed
    const heard = r => Object.assign(this, r).cancel_version && this.stop.abort(new Error('cancelled'))
    const renew = () => this.send('renew', { wait: 60, cancel_version: this.cancel_version })
    while (!this.over) await renew().then(heard, error => this.stop.abort(this.over = error))
  }
  async emit(type, payload) {
    this.stop.signal.throwIfAborted()
    await this.send('append', { batch: this.batch++, events: [{ type, payload }] })
  }
  async effect(tool_call_id, tool, args, call, find) { // at most once: what a lost worker may have done is looked for, not done again
    const ask = again => this.send('intent', { tool_call_id, tool, arguments: args, again })
    let gate = await ask(false), result
    if (gate.kind === 'unresolved' && !(result = await find(gate.idempotency_key))) gate = await ask(true)
    if (gate.kind === 'receipt') return gate.effect.result
    if (gate.kind === 'failed' || gate.kind === 'cancelled') throw new Error(gate.kind)
    result ??= await call(args, gate.idempotency_key)
    return await this.send('receipt', { tool_call_id, status: 'receipt', result }) && result
  }
}
const findNote = async key => (await readFile(NOTES, 'utf8').catch(() => '')).includes(key) ? { key } : null
const addNote = async ({ ticket }, key) => (await sleep(+SLOW_MS), await appendFile(NOTES, `${key} ${ticket}\n`), sleep(+SLOW_MS, { key }))
async function handle(run) { // from the top again after a wait or a lost worker: what is recorded is not done again
  if (!run.effects.note) {
    const message_id = `m${run.attempt}`, words = ['Looking ', 'at ', 'the ', 'ticket.']
    for (const text of words) await run.emit('message.delta', { message_id, text })
    await run.emit('message.completed', { message_id, role: 'assistant', content: [{ type: 'text', text: words.join('') }] })
  }
  const note = await run.effect('note', 'tickets.add_note', run.input, addNote, findNote)
  const { kind, value } = await run.send('park', { wait_id: 'approval', reason: 'approval', prompt: 'Refund 40 EUR?' })
  if (kind === 'cancelled') throw new Error(kind)
  if (kind === 'answered') await run.send('finish', { state: 'succeeded', outcome: { note, approved: value } })
}
const failed = message => ({ state: 'failed', error: { code: 'handler_error', message: message.slice(0, 500) } })
for (;;) { // a claim that is sent again under its claim_id is the same claim
  const claim = await post('/worker/claims', { agents: [AGENT], worker: `node-${process.pid}`, claim_id: randomUUID(), wait: 25 })
  if (!claim) continue
  const run = new Run(claim), end = e => e.message === 'cancelled' ? { state: 'cancelled' } : failed(e.message)
  await handle(run).catch(e => e.refused || run.send('finish', end(e))).catch(console.error)
  run.over = true
}
