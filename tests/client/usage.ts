// What pages do with the module, for the compiler to read.
import { answer, begin, cancel, fold, ReattachError, RunMirror, SessionMirror, start } from '../../service/reattach/client/reattach.js'
import type { Json, Message, RunView } from '../../service/reattach/client/reattach.js'

const options = { base: 'https://runs.example', token: async ({ refresh }: { refresh: boolean }) => (refresh ? 'new' : 'old') }

export function text(message: Message): string {
  return message.content.map(part => (isText(part) ? part.text : '')).join('')
}

function isText(part: Json): part is { type: 'text'; text: string } {
  return typeof part === 'object' && part !== null && !Array.isArray(part) && 'text' in part
}

export async function follow(ticket: number): Promise<() => void> {
  const run = await start({ agent: 'support', input: { ticket } }, { ...options, key: `ticket-${ticket}` })
  const mirror = new RunMirror(run.run_id, { ...options, window: 100 })
  const stop = mirror.subscribe(() => show(mirror.getSnapshot()))
  const session = new SessionMirror(run.session_id ?? 'none', options)
  const branch: { getSnapshot(): RunView } = session.run(run.run_id)
  show(branch.getSnapshot())
  return () => (stop(), mirror.close(), session.close())
}

function show({ run, events, connection, counters, error }: RunView): void {
  const lines: string[] = (run?.messages ?? []).map(text)
  const waiting: string | undefined = run?.waiting?.wait_id
  const live: boolean = connection.state === 'live' && counters.gaps === 0
  console.log(lines, waiting, live, events.at(-1)?.payload, error?.code)
}

export async function decide(runId: string, wait_id: string): Promise<void> {
  try {
    await answer(runId, { wait_id, value: true }, options)
  } catch (error) {
    if (!(error instanceof ReattachError) || error.code !== 'wait_not_open') throw error
    const { disposition } = await cancel(runId, { reason: 'too late', wait: 5 }, options)
    console.log(disposition)
  }
}

export const folded = fold(begin({ run_id: 'run_1' }), [], { events_ms: 1, run_ms: 2 }).state
// @ts-expect-error A snapshot never changes.
folded.messages = []
// @ts-expect-error A run has an agent.
void start({ input: 1 })
